# Moves the clock forward and back, while the server runs and while it is stopped. Checks that no
# identifier repeats, that each error names a remedy, and that the remedy helps. With spare ranges
# of node ids, the server changes to one of them, and continues at the clock's time.
use Randflake;
use RandflakeHistory;
use RandflakeWindowFile;
use Time::HiRes qw(sleep time);

my $first = 1730000000;             # 2024-10-27 03:33:20
my $limit = 1 << 30;                # the first second beyond the last, since then
my $year = 365 * 86400;
my $hour = 3600;

my $secret = random_secret();
my $node = new_server('main', settings => {}, conf => "restart_after_crash = on\nlog_statement = none\n");
my $history = RandflakeHistory->new($secret);

sub restart_off_by($offset, %settings) {
    $node->stop if $node->{_pid};
    configure($node, secret => $secret, max_wait => '60s', max_clock_skew => '100ms', %settings);
    clock_offset($node, $offset);
    start_under_clock($node);
}

# Starts the server without its state, as if it were new.
sub start_anew_off_by {
    $node->stop;
    system_or_bail('rm', '-r', $node->data_dir . '/randflake');
    restart_off_by(@_);
}

sub server_second { return $node->sql("SELECT floor(extract(epoch FROM clock_timestamp())) - $first") }

sub generates($test_name, $count = 1000) {
    my $now = server_second();
    my $era = $history->generates($node, $count, $test_name);
    cmp_ok($era->{first}, '>=', $now, "$test_name: in no second before the clock's");
    return $era;
}

# Uses up the server's remaining numbers. If a number remains, the next check fails.
sub exhaust {
    my ($file) = $history->generate($node, 131072, 0);
    $history->add_era($file);
}

sub refuses($test_name, $sqlstate, %patterns) {
    error_is($node, q{SET randflake.max_wait = '100ms'; SELECT randflake_generate()},
        $sqlstate, \%patterns, "$test_name: refuses", problem => 1);
}

# Checks that the error says how far the clock is off, give or take the duration of the test.
sub refuses_by($test_name, $seconds, $message, $detail, $hint) {
    my $error = error_of($node, q{SET randflake.max_wait = '100ms'; SELECT randflake_generate()});
    my ($off) = $error->{message} =~ $message;
    ok($error->{sqlstate} eq '55000' && defined $off && abs($off - $seconds) < 600
          && $error->{detail} =~ $detail && $error->{hint} eq $hint, "$test_name: refuses, $seconds s off")
      or diag($error->{text});
    is_problem($node, $error, $test_name);
}

sub refuses_behind($test_name, $seconds, $what) {
    refuses_by($test_name, $seconds, qr/^the clock is (\d+) seconds behind \Q$what\E$/,
        qr/^The clock shows .*\. The server issues no identifier before .*\.$/,
        'Set the clock if it is wrong, or wait until it has caught up. If it was in the future before, raise'
          . ' "randflake.spare_node_ranges", or set "randflake.node_id" to node ids that were never used, and restart'
          . ' the server.');
}

sub refuses_jumped($test_name, $seconds) {
    refuses_by($test_name, $seconds, qr/^the clock has jumped (\d+) seconds ahead since the server started$/,
        qr/^The clock shows .*\.$/, 'Set the clock if it is wrong. If it is right, restart the server.');
}

# The test sets CLOCK_REALTIME_COARSE but not CLOCK_BOOTTIME. The test passes only if identifiers
# use the first clock and the server measures jumps against the second.

# --- back ----------------------------------------------------------------------------------------
restart_off_by(0, node_id => 1);
$node->sql('CREATE EXTENSION randflake');

my $before = generates('true clock');
clock_offset($node, -5);
my $era = generates('back 5 s', 200_000);
ok($era->{first} >= $before->{last}, 'back 5 s: no second comes again');

clock_offset($node, 0);
generates('true again');
clock_offset($node, -$hour);
$era = generates('back 1 h');
is($era->{first}, $era->{last}, 'back 1 h: goes on in the second it had reached');
exhaust();
refuses_behind('back 1 h', $hour, 'the last identifier');

restart_off_by(-$hour, node_id => 1);
refuses_behind('back 1 h, restarted', $hour, 'the end of the last window');
clock_offset($node, 0);
generates('back 1 h, restarted, set right');

restart_off_by(-$hour, node_id => 2);
generates('back 1 h, with another node id');

# --- forward 23 hours ----------------------------------------------------------------------------
restart_off_by(0, node_id => 10);
generates('true clock');
clock_offset($node, 23 * $hour);
generates('forward 23 h');
clock_offset($node, 0);
exhaust();
refuses_behind('forward 23 h and back', 23 * $hour, 'the last identifier');
crash_server($node);
restart_off_by(0, node_id => 10);
refuses_behind('forward 23 h and back, crashed', 23 * $hour, 'the end of the last window');
restart_off_by(23 * $hour, node_id => 10);
generates('forward 23 h again');

