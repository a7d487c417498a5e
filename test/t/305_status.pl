# Checks the status views on a new server, while sessions wait, after the clock steps back, and
# while a server gets, loses and regains a lease.
use Randflake;
use RandflakeWindowFile;
use Time::HiRes qw(time);

# Returns pg_stat_activity's name of a wait event. Before PostgreSQL 17, this is always "Extension".
sub event_name($node, $name) {
    return $node->sql('SHOW server_version_num') >= 170000 ? $name : 'Extension';
}

my $node = start_server('main', own_clock => 1,
    settings => { node_id => 10, node_count => 2, secret => random_secret(), max_wait => '1h' });

# --- a new server ----------------------------------------------------------------------------
is( status_of($node, 'mode, problem, first_node_id, node_count, window_start, window_end, ids_issued,'
          . ' waits, window_extensions, lease_id, lease_error'),
    'static||10|2|||0|0|0||', 'nothing issued yet: no window, all counters zero');
is($node->sql('SELECT count(*) FROM randflake_slots'), 0, '  and no slots');
is( status_of($node, 'stats_reset <= clock_timestamp()'
          . ' AND stats_reset >= pg_postmaster_start_time() - interval \'10 s\''),
    't', 'counted since the start of the server');

# --- a used-up second ------------------------------------------------------------------------
$node->sql('SELECT randflake_generate()');
my $second = 10 + int time;
clock_stands_at($node, $second);
$node->sql('SELECT randflake_status_reset()');
$node->sql('SELECT count(*) FROM randflake_generate(262144)');
is( status_of($node, 'ids_issued, slots_exhausted, waits, wait_ms'),
    '262144|2|0|0', 'every number of a second, under two node ids');
is( $node->sql('SELECT node_id, extract(epoch FROM last_second)::bigint,'
          . ' sequence, ids_issued FROM randflake_slots ORDER BY 1'),
    "10|$second|131071|131072\n11|$second|131071|131072", '  as the slots show');

is( status_of($node, "window_start <= to_timestamp($second), window_end > to_timestamp($second),"
          . " window_end < clock_timestamp() + interval '10 s',"
          . q{ key_fingerprint ~ '^[0-9a-f]{16}$', vector_path IN ('avx512', 'avx2', 'baseline', 'plain')}),
    't|t|t|t|t', '  in the window; the fingerprint and the path are well-formed');

error_is($node, 'SET randflake.max_wait = 300; SELECT randflake_generate()', '53400', {}, 'a call waits and fails');
is(status_of($node, 'waits, wait_ms >= 300, ids_issued'), '1|t|262144', '  and is counted as a wait');

my $session = start_session($node, 'SELECT randflake_generate()');
wait_until_waiting($node, 1);
is($node->sql(q{SELECT wait_event_type, wait_event FROM pg_stat_activity WHERE state = 'active' AND query = 'SELECT randflake_generate()'}),
    'Extension|' . event_name($node, 'RandflakeGenerate'), 'a waiting session shows in the activity');
is(status_of($node, 'waits'), 2, '  and is counted while it waits');
clock_stands_at($node, $second + 1);
is((finish_session($session))[1], '', '  until it gets its identifier');
is(status_of($node, 'waits, ids_issued, slots_exhausted'), '2|262145|2', '  which is counted too');

# --- clock steps -----------------------------------------------------------------------------
clock_stands_at($node, $second - 100);
$node->sql('SELECT randflake_generate()') for 1 .. 5;
is(status_of($node, 'clock_steps_back'), 1, 'a clock that steps back is counted once');
is( $node->sql('SELECT extract(epoch FROM max(last_second) - clock_timestamp())::int'
          . ' FROM randflake_slots'), 101, '  and the slots show by how much it is behind');
clock_stands_at($node, $second - 99);
$node->sql('SELECT randflake_generate()');
is(status_of($node, 'clock_steps_back'), 1, '  an advance is not a step back');
# Uses one session, and so one slot, because other slots would not show a step of one second.
my $psql = $node->background_psql('postgres');
clock_stands_at($node, $second + 2);
$psql->query_safe('SELECT randflake_generate()');
clock_stands_at($node, $second + 1);
$psql->query_safe('SELECT randflake_generate()');
$psql->quit;
is(status_of($node, 'clock_steps_back'), 2, '  another one is');

