# Snowflake identifiers under leased node ids: both families' words change with the lease, and
# neither has used what is given back.

use Randflake;
use RandflakeLease;
use Time::HiRes qw(sleep);

my $fleet = new_fleet(snowflake => 1);
my $coordinator = start_coordinator($fleet, 'coordinator');
my @holders = map { start_holder($fleet, "holder$_", $coordinator, node_count => $_) } 1 .. 2;
load_on($fleet, $_) for @holders;
sleep 1.5 * $RandflakeLease::duration;

# The worker gives the lease back with the last second used, and its successor takes another; the
# other server may have the node ids at once. Only Snowflake identifiers are made here.
for my $round (1 .. 3) {
    for my $holder (@holders) {
        my $lease = status_of($holder, 'lease_id');
        kill 'TERM', lease_worker_of($holder);
        wait_for_status($holder, "lease_id > $lease AND now() < window_end");
        gave_back($coordinator, $holder, $lease, "round $round: the lease was given back");
    }
}

# A stop and a start within the second; a crash; a worker that sleeps beyond the end of the lease.
end_load($fleet, $holders[0]);
$holders[0]->restart;
wait_for_lease($holders[0]);
load_on($fleet, $holders[0]);
my @processes = processes_of($holders[1]);
$holders[1]->kill9;
wait_until_gone(@processes);
end_load($fleet, $holders[1]);
$holders[1]->start;
wait_for_lease($holders[1]);
load_on($fleet, $holders[1]);
my ($lease, $worker) = (status_of($holders[0], 'lease_id'), lease_worker_of($holders[0]));
kill 'STOP', $worker;
sleep $RandflakeLease::duration + 2;
kill 'CONT', $worker;
wait_for_status($holders[0], 'now() < window_end');
sleep 1;

end_load($fleet, $_) for @holders;
all_is_well($fleet, $coordinator, 'fleet');

# Node ids that do not fit in the layout, without others in the pool.
$holders[0]->stop;
$coordinator->safe_psql('postgres',
    'SELECT randflake_lease_configure(first_node_id => 1023, node_count => 2)');
$holders[1]->restart;
wait_for_lease($holders[1]);
is(status_of($holders[1], 'first_node_id'), 1023, 'leased: the last node id of the layout, and another');
error_is($holders[1], 'SELECT snowflake_generate()', '55000',
    {
        message => qr/node ids 1023 to 1024 do not fit in layout "twitter"/,
        detail => qr/10 bits for node ids, which are from 0 to 1023/,
        hint => qr/"instagram" up to 8191, "sonyflake" up to 65535, "baidu" up to 4194303/ },
    'leased: which do not fit');
ok($holders[1]->safe_psql('postgres', 'SELECT randflake_generate()'), 'leased: but serve Randflake');

$_->stop for $holders[1], $coordinator;
done_testing();
