# Stops the clock, so that calls wait. A wait may end only by randflake.max_wait, statement_timeout,
# a cancellation, a termination, or an advance of the clock. Also checks the clock that tests give
# to servers (lib/clock.c).
use Randflake;
use Time::HiRes qw(time);

my $node = start_server('main', own_clock => 1,
    settings => { node_id => 10, node_count => 2, secret => random_secret(), max_wait => '1h' });
$node->sql('SELECT randflake_generate()');

my $second = 10 + int time;
clock_stands_at($node, $second);
$node->sql(q{SET randflake.max_wait = '60s';}
      . ' CREATE TABLE made AS SELECT randflake_generate() AS id FROM generate_series(1, 262144)');
is_deeply(
    fields_of($node, 'SELECT id FROM made'),
    {
        count => 262144, distinct => 262144, nodes => '10 11',
        first_second => $second, last_second => $second,
        min_sequence => 0, max_sequence => 131071
    },
    'one session uses every number of the second, of both node ids');

for my $max_wait (0, 1, 300) {
    for my $sql (
        'SELECT randflake_generate()',
        'SELECT randflake_generate_text()',
        'SELECT * FROM randflake_generate(5)',
        'CREATE TEMP TABLE t (id bigint DEFAULT randflake_generate());'
        . ' INSERT INTO t VALUES (DEFAULT)') {
        my $began = time;
        error_is($node, "SET randflake.max_wait = $max_wait; $sql", '53400',
            { message => qr/every identifier of this second is used/,
              detail => qr/2 node ids give 262144 .*waited $max_wait ms/, hint => qr/"randflake\.node_count"/ },
            "exhausted, max_wait $max_wait: $sql");
        cmp_ok(time - $began, '>=', $max_wait / 1000, '  and not before that time');
    }
}
is($node->sql('SELECT randflake_generate(0)'), '', 'exhausted: asking for none succeeds');

my $wait = 'SELECT randflake_generate()';
my $waiting = q{FROM pg_stat_activity
                WHERE wait_event_type = 'Extension' AND query ~ 'randflake_generate'};

# Starts a session that waits, after these statements, and calls `end`. The wait must end with an
# error that matches `pattern`.
sub wait_ends($end, $pattern, $test_name, @statements) {
    my $session = start_session($node, @statements, $wait);
    wait_until_waiting($node, 1);
    $end->();
    like((finish_session($session))[1], $pattern, $test_name);
}
my $cancel = sub { $node->sql("SELECT pg_cancel_backend(pid) $waiting") };
my $cancelled = qr/57014: canceling statement due to user request/;

wait_ends($cancel, $cancelled, 'pg_cancel_backend ends a wait');
wait_ends(sub { $node->sql("SELECT pg_terminate_backend(pid) $waiting") },
    qr/57P01: terminating connection due to administrator command/, 'pg_terminate_backend ends a wait');
# The clock advances by more than the timeout, but stays in the same second.
wait_ends(sub { clock_stands_at($node, $second + 0.9) }, qr/57014: canceling statement due to statement timeout/,
    'statement_timeout ends a wait', q{SET statement_timeout = '100ms'});

my $force = $node->sql(q{SELECT name FROM pg_settings WHERE name IN ('debug_parallel_query', 'force_parallel_mode')});
wait_ends(sub {
        is($node->sql("SELECT backend_type $waiting"), 'parallel worker', 'a parallel worker waits');
        $node->sql(q{SELECT pg_cancel_backend(leader_pid) FROM pg_stat_activity WHERE leader_pid IS NOT NULL});
    }, $cancelled, 'canceling the leader ends the wait of its worker', "SET $force = on");

is( $node->sql(<<'SQL'), 'caught 10', 'a caught error leaves nothing behind');
SET randflake.max_wait = 10;
SET client_min_messages = warning;
CREATE TEMP TABLE caught (n integer);
DO $$ BEGIN
    FOR n IN 1..10 LOOP
        BEGIN
            PERFORM randflake_generate();
        EXCEPTION WHEN configuration_limit_exceeded THEN
            INSERT INTO caught VALUES (n);
        END;
    END LOOP;
END $$;
SELECT 'caught ' || count(*) FROM caught;
SQL

# Lets four sessions wait until the clock shows this second. Then `count` identifiers exist.
sub sessions_wait_until($until, $count) {
    my @sessions = map { start_session($node, 'INSERT INTO made SELECT randflake_generate()') } 1 .. 4;
    wait_until_waiting($node, 4);
    clock_stands_at($node, $until);
    is((finish_session($_))[1], '', 'a waiting session gets its identifier') for @sessions;
    all_distinct($node, 'SELECT id FROM made', $count, 'nothing twice');
    is(fields_of($node, 'SELECT id FROM made')->{last_second}, $until, 'they are of the next second');
}
sessions_wait_until($second + 1, 262148);

$node->stop;
start_under_clock($node);
for my $max_wait (0, 300) {
    error_is($node, "SET randflake.max_wait = $max_wait; SELECT randflake_generate()", '55000',
        { message => qr/window for identifiers is not open/, detail => qr/^It opens at / },
        "window not open, max_wait $max_wait: generate fails");
}
wait_ends($cancel, $cancelled, 'pg_cancel_backend ends a wait for the window');
# The window opens two or three seconds after the last one, as the machine is fast or slow.
my ($opens) = error_of($node, 'SET randflake.max_wait = 0; SELECT randflake_generate()')->{detail} =~ /^It opens at (.*)\.$/m;
$second = $node->sql("SELECT extract(epoch FROM '$opens'::timestamptz)::bigint") - 2;
sessions_wait_until($second + 2, 262152);

my $start_of_log = -s $node->logfile;

# Uses up a second's numbers, and then calls once more. Returns how often the log reports the error.
sub lines_after($at, $function, $numbers) {
    clock_stands_at($node, $at);
    $node->sql("SELECT count(*) FROM $function($numbers)");
    my ($status, $out, $errors) = $node->psql('postgres',
        "SET log_statement = none; SET client_min_messages = log; SET randflake.max_wait = 0; SELECT $function()");
    like($errors, qr/^(?!.*\bLOG:).*every identifier of this second is used/s,
        "$function at $at: the client gets the error alone");
    return () = slurp_file($node->logfile, $start_of_log) =~ /LOG: .*every identifier of this second/g;
}

is(lines_after($second + 3, 'randflake_generate', 262144), 1, 'the log says it at once');
like(slurp_file($node->logfile, $start_of_log),
    qr/DETAIL:  2 node ids give 262144 identifiers a second\. Calls wait.*\n.*HINT: .*node_count" and restart/,
    '  with the remedy');
is(lines_after($second + 62, 'randflake_generate', 262144), 1, 'not again within a minute');
is(lines_after($second + 63, 'randflake53_generate', 65536), 2, 'again after it, also for 53 bits');
is(lines_after($second + 64, 'randflake_generate', 262144), 2, '  and one clock counts for both');

# No process reads a half-written time. A step across 2^60 ns changes most bits, so a half-written
# time would equal neither time.
my @times = qw(1152921504.606846 1152921504.606847);
clock_stands_at($node, $times[0]);
my $session = start_session($node,
    "SELECT string_agg(DISTINCT extract(epoch FROM clock_timestamp())::text, ' ') FROM generate_series(1, 2000000)");
my $steps = 0;
while ($session->{handle}->pumpable) {
    clock_stands_at($node, $times[ $steps++ % 2 ]) for 1 .. 100;
    $session->{handle}->pump_nb;
}
is(join('', finish_session($session)), "@times", "$steps steps, and none by halves");
$node->stop;
done_testing();
