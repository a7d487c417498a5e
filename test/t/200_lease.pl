# Runs a fleet that leases node ids from one coordinator, while servers stop, hang and crash.
use Randflake;
use RandflakeLease;
use Time::HiRes qw(sleep time);

my $fleet = new_fleet();
my $coordinator = start_coordinator($fleet, 'coordinator');
my @holders = new_holder($fleet, 'holder1', $coordinator, node_count => 1);
start_under_clock($holders[0]);
wait_for_lease($holders[0]);
push @holders, map { start_holder($fleet, "holder$_", $coordinator, node_count => $_) } 2, 3;

is( $coordinator->sql(q{SELECT string_agg(DISTINCT holder || ' ' || node_count, ', ') FROM randflake_leases}),
    'holder1 1, holder2 2, holder3 3', 'three servers lease what they ask for');
wait_for_status($holders[1], <<'SQL');
mode = 'leased' AND node_count = 2 AND lease_id IS NOT NULL AND lease_error IS NULL
AND window_end - window_start BETWEEN interval '1 s' AND interval '1 min'
SQL
pass('a server shows its lease and its window');

load_on($fleet, $_) for @holders;
sub ids_go_on($test_name, @of) {
    for my $holder (@of ? @of : @holders) {
        my $before = status_of($holder, 'ids_issued');
        wait_for_status($holder, "ids_issued > $before AND now() < window_end");
    }
    pass($test_name);
}

# Only a renewed lease can be this long.
my $longer = $RandflakeLease::duration + 1;
ok($coordinator->poll_query_until('postgres', <<"SQL"), 'leases are renewed, not replaced');
SELECT count(DISTINCT holder) = 3 FROM randflake_leases WHERE ends_at - starts_at > interval '$longer s'
SQL
ids_go_on('identifiers go on');

# A server's clock stands still while its coordinator stops, so the server's lease does not end.
clock_stands_at($holders[0], time);
wait_for_open_window($holders[0]);
$coordinator->stop;
ok($holders[0]->sql('SELECT randflake_generate()'), 'without the coordinator, identifiers continue');
clock_offset($holders[0], 0);
wait_for_status($holders[0], 'lease_error IS NOT NULL');
wait_for_closed_window($holders[0]);
error_is($holders[0], q{SET randflake.max_wait = '10ms'; SELECT randflake_generate()}, '55000',
    { message => qr/lease of node ids has ended/,
      detail => qr/^It ended at .*, the clock shows .*\. The coordinator has not answered since .*\.$/,
      hint => qr/coordinator/ }, 'to the end of the lease', problem => 1);
like(status_of($holders[0], 'lease_error'), qr/could not renew the lease of node ids: .*socket/,
    'with the reason in randflake_status');
log_has($holders[0], qr/LOG: .*could not renew the lease/, 'and in the log');
$coordinator->start;
ids_go_on('the coordinator is back: identifiers go on');
is(status_of($holders[0], 'lease_error'), '', 'and no error is left');
log_has($holders[0], qr/leasing node ids works again/, 'says the log');

my @processes = processes_of($coordinator);
$coordinator->kill9;
wait_until_gone(@processes);
sleep 1;
$coordinator->start;
ids_go_on('the coordinator was killed and started again');

@processes = processes_of($coordinator);
kill 'STOP', @processes;
sleep $RandflakeLease::duration + 1;
kill 'CONT', @processes;
ids_go_on('the coordinator hung beyond the end of the leases');

# A stopped process must not continue with node ids that another server has leased since.
my $spare = new_holder($fleet, 'spare', $coordinator);

# Pauses these processes until the spare server has leased the holder's first node id.
sub taken_over_while_stopped($holder, $what, @pids) {
    kill 'STOP', @pids;
    my ($lease, $first) = split /\|/, $coordinator->sql(<<"SQL");
SELECT lease_id, first_node_id FROM randflake_leases WHERE holder = '@{[$holder->name]}'
ORDER BY lease_id DESC LIMIT 1
SQL
    # Leases all node ids but $first to 'nobody', so that the spare server gets $first. These leases
    # have negative ids, because the ids of other leases must not change.
    $coordinator->sql(<<"SQL");
INSERT INTO randflake_lease (lease_id, holder, incarnation, secrets, nodes, span) OVERRIDING SYSTEM VALUE
SELECT -lower(nodes), 'nobody', gen_random_uuid(), '0123456789abcdef', nodes, int8range(2500000000, 2500000001)
FROM (VALUES (int4range(0, $first)), (int4range($first + 1, 131072))) AS others (nodes)
WHERE NOT isempty(nodes)
SQL
    $spare->start;
    is(wait_for_lease($spare), $first, "$what stopped: its node id has another holder");
    load_on($fleet, $spare);
    $coordinator->sql(q{DELETE FROM randflake_lease WHERE holder = 'nobody'});
    kill 'CONT', @pids;
    wait_for_status($holder, "lease_id <> $lease AND now() < window_end");
    sleep 1;
    end_load($fleet, $spare);
    $spare->stop;
}

