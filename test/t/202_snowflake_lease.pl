# Makes Snowflake identifiers under leased node ids, which change with each lease. The server gives
# back no second that has an identifier.
use Randflake;
use RandflakeLease;
use Time::HiRes qw(sleep);

my $fleet = new_fleet(snowflake => 1);
my $coordinator = start_coordinator($fleet, 'coordinator');
my @holders = map { start_holder($fleet, "holder$_", $coordinator, node_count => $_) } 1 .. 2;
load_on($fleet, $_) for @holders;
sleep 1.5 * $RandflakeLease::duration;

# A worker that stops gives its lease back and reports the last second that the server used. The
# next worker takes another lease. The other server may lease the returned node ids at once.
for my $round (1 .. 3) {
    for my $holder (@holders) {
        my $lease = status_of($holder, 'lease_id');
        kill 'TERM', lease_worker_of($holder);
        wait_for_status($holder, "lease_id > $lease AND now() < window_end");
        gave_back($coordinator, $holder, $lease, "round $round: the lease was given back");
    }
}

end_load($fleet, $_) for @holders;
all_is_well($fleet, $coordinator, 'fleet');
$_->stop for @holders, $coordinator;
done_testing();