# --- forward, ten years --------------------------------------------------------------------------
restart_off_by(0, node_id => 20);
generates('true clock');
my $written = written_end($node);
clock_offset($node, 10 * $year);
refuses_jumped('forward 10 years', 10 * $year);
crash_backend($node);
refuses_jumped('forward 10 years, after a crash of a backend', 10 * $year);
is(written_end($node), $written, 'forward 10 years: the written end is not raised');
clock_offset($node, 0);
generates('forward 10 years and back');

# If the new time is right, the operator restarts the server.
clock_offset($node, 10 * $year);
restart_off_by(10 * $year, node_id => 20);
$before = generates('forward 10 years, restarted');
clock_offset($node, 0);
$era = generates('forward 10 years, restarted, and back');
is($era->{first}, $before->{last}, 'forward 10 years, restarted, and back: goes on in the second it had reached');
exhaust();
refuses_behind('forward 10 years, restarted, and back', 10 * $year, 'the last identifier');

# If the new time was wrong, the operator configures unused node ids. With the old ones, calls fail.
restart_off_by(0, node_id => 20);
refuses_behind('far future written', 10 * $year, 'the end of the last window');
restart_off_by(0, node_id => 21);
generates('far future written, unused node id');
restart_off_by(0, node_id => 20);
refuses_behind('far future written, back to its node id', 10 * $year, 'the end of the last window');
restart_off_by(0, node_id => 19, node_count => 3);
refuses_behind('far future written, range with its node id', 10 * $year, 'the end of the last window');
crash_server($node);
restart_off_by(0, node_id => 21);
generates('far future written, unused node id again');
restart_off_by(10 * $year, node_id => 20);
generates('far future reached');

# --- the hold-off --------------------------------------------------------------------------------
restart_off_by(0, node_id => 30);
generates('true clock');
restart_off_by(0, node_id => 30);
unlink $node->data_dir . '/randflake/identity' or die "could not remove the identity file: $!";
clock_offset($node, 10 * $year);
refuses_jumped('copied state, forward 10 years', 10 * $year);
clock_offset($node, 0);
generates('copied state, forward 10 years and back');

# If the clock was ahead at the start and was set back, the hold-off begins at the present time.
start_anew_off_by(10 * $year, node_id => 31);
clock_offset($node, 0);
$era = generates('first use, started 10 years ahead');
ok($era->{last} < time + 60 - $first, 'first use, started 10 years ahead: at the true time');

