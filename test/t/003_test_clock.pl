# The clock that other tests give to servers (lib/clock.c): each server has its own, which all of
# its processes see alike at every instant. 110_clock.pl shows that other clocks are untouched.

use Randflake;
use Time::HiRes qw(time);

my ($node, $other) = map {
    new_server($_,
        settings => { node_id => 1, secret => random_secret(), max_wait => '60s' },
        conf => "log_line_prefix = '%n %p '\nlog_checkpoints = on\n")
} qw(main other);
start_under_clock($node);
$node->safe_psql('postgres', 'CREATE EXTENSION randflake; SELECT randflake_generate()');
my $psql = $node->background_psql('postgres');

# A session sees the clock this far ahead of the test's own.
sub is_ahead {
    my ($node, $seconds, $test_name) = @_;
    my $before = time;
    my $shown = $node->safe_psql('postgres', 'SELECT extract(epoch FROM clock_timestamp())');
    my $after = time;
    ok($shown - $before > $seconds - 0.01 && $shown - $after < $seconds + 0.01, $test_name)
      or diag("between $before and $after: $shown");
}

# --- a clock for each server -------------------------------------------------------------------

is_ahead($node, 0, 'the true time at first');
clock_offset($other, 1.5);
start_under_clock($other);
clock_offset($node, -1.5);
is_ahead($node, -1.5, 'one server is behind');
is_ahead($other, 1.5, 'the other one ahead');
$other->stop;

# --- one clock for all processes ---------------------------------------------------------------

# In a session from before the step, through each of the replaced functions.
my $second = 50 + int time;
clock_stands_at($node, $second + 0.25);
is($psql->query_safe(<<'SQL'), "$second.250000|$second|$second.250", 'a session that was there before');
SELECT extract(epoch FROM clock_timestamp()),
       extract(epoch FROM randflake_generated_at(randflake_generate()))::bigint,
       extract(epoch FROM (snowflake_decode(snowflake_generate())).generated_at)::numeric(13, 3)
SQL

my $log_start = -s $node->logfile;
$node->reload;
$node->safe_psql('postgres', 'CHECKPOINT');
my $postmaster = postmaster_of($node);
my $checkpointer = $node->safe_psql('postgres',
    q{SELECT pid FROM pg_stat_activity WHERE backend_type = 'checkpointer'});
$node->wait_for_log(qr/ $checkpointer LOG:  checkpoint complete/, $log_start);
like(slurp_file($node->logfile, $log_start), qr/^$second\.250 $_->[0] LOG:  $_->[1]/m, $_->[2])
  for [ $postmaster, 'received SIGHUP', 'the postmaster' ],
  [ $checkpointer, 'checkpoint complete', 'a process that had slept' ];

my $seen = 0;
for my $step (1 .. 20) {
    clock_stands_at($node, $second + $step * 1e6);
    $seen++ if $psql->query_safe('SELECT extract(epoch FROM clock_timestamp())') == $second + $step * 1e6;
}
is($seen, 20, 'every step is seen at once');

# No process sees half a step, from most bits set (2^60 ns and a little less) to most bits clear.
my @times = qw(1152921504.606846 1152921504.606847);
clock_stands_at($node, $times[0]);
my $session = start_session($node, <<"SQL");
SELECT string_agg(DISTINCT extract(epoch FROM clock_timestamp())::text, ' ')
FROM generate_series(1, 2000000)
SQL
my $steps = 0;
while ($session->{handle}->pumpable) {
    clock_stands_at($node, $times[ $steps++ % 2 ]) for 1 .. 100;
    $session->{handle}->pump_nb;
}
my ($shown, $errors) = finish_session($session);
is("$shown$errors", "@times", "$steps steps, and none by halves");

$psql->quit;
$node->stop;
done_testing();
