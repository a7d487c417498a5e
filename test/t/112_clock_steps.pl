# Sets the clock back. Checks that the server changes to node ids of a spare range and continues at
# the clock's time, and that no identifier repeats.
use Randflake;
use RandflakeHistory;
use RandflakeSecrets;
use Time::HiRes qw(sleep time);

my $first = 1730000000;             # 2024-10-27 03:33:20
my $hour = 3600;

my $secret = random_secret();
my $node = new_server('main', settings => {}, conf => "restart_after_crash = on\nlog_statement = none\nmax_connections = 50\n");
my $history = RandflakeHistory->new($secret);

sub start_off_by($offset, %settings) {
    $node->stop if $node->{_pid};
    configure($node, secret => $secret, max_wait => '60s', node_id => 100, node_count => 2,
        spare_node_ranges => 4, %settings);
    clock_offset($node, $offset);
    start_under_clock($node);
    return;
}

sub status { return status_of($node, @_) }

sub generates_by_the_clock($test_name, $range) {
    my $now = time;
    my ($file, $errors) = $history->generate($node, 1000);
    note(sprintf '%s: 1000 identifiers after %.2f s', $test_name, time - $now);
    my $era = $history->add_era($file);
    my $clock = $node->sql('SELECT extract(epoch FROM clock_timestamp())') - $first;
    ok($era->{count} == 1000 && $era->{first} > $clock - 60 && $era->{last} <= $clock + 3,
        "$test_name: identifiers have the clock's time")
      or diag("clock $clock, got $era->{count} from $era->{first} to $era->{last}: $errors");
    is(status('node_range, first_node_id'), $range . '|' . (100 + 2 * $range), "$test_name: range $range")
      if defined $range;
    return;
}

# Checks that calls fail once sessions have used up every second that the server has reached.
sub refuses($test_name, $detail) {
    my ($file) = $history->generate($node, 2 * 131072, 0);
    $history->add_era($file);
    # A session's slot may still have numbers, but not as many as this call wants.
    error_is($node, q{SET randflake.max_wait = '100ms'; SELECT count(*) FROM randflake_generate(2 * 131072)}, '55000',
        { message => qr/^the clock is \d+ seconds behind /, detail => $detail,
          hint => qr/raise "randflake\.spare_node_ranges", or set "randflake\.node_id"/ }, $test_name, problem => 1);
    return;
}

# The server accepts no time before its start, so the test starts it with a clock that is behind.
start_off_by(-3 * $hour);
$node->sql('CREATE EXTENSION randflake');
generates_by_the_clock('at the start', 0);
clock_offset($node, 0);
generates_by_the_clock('forward 3 h', 0);
is(status('problem IS NULL, spare_ranges_left'), 't|4', 'forward 3 h: no problem, four spare ranges');

for my $small (0.02, 1) {
    clock_offset($node, -$small);
    generates_by_the_clock("back $small s", 0);
}
my $log = -s $node->logfile;
clock_offset($node, -60);
generates_by_the_clock('back 1 min', 1);
ok($node->log_contains('LOG: .*the clock was set back: identifiers have node ids 102 to 103 from now on', $log),
    'back 1 min: logged');
like(status('problem'), qr/^a spare range of node ids is in use: The clock was set back/, 'back 1 min: a problem');
clock_offset($node, -$hour);
generates_by_the_clock('back 1 h', 2);
clock_offset($node, 0);
generates_by_the_clock('right again', 2);
clock_offset($node, -60);
$node->sql(q{SET randflake.max_wait = '60s'; SELECT count(*) FROM randflake_generate(2 * 131072)});
clock_offset($node, -0.5 * $hour);
generates_by_the_clock('back 30 min', 4);
is(status('spare_ranges_left'), 0, 'back 30 min: no range is left');

clock_offset($node, -2 * $hour);
refuses('all ranges are used', qr/ No range of node ids may be used before /);
clock_offset($node, 60);
generates_by_the_clock('later than before', 4);
is(status('problem IS NULL, spare_ranges_left'), 't|4', 'later: the ranges are back');
clock_offset($node, -4 * $hour);
refuses('before the floor', qr/ No range of node ids may be used before /);

