# Moves the clock forward and back, while the server runs and while it is stopped. Checks that no
# identifier repeats, that each error names a remedy, and that the remedy helps.
use Randflake;
use RandflakeHistory;
use RandflakeWindowFile;
use Time::HiRes qw(time);

my $first = 1730000000;             # 2024-10-27 03:33:20
my $limit = 1 << 30;                # the first second beyond the last, since then
my $year = 365 * 86400;
my $hour = 3600;

my $secret = random_secret();
my $node = new_server('main', settings => {}, conf => "restart_after_crash = on\nlog_statement = none\n");
my $history = RandflakeHistory->new($secret);

sub restart_off_by($offset, %settings) {
    $node->stop if $node->{_pid};
    configure($node, secret => $secret, max_wait => '60s', %settings);
    clock_offset($node, $offset);
    start_under_clock($node);
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

my $behind_hint = 'Set the clock if it is wrong, or wait until it has caught up. If it was in the'
  . ' future before, raise "randflake.spare_node_ranges", or set "randflake.node_id" to node ids that'
  . ' were never used, and restart the server.';

# Checks that the error says how far the clock is behind, give or take the duration of the test.
sub refuses_behind($test_name, $seconds, $what) {
    my $error = error_of($node, q{SET randflake.max_wait = '100ms'; SELECT randflake_generate()});
    my ($behind) = $error->{message} =~ /^the clock is (\d+) seconds behind \Q$what\E$/;
    ok($error->{sqlstate} eq '55000' && defined $behind && abs($behind - $seconds) < 600
          && $error->{detail} =~ /^The clock shows .*\. The server issues no identifier before .*\.$/
          && $error->{hint} eq $behind_hint, "$test_name: refuses, $seconds s behind $what") or diag($error->{text});
    is_problem($node, $error, $test_name);
}

my $jumped_hint = qr/^Set the clock if it is wrong\. If it is right, restart the server\.$/;

sub refuses_jumped($test_name, $seconds) {
    my $error = error_of($node, q{SET randflake.max_wait = '100ms'; SELECT randflake_generate()});
    my ($ahead) = $error->{message} =~ /^the clock has jumped (\d+) seconds ahead since the server started$/;
    ok($error->{sqlstate} eq '55000' && defined $ahead && abs($ahead - $seconds) < 600
          && $error->{detail} =~ /^The clock shows .*\.$/ && $error->{hint} =~ $jumped_hint,
        "$test_name: refuses, $seconds s ahead") or diag($error->{text});
    is_problem($node, $error, $test_name);
}

sub window_bytes { return slurp_file(window_path($node)) }

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
$node->stop;
system_or_bail('rm', '-r', $node->data_dir . '/randflake');
restart_off_by(10 * $year, node_id => 31);
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
    my $bytes = window_bytes();
    refuses("$name, running", @$error);
    is($node->sql(q{SELECT sequence FROM randflake_decode(randflake_encode('2030-01-01', 1, 2))}),
        2, "$name, running: decode and encode work");
    restart_off_by($offset, node_id => 40);
    my $stopped = window_bytes();
    refuses("$name, restarted", @$error);
    is(window_bytes(), $stopped, "$name: nothing is written");
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

$history->no_duplicates('clocks');
$node->stop;
done_testing();
