# Checks that a server with another secret refuses to read values of type randflake, because it
# would sort them wrongly. Tests restores, restarts, and databases that are not bound to a secret.
use Randflake;

my $secret = random_secret();
my $other_secret = random_secret();
my $dumps = tempdir();

my $node = start_server('main', init => [ allows_streaming => 1 ], extensions => ['randflake_type'],
    settings => { node_id => 1, secret => $secret, max_wait => '1h' });
my $fingerprint = $node->sql('SELECT key_fingerprint FROM randflake_status');
is($node->sql('TABLE randflake_key'), $fingerprint, 'CREATE EXTENSION binds the type to the secret');

$node->sql('CREATE TABLE before (id randflake PRIMARY KEY DEFAULT randflake_next(), n integer);'
      . 'INSERT INTO before (n) SELECT n FROM generate_series(1, 1000) AS n');
my $content = q{SELECT md5(string_agg(format('%s %s %s', id, id::bigint, n), ',' ORDER BY id)) FROM before};
my $expected = $node->sql($content);
$node->command_ok([ 'pg_dump', '-Fc', '-f', "$dumps/custom", '-d', $node->connstr('postgres') ], 'pg_dump');

# --- another fingerprint ---------------------------------------------------------------------
$node->sql('CREATE DATABASE beside TEMPLATE postgres');
my $session = start_session($node, '\c beside', 'SELECT count(id::text) FROM before', q{DO $$ BEGIN
    WHILE (SELECT count(*) FROM randflake_key) = 1 LOOP COMMIT; PERFORM pg_sleep(0.1); END LOOP; END $$},
    'SELECT count(id::text) FROM before');
$node->poll_query_until('beside', q{SELECT count(*) = 1 FROM pg_stat_activity WHERE query ~ '^DO'});
$node->safe_psql('beside', q{INSERT INTO randflake_key VALUES ('0123456789abcdef')});
my ($out, $error) = finish_session($session);
is($out, 1000, 'a session that could read');
like($error, qr/55000: values of type randflake in this database belong to another secret/,
    '  cannot after another fingerprint arrived');

# --- a changed secret ------------------------------------------------------------------------
configure($node, node_id => 1, secret => $other_secret, max_wait => '1h');
$node->restart;
error_is($node, 'SELECT id FROM before', '55000', { detail => qr/key fingerprint \Q$fingerprint\E, this server has/,
    hint => qr/secret_file/ }, 'a server restarted with another secret says which one it needs');
error_is($node, 'SELECT randflake_bind_secret()', '55000', { message => qr/bound to another secret/ },
    '  and cannot be talked into it');
is($node->sql('SELECT count(*) FROM before WHERE n > 0'), 1000, '  other columns are read');
isnt($node->sql('SELECT randflake_generate()'), '', '  bigint identifiers go on');
configure($node, node_id => 1, max_wait => '1h');
$node->restart;
error_is($node, 'SELECT id FROM before', '55000', { message => qr/no secret is configured/ },
    'without a secret nothing is shown');
is($node->sql('SELECT count(*) FROM before WHERE id >= randflake_lower(now() - interval $$1 day$$)'
          . ' AND randflake_node_id(id) = 1 AND randflake_timestamp(id) <= now()'),
    1000, '  but the time inside can be asked for');

# --- a late secret -----------------------------------------------------------------------------
# At commit, CREATE EXTENSION prints a notice with the remedy, if the client has enabled notices.
sub notices_of($sql) {
    my ($status, undef, $notices) = $node->psql('early', $sql, on_error_die => 1);
    return $notices;
}
$node->sql('CREATE DATABASE early');
is(notices_of('SET client_min_messages = warning; CREATE EXTENSION randflake_type CASCADE; DROP EXTENSION randflake CASCADE'),
    '', 'without a secret: no notice for who wants none');
is(notices_of('BEGIN; SAVEPOINT s; CREATE EXTENSION randflake; CREATE EXTENSION randflake_type; ROLLBACK TO s; COMMIT'),
    '', '  nor of what was rolled back');
is(notices_of('BEGIN; CREATE EXTENSION randflake; CREATE EXTENSION randflake_type; ROLLBACK'), '', '  entirely');
is(notices_of('CREATE EXTENSION randflake'), '', '  nor of functions alone');
like(notices_of('CREATE EXTENSION randflake_type; SELECT 1'),
    qr/\A[^\n]*NOTICE:  the type randflake is not bound to a secret yet
DETAIL:  This server has no secret\.
HINT:  Set "shared_preload_libraries" and "randflake\.secret_file", and restart the server\. The first value that a superuser makes binds it\.\z/,
    '  else what to do, once');
$node->safe_psql('early',
    'CREATE TABLE made (id randflake DEFAULT randflake_next()); CREATE ROLE app LOGIN; GRANT ALL ON made TO app;');
like(($node->psql('early', 'SELECT randflake_next()'))[2], qr/no secret is configured/, '  and no value');

$node->sql('CREATE DATABASE defined');
$node->command_ok([ 'pg_restore', '--section=pre-data', '-d', $node->connstr('defined'), "$dumps/custom" ],
    '  but tables without indexes can be restored');