# --- restart ---------------------------------------------------------------------------------
$node->stop;
clock_runs_from($node, $second + 3);
start_under_clock($node);
is(status_of($node, 'ids_issued, waits, clock_steps_back, window_extensions'), '0|0|0|0', 'a restart begins at zero');
$node->stop;

# --- leased ----------------------------------------------------------------------------------
my $coordinator = start_server('coordinator', settings => {}, extensions => [qw(randflake randflake_coordinator)]);
is(status_of($coordinator, 'mode, first_node_id, key_fingerprint'), 'static||',
    'a coordinator without node ids and secret of its own has a status');

my %settings = (coordinator => $coordinator->connstr('postgres'), secret => random_secret(),
    node_count => 3, max_wait => '1h');
my $holder = start_server('holder', settings => \%settings);
my $first = 'SELECT count(*) FROM randflake_generate(100)';
$holder->sql($first);

cmp_ok(written_end($holder), '<=', int(time) - 1730000000 + 3, 'leased: the state on disk is seconds ahead, not the lease');
is(status_of($holder, 'window_end - window_start >= interval $$60 s$$'), 't', '  though identifiers go on to the end of the lease');
is(status_of($holder, 'mode, node_count, problem, lease_error, window_extensions > 0'), 'leased|3|||t',
    'leased: mode and counters');
is(status_of($holder, "lease_id, first_node_id, extract(epoch FROM window_start)::bigint"),
    $coordinator->sql('SELECT lease_id, first_node_id, extract(epoch FROM starts_at)::bigint FROM randflake_leases'),
    '  and the lease, as the coordinator knows it');

my $worker = q{FROM pg_stat_activity WHERE backend_type = 'randflake lease worker'};
ok( $holder->poll_query_until('postgres', "SELECT wait_event IS NOT NULL $worker"),
    'the lease worker waits for its next renewal');
is( $holder->sql("SELECT wait_event_type, wait_event $worker"),
    'Extension|' . event_name($holder, 'RandflakeLease'), '  under a name of its own');

# CREATE DATABASE and DROP DATABASE wait until every process responds, including the lease worker.
$holder->sql('CREATE DATABASE other');
$holder->sql('DROP DATABASE other');
$holder->sql("SELECT pg_cancel_backend(pid) $worker");

# After a reload the lease worker asks the coordinator at once, so it notices a stopped coordinator.
$coordinator->stop;
$holder->reload;
ok($holder->poll_query_until('postgres', 'SELECT lease_error IS NOT NULL FROM randflake_status'),
    'a coordinator that is away shows as an error');
like(status_of($holder, 'problem'), qr/^identifiers end at .*: The coordinator has not answered since .*\.$/,
    '  told as a problem to come');
like(status_of($holder, 'lease_error'), qr/^could not renew the lease of node ids: /, '  with its reason');
is(status_of($holder, q{lease_error_at > clock_timestamp() - interval '1 h', lease_id IS NOT NULL}),
    't|t', '  and time, while the lease is still held');
$coordinator->start;
ok( $holder->poll_query_until('postgres', 'SELECT lease_error IS NULL AND lease_error_at IS NULL'
          . ' AND problem IS NULL FROM randflake_status'), '  until the coordinator is back');

# The counters survive a change of the lease. The first lease is short, so a new lease begins soon.
configure($holder, %settings, lease_duration => '4s');
$holder->restart;
$holder->sql($first);
my $issued = status_of($holder, 'ids_issued');
my $lease = status_of($holder, 'lease_id');
$coordinator->sql(q{UPDATE randflake_lease SET incarnation = '00000000-0000-0000-0000-000000000000'});
$holder->reload;
ok($holder->poll_query_until('postgres', "SELECT lease_id <> $lease FROM randflake_status"),
    'a lease that is refused is followed by another');
is(status_of($holder, 'ids_issued'), $issued, '  and the counters go on');

$holder->sql('SELECT randflake_generate()');
$holder->stop;
is($coordinator->sql('SELECT state FROM randflake_leases ORDER BY lease_id DESC LIMIT 1'), 'released',
    'a clean stop gives it back');
$coordinator->stop;
done_testing();