# --- range of times ------------------------------------------------------------------------------
my $too_early = ['22008', message => qr/^the clock is before the first second of an identifier$/,
    detail => qr/^The clock shows .*; identifiers hold times from .*\.$/, hint => qr/^Set the server's clock\.$/];
my $too_late = ['22008', message => qr/^the clock is after the last second of an identifier$/,
    detail => qr/^The clock shows .*; identifiers hold times through .*\.$/, hint => qr/^Set the server's clock\.$/];

restart_off_by(0, node_id => 40);
generates('true clock');
for my $case (
    [ 'before 2024', $first - $hour - time, $too_early ],
    [ 'after 2058', $first + $limit + $hour - time, $too_late ]) {
    my ($name, $offset, $error) = @$case;
    clock_offset($node, $offset);
    my $bytes = window_bytes($node);
    refuses("$name, running", @$error);
    is(window_bytes($node), $bytes, "$name, running: nothing is written");
    is($node->sql(q{SELECT sequence FROM randflake_decode(randflake_encode('2030-01-01', 1, 2))}),
        2, "$name, running: decode and encode work");
    restart_off_by($offset, node_id => 40);
    my $stopped = window_bytes($node);
    refuses("$name, restarted", @$error);
    is(window_bytes($node), $stopped, "$name: nothing is written");
    restart_off_by(0, node_id => 40);
    generates("$name, set right");
}

restart_off_by($first + $limit - 60 - time, node_id => 51);
generates('the last minute');
clock_stands_at($node, $first + $limit - 1);
$era = generates('the last second');
is("$era->{first} $era->{last}", join(' ', ($limit - 1) x 2), 'the last second is used');
clock_runs_from($node, $first + $limit);
refuses('beyond the last second', @$too_late);
crash_server($node);
is(written_end($node), $limit, 'beyond the last second: the written end is the limit');
restart_off_by(0, node_id => 52);
generates('beyond the last second, and back, with an unused node id');

# --- spare ranges --------------------------------------------------------------------------------
# A step back by less than max_clock_skew is waited for. With one node id, sessions share one slot.
# With more, a session may get an idle slot, and go on at the earlier time in the same range.
my @spare = (node_id => 100, spare_node_ranges => 4, max_clock_skew => '2s');

sub generates_by_the_clock($test_name, $range) {
    my ($file, $errors) = $history->generate($node, 1000);
    my $era = $history->add_era($file);
    my $clock = server_second();
    ok($era->{count} == 1000 && $era->{first} > $clock - 60 && $era->{last} <= $clock + 3,
        "$test_name: identifiers have the clock's time")
      or diag("clock $clock, got $era->{count} from $era->{first} to $era->{last}: $errors");
    is(status_of($node, 'node_range, first_node_id'), $range . '|' . (100 + $range), "$test_name: range $range");
}

# Checks that calls fail once sessions have used up every second that the server has reached.
sub refuses_every_range($test_name) {
    exhaust();
    error_is($node, q{SET randflake.max_wait = '100ms'; SELECT randflake_generate()}, '55000',
        { message => qr/^the clock is \d+ seconds behind /, detail => qr/ No range of node ids may be used before /,
          hint => qr/raise "randflake\.spare_node_ranges", or set "randflake\.node_id"/ }, $test_name, problem => 1);
}

# The server accepts no time before its start, so the test starts it with a clock that is behind.
start_anew_off_by(-3 * $hour, @spare);
generates_by_the_clock('at the start', 0);
clock_offset($node, 0);
generates_by_the_clock('forward 3 h', 0);
is(status_of($node, 'problem IS NULL, spare_ranges_left'), 't|4', 'forward 3 h: no problem, four spare ranges');

for my $small (0.02, 1) {
    clock_offset($node, -$small);
    generates_by_the_clock("back $small s", 0);
}
my $log = -s $node->logfile;
clock_offset($node, -60);
generates_by_the_clock('back 1 min', 1);
ok($node->log_contains('LOG: .*the clock was set back: identifiers have node ids 101 to 101 from now on', $log),
    'back 1 min: logged');
like(status_of($node, 'problem'), qr/^a spare range of node ids is in use: The clock was set back/, 'back 1 min: a problem');
clock_offset($node, -$hour);
generates_by_the_clock('back 1 h', 2);
clock_offset($node, 0);
generates_by_the_clock('right again', 2);
clock_offset($node, -60);
$node->sql(q{SET randflake.max_wait = '60s'; SELECT count(*) FROM randflake_generate(131072)});
clock_offset($node, -0.5 * $hour);
generates_by_the_clock('back 30 min', 4);
is(status_of($node, 'spare_ranges_left'), 0, 'back 30 min: no range is left');

clock_offset($node, -2 * $hour);
refuses_every_range('all ranges are used');
clock_offset($node, 60);
generates_by_the_clock('later than before', 4);
is(status_of($node, 'problem IS NULL, spare_ranges_left'), 't|4', 'later: the ranges are back');
clock_offset($node, -4 * $hour);
refuses_every_range('before the floor');

clock_offset($node, 60);
generates_by_the_clock('right again', 4);
$node->stop('immediate');
restart_off_by(-$hour, @spare);
refuses_every_range('a start with a clock behind');
restart_off_by(-$hour, @spare, spare_node_ranges => 6);
generates_by_the_clock('with more ranges', 5);
clock_offset($node, -0.5 * $hour);
generates_by_the_clock('forward', 5);
crash_backend($node);
generates_by_the_clock('after a crash of a backend', 5);
clock_offset($node, -$hour + 60);
generates_by_the_clock('back after a crash of a backend', 6);

restart_off_by(120, @spare, spare_node_ranges => 7);
generates_by_the_clock('restarted', 6);
restart_off_by(120, @spare, node_id => 110, node_count => 2, spare_node_ranges => 7);
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
$era = $history->add_era(@files);
cmp_ok($era->{count}, '>', 1000, 'under load: identifiers');
my $changes = () = slurp_file($node->logfile, $log) =~ /the clock was set back/g;
cmp_ok($changes, '>=', 3, 'under load: the range changes');
is(status_of($node, 'first_node_id - 2 * node_range'), 110, 'under load: each range has two node ids');

$history->no_duplicates('clocks');

# A secret begins after the seconds of every range.
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
is(status_of($node, 'node_range'), 1, 'before a rotation: a spare range');
my $from = int(time) + 3050;
write_secrets($node, $secret, $from => random_secret());
error_is($node, 'SELECT randflake_reload_secret()', '55000', { message => qr/secret/ },
    'a secret may not begin in seconds that another range has used');
$from += 100;
is(reload_secrets($node, $secret, $from => random_secret()), 2, 'a secret after these is taken');
clock_offset($node, 3160);
is( $node->sql('SELECT abs(extract(epoch FROM randflake_generated_at(randflake_generate()) - clock_timestamp())) < 60'),
    't', '  and in use when its time comes');

for my $case ([ 1022, 'snowflake_generate()', 'the layout of Snowflake', qr/^node ids 1024 to 1024 do not fit in layout/ ],
    [ 254, 'randflake53_generate()', '53-bit identifiers', qr/^node id.* 256 .*do not fit in 53-bit identifiers$/ ]) {
    my ($node_id, $call, $told, $message) = @$case;
    $log = -s $node->logfile;
    start_anew_off_by(-600, node_id => $node_id, spare_node_ranges => 2);
    ok($node->log_contains("not all spare ranges of node ids fit in $told", $log), "$call: told at the start");
    for my $offset (0, -60, -120) {
        clock_offset($node, $offset);
        $node->sql('SELECT randflake_generate()');
        if ($offset > -120) {
            like($node->sql("SELECT $call"), qr/^\d+$/, "$call: a range that fits");
        } else {
            error_is($node, "SELECT $call", '55000', { message => $message }, "$call: a range that does not");
        }
    }
}
$node->stop;
done_testing();
