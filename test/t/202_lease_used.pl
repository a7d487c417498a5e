# Makes Snowflake identifiers under node ids that are leased, static, and leased again. A server
# gives back no second that has an identifier, and uses no lease that ends before such a second.
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
$_->stop for @holders;

# A server uses static node ids under a clock that is ahead. Then a lease of these node ids ends
# before the used seconds: the server gives it back as used, and leases others. The simulation tests
# the rest.
$RandflakeLease::node_ids = 16;
make_coordinator($coordinator);
my $server = new_static($fleet, 'server', 0);
$server->start;
$server->sql('DROP EXTENSION randflake_coordinator');    # a copied coordinator, whose leases would delay the server by a minute
$server->stop;
start_under_clock($server);
clock_offset($server, 300);    # longer than a lease, even on a slow machine
$server->sql('SELECT snowflake_generate()');
load_on($fleet, $server);
sleep 1;
end_load($fleet, $server);
clock_offset($server, 0);
$server->stop;
configure($server, leasing($fleet, $coordinator));
start_under_clock($server);
cmp_ok(wait_for_lease($server), '>', 0, 'a shorter lease: other node ids');
log_has($server, qr/could not use the lease of node ids: this server used node ids 0 to 0 itself, up to /,
    '  says the log');
is( $coordinator->sql(q{SELECT count(*) FROM randflake_leases WHERE state = 'released' AND first_node_id = 0}),
    1, '  it is given back as used');
load_on($fleet, $server);
sleep 2;
end_load($fleet, $server);
$server->stop;
all_is_well($fleet, $coordinator, 'a shorter lease', leased => 0);
$coordinator->stop;
done_testing();