configure($node, node_id => 1, secret => $secret, max_wait => '1h');
$node->restart;
is($node->sql($content), $expected, 'with the secret everything is back');

my $standby = standby_of($node, 'standby');
error_is($standby, q{SELECT 'a'::randflake}, '55000', { message => qr/^the type randflake is not bound to a secret/,
    detail => qr/^A standby cannot bind it\./, hint => qr/randflake_bind_secret\(\)/ }, 'with the secret, a first use on a standby fails', database => 'early');

my $port = $node->port;
$node->safe_psql('early', q{CREATE TABLE parts (id randflake) PARTITION BY RANGE (id);
    CREATE TABLE parts_old PARTITION OF parts FOR VALUES FROM (MINVALUE) TO (randflake_lower('2026-01-01'))});
$node->command_fails_like([ 'pg_dump', '-p', $port, '-h', $node->host, 'early' ],
    qr/not bound to a secret.*Only values that are made or read in bind it/s, 'pg_dump binds nothing');
$node->safe_psql('early', 'DROP TABLE parts');

# Returns SQL that waits, at most a minute, until this many sessions wait for a lock.
sub until_waiting($sessions) {
    return <<"SQL";
DO \$\$ BEGIN FOR i IN 1 .. 600 LOOP
    EXIT WHEN (SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock') >= $sessions;
    PERFORM pg_sleep(0.1), pg_stat_clear_snapshot();
END LOOP; END \$\$
SQL
}

# Several sessions use the type for the first time at once. One binds the database; the others wait.
my $first = start_session($node, q{\c early}, q{BEGIN}, 'INSERT INTO made DEFAULT VALUES', until_waiting(4), 'COMMIT');
$node->poll_query_until('early', q{SELECT count(*) = 1 FROM pg_locks
    WHERE relation = 'randflake_key'::regclass AND mode = 'ShareRowExclusiveLock'})
  or give_up('the first use takes no lock');
my @sessions = map { start_session($node, q{\c early}, $_) } ('INSERT INTO made DEFAULT VALUES') x 3,
  'SELECT randflake_bind_secret()';
is((finish_session($first))[1], '', 'the first use by a superuser makes a value');
is((finish_session($_))[1], '', '  and so does another at the same time') for @sessions;
is($node->safe_psql('early', 'TABLE randflake_key UNION ALL TABLE randflake_key_check'),
    "$fingerprint\n$fingerprint", '  which bind the type once');
is($node->safe_psql('early', 'INSERT INTO made DEFAULT VALUES; SELECT count(id::text) FROM made',
        extra_params => [ '-U', 'app' ]), 5, '  for every role');
$node->wait_for_catchup($standby, 'replay', $node->lsn('insert'));
is($standby->safe_psql('early', 'SELECT count(id::text) FROM made'), 5, '  on a standby too');
$standby->stop;
is($node->safe_psql('early', 'SELECT randflake_bind_secret()'), $fingerprint, 'binding may be repeated');

# The type's first use waits for an open transaction that has restored a fingerprint.
$node->sql('CREATE DATABASE arriving TEMPLATE defined');
my $arriving = start_session($node, q{\c arriving}, 'BEGIN',
    q{INSERT INTO randflake_key_check VALUES ('0123456789abcdef')}, until_waiting(1), 'COMMIT');
$node->poll_query_until('arriving', q{SELECT count(*) = 1 FROM pg_locks
    WHERE relation = 'randflake_key_check'::regclass AND mode = 'RowExclusiveLock'})
  or give_up('the fingerprint does not arrive');
(undef, undef, my $refused) = $node->psql('arriving', 'SELECT randflake_next()');
is((finish_session($arriving))[1], '', 'a restore brings a fingerprint');
like($refused, qr/not bound to a secret.*"randflake_key_check" has key fingerprint 0123456789abcdef/s,
    '  and a first use at the same time binds nothing');
is($node->safe_psql('arriving', 'SELECT count(*) FROM randflake_key'), 0, '  indeed');

configure($node, node_id => 1, max_wait => '1h');
$node->restart;
$node->safe_psql('early', 'DROP TABLE made');
$node->command_ok([ 'pg_dump', '-p', $node->port, '-h', $node->host, '-Fc', '-f', "$dumps/custom", 'early' ],
    'a dump without a secret');
for my $jobs (1, 2) {
    $node->sql("CREATE DATABASE restored_$jobs TEMPLATE template0");
    $node->command_checks_all([ 'pg_restore', "--jobs=$jobs", '-d', $node->connstr("restored_$jobs"), "$dumps/custom" ],
        0, [qr/^$/], [qr/^$/], "$jobs jobs restore without a secret");
    is($node->safe_psql("restored_$jobs", 'TABLE randflake_key'), $fingerprint, '  the fingerprint too');
}

configure($node, node_id => 1, secret => $other_secret, max_wait => '1h');
$node->restart;
my ($bound) = $node->safe_psql('early', 'DELETE FROM randflake_key; SELECT randflake_bind_secret()');
isnt($bound, $fingerprint, 'a database is bound to another secret');
is($node->safe_psql('early', 'TABLE randflake_key UNION ALL TABLE randflake_key_check'), "$bound\n$bound",
    '  and dumps it');
$node->stop;
done_testing();
