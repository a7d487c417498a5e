# Stops, restarts and crashes of backends: every start goes on with later seconds than any before,
# so nothing comes twice.

use Randflake;

# Two node ids: backends share slots, and each start would use the same numbers again if it began
# in the same second.
my $node = start_server(
    'main',
    settings => { node_id => 70, node_count => 2, secret => random_secret(), max_wait => '1h' },
    conf => 'restart_after_crash = on');
$node->safe_psql('postgres', 'CREATE TABLE made (id bigint, start integer)');

my $start = 0;

# Several sessions at once make identifiers in this start of the server.
sub make {
    my ($label) = @_;
    $start++;
    my @sessions = map {
        start_session($node,
            ("INSERT INTO made SELECT randflake_generate(), $start FROM generate_series(1, 500)") x 3)
    } 1 .. 3;
    is((finish_session($_))[1], '', "$label: a session makes identifiers") for @sessions;
}

sub restart_after_kill {
    my ($pid) = @_;
    my $log_start = -s $node->logfile;
    is(kill('KILL', $pid), 1, 'a process of the server is killed');
    $node->wait_for_log(qr/database system is ready to accept connections/, $log_start);
    $node->poll_query_until('postgres', 'SELECT true') or die 'no connection after a crash';
}

make('first start');
for my $mode ('fast', 'smart', 'immediate', 'fast', 'fast') {
    $node->stop($mode);
    $node->start;
    make("after a stop, $mode");
}

# A backend that is killed while it generates
my $victim = start_session($node, 'SELECT pg_backend_pid()',
    'SELECT count(randflake_generate()) FROM (SELECT generate_series(1, 1000000000)) AS n');
$node->poll_query_until('postgres',
    q{SELECT count(*) = 1 FROM pg_stat_activity WHERE query ~ '^SELECT count\(randflake'});
restart_after_kill(
    $node->safe_psql('postgres',
        q{SELECT pid FROM pg_stat_activity WHERE query ~ '^SELECT count\(randflake'}));
like((finish_session($victim))[1], qr/server closed the connection/, 'the session ends');
make('after the kill of a generating backend');

# One that has generated and is idle
$victim = start_session($node, 'SELECT randflake_generate(), pg_advisory_lock(1)',
    'SELECT pg_sleep(3600)');
$node->poll_query_until('postgres',
    q{SELECT count(*) = 1 FROM pg_stat_activity WHERE query ~ '^SELECT pg_sleep'});
restart_after_kill(
    $node->safe_psql('postgres',
        q{SELECT pid FROM pg_stat_activity WHERE query ~ '^SELECT pg_sleep'}));
finish_session($victim);
make('after the kill of an idle backend');

all_distinct($node, 'SELECT id FROM made', $start * 4500, 'nothing twice in all of it');
is( $node->safe_psql('postgres', <<'SQL'), '', 'every start has later seconds than the one before');
SELECT start FROM (
    SELECT start, min(second), lag(max(second)) OVER (ORDER BY start) AS before
    FROM (SELECT start, randflake_generated_at(id) AS second FROM made) AS m
    GROUP BY start) AS starts
WHERE min <= before
SQL
is(fields_of($node, 'SELECT id FROM made')->{nodes}, '70 71', 'both node ids were in use');

$node->stop;
done_testing();