taken_over_while_stopped($holders[0], 'lease worker', lease_worker_of($holders[0]));
ids_go_on('lease worker goes on, with another lease', $holders[0]);
taken_over_while_stopped($holders[1], 'whole server', processes_of($holders[1]));
ids_go_on('whole server goes on, with another lease', $holders[1]);

# Stops the backends while they sleep, because elsewhere they may hold a lock that the worker needs.
my $loads = "SELECT %s FROM pg_stat_activity WHERE application_name = 'load'";
my @backends = split /\n/, $holders[2]->sql(sprintf $loads, 'pid');
wait_until {
    kill 'STOP', @backends;
    $holders[2]->sql(sprintf $loads, q{bool_and(wait_event = 'PgSleep')}) eq 't'
      or kill('CONT', @backends) && 0;
} or give_up('the backends never sleep at the same time');
taken_over_while_stopped($holders[2], 'lease worker', lease_worker_of($holders[2]));
kill 'CONT', @backends;
ids_go_on('stopped backends go on, with another lease', $holders[2]);

# Terminates only the worker. Like the postmaster, signals the worker's process group. This worker
# gives the lease back, and the next worker takes another lease. On a loaded machine, a worker may
# lack the time, and the next worker goes on with the lease.
my $lease;
wait_until {
    $lease = status_of($holders[2], 'lease_id');
    my $worker = lease_worker_of($holders[2]);
    sleep 0.0005 while kill 'TERM', -$worker;
    wait_for_status($holders[2], 'now() < window_end');
    status_of($holders[2], 'lease_id') > $lease;
} or give_up('no worker gives its lease back');
ids_go_on('worker terminated: another lease', $holders[2]);
gave_back($coordinator, $holders[2], $lease, 'worker terminated: the lease was given back');

$lease = status_of($holders[0], 'lease_id');
end_load($fleet, $holders[0]);
$holders[0]->stop;
gave_back($coordinator, $holders[0], $lease, 'clean stop: the lease was given back');
$holders[0]->start;
wait_for_lease($holders[0]);
load_on($fleet, $holders[0]);

$holders[2]->backup('copy');
my @copies = map { PostgreSQL::Test::Cluster->new("copy$_") } 1, 2;
for my $copy (@copies) {
    $copy->init_from_backup($holders[2], 'copy');
    start_under_clock($copy);
    wait_for_lease($copy);
    load_on($fleet, $copy);
}
my @first = map { wait_for_lease($_) } $holders[2], @copies;
ok($first[0] != $first[1] && $first[1] != $first[2] && $first[0] != $first[2],
    "a server and two copies of it have different node ids: @first");
sleep $RandflakeLease::duration;

$coordinator->pgbench('--client=200 --jobs=2 --transactions=1 --no-vacuum', 0,
    [qr{actually processed: 200/200}], [qr/^$/], '200 concurrent calls succeed',
    { acquire => <<'SQL' });
SELECT first_node_id FROM randflake_lease_acquire('many', gen_random_uuid(), 3, 60,
    (SELECT secrets FROM randflake_lease_pool));
SQL
is( $coordinator->sql(<<'SQL'), '200|0', 'and get ranges that do not overlap');
SELECT count(DISTINCT (nodes, span)),
       (SELECT count(*) FROM randflake_lease a JOIN randflake_lease b
        ON a.lease_id < b.lease_id AND a.nodes && b.nodes AND a.span && b.span)
FROM lease_history WHERE holder = 'many'
SQL

end_load($fleet, $_) for @holders, @copies;
all_is_well($fleet, $coordinator, 'fleet');
is($coordinator->sql('SELECT count(*) - count(DISTINCT incarnation) FROM randflake_lease'),
    0, 'no two leases were asked for by one incarnation');
my $last = pop @copies;
$_->stop for @holders, @copies;
clock_stands_at($last, time);
wait_for_open_window($last);
$_->stop for $coordinator, $last;
like(slurp_file($last->logfile),
    qr/lease \d+ of node ids is not given back\n.*HINT:  This server goes on with it if it starts again before /,
    'stopped without its coordinator, a server says which lease it keeps');
done_testing();