clock_offset($node, 60);
generates_by_the_clock('right again', 4);
$node->stop('immediate');
start_off_by(-$hour);
refuses('a start with a clock behind', qr/ No range of node ids may be used before /);
start_off_by(-$hour, spare_node_ranges => 6);
generates_by_the_clock('with more ranges', 5);
clock_offset($node, -0.5 * $hour);
generates_by_the_clock('forward', 5);
crash_backend($node);
generates_by_the_clock('after a crash of a backend', 5);
clock_offset($node, -$hour + 60);
generates_by_the_clock('back after a crash of a backend', 6);

start_off_by(120, spare_node_ranges => 7);
generates_by_the_clock('under load', 6);
clock_offset($node, 1000);
$log = -s $node->logfile;
$node->sql(<<'SQL');
CREATE TABLE numbers AS SELECT generate_series(1, 500);
ALTER DATABASE postgres SET parallel_setup_cost = 0;
ALTER DATABASE postgres SET parallel_tuple_cost = 0;
ALTER DATABASE postgres SET min_parallel_table_scan_size = 0;
SQL
like($node->sql('EXPLAIN SELECT randflake_generate() FROM numbers'), qr/Gather/, 'parallel workers');
my @clients = $history->start_clients($node, map { ('single', 'copy', 'rollback', 'parallel') } 1 .. 4);
wait_until_received(@clients);
for my $offset (900, 800, 700, 950, 600) {
    clock_offset($node, $offset);
    sleep 1;
}
my @files = end_clients($node, @clients);
my $era = $history->add_era(@files);
cmp_ok($era->{count}, '>', 1000, 'under load: identifiers');
my $changes = () = slurp_file($node->logfile, $log) =~ /the clock was set back/g;
cmp_ok($changes, '>=', 3, 'under load: the range changes');

$history->no_duplicates('clock steps');

$node->stop;
write_secrets($node, $secret);
configure($node, secret_file => secret_path($node), max_wait => '60s', node_id => 200, spare_node_ranges => 1);
clock_offset($node, 3000);
start_under_clock($node);
$node->sql('SELECT randflake_generate()');
clock_offset($node, 3100);
$node->sql('SELECT randflake_generate()');
clock_offset($node, 3020);
$node->sql('SELECT randflake_generate()');
is(status('node_range'), 1, 'before a rotation: a spare range');
my $from = int(time) + 3050;
write_secrets($node, $secret, $from => random_secret());
error_is($node, 'SELECT randflake_reload_secret()', '55000', { message => qr/secret/ },
    'a secret may not begin in seconds that another range has used');
$from += 100;
is(reload_secrets($node, $secret, $from => random_secret()), 2, 'a secret after these is taken');
clock_offset($node, 3160);
is( $node->sql('SELECT abs(extract(epoch FROM randflake_generated_at(randflake_generate()) - clock_timestamp())) < 60'),
    't', '  and in use when its time comes');
$node->stop;

for my $case ([ 1022, 'snowflake_generate()', 'the layout of Snowflake', qr/^node ids 1024 to 1024 do not fit in layout/ ],
    [ 254, 'randflake53_generate()', '53-bit identifiers', qr/^node id.* 256 .*do not fit in 53-bit identifiers$/ ]) {
    my ($node_id, $call, $told, $message) = @$case;
    $node = new_server("from_$node_id", settings => {}, conf => "log_statement = none\n");
    configure($node, secret => $secret, max_wait => '60s', node_id => $node_id, node_count => 1, spare_node_ranges => 2);
    clock_offset($node, -600);
    start_under_clock($node);
    ok($node->log_contains("not all spare ranges of node ids fit in $told"), "$call: told at the start");
    $node->sql('CREATE EXTENSION randflake');
    for my $offset (0, -60, -120) {
        clock_offset($node, $offset);
        $node->sql('SELECT randflake_generate()');
        if ($offset > -120) {
            like($node->sql("SELECT $call"), qr/^\d+$/, "$call: a range that fits");
        } else {
            error_is($node, "SELECT $call", '55000', { message => $message }, "$call: a range that does not");
        }
    }
    $node->stop;
}
done_testing();
