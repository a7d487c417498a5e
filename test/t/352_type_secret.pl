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

# pg_dump orders tables by name: "before", then the extension's table randflake_key, then "zafter".
$node->sql(<<'SQL');
CREATE TABLE before (id randflake PRIMARY KEY DEFAULT randflake_next(), n integer);
INSERT INTO before (n) SELECT n FROM generate_series(1, 1000) AS n;
CREATE TABLE zafter (id randflake DEFAULT randflake_next(), others randflake[], n integer);
INSERT INTO zafter (others, n) SELECT (SELECT array_agg(id) FROM before WHERE before.n % 10 = m), m
    FROM generate_series(0, 9) AS m;
CREATE INDEX ON zafter USING brin (id);
SQL

my $content = <<'SQL';
SELECT md5(string_agg(format('%s %s %s', id, id::bigint, n), ',' ORDER BY id)) FROM before
UNION ALL SELECT md5(string_agg(format('%s %s %s', id, others, n), ',' ORDER BY id)) FROM zafter
SQL
my $expected = $node->sql($content);

$node->command_ok([ 'pg_dump', @$_, '-d', $node->connstr('postgres') ], "pg_dump @$_")
  for [ '-f', "$dumps/plain.sql" ], [ '-f', "$dumps/custom", '-Fc' ];
unlike(slurp_file("$dumps/plain.sql"), qr/TRIGGER randflake_key_guard/, '  and nothing of the extension');
no_secret_in(slurp_file("$dumps/plain.sql"), $secret, '  nor the secret');

# Restores the dump into a copy of $template. Returns three values: whether the restore succeeds,
# its errors, and the copy's name.
my $databases = 0;
my $template = 'template0';

sub restore($server, @options) {
    my $database = 'restored_' . ++$databases;
    $server->sql("CREATE DATABASE $database TEMPLATE $template");
    my ($out, $errors) = ('', '');
    my $good = IPC::Run::run([ 'pg_restore', @options, '-d', $server->connstr($database), "$dumps/custom" ],
        '<', '/dev/null', '>', \$out, '2>', \$errors);
    return ($good, $errors, $database);
}

# --- without triggers ------------------------------------------------------------------------
{
    my (undef, undef, $database) = restore($node, '--schema-only');
    $node->command_ok(
        [ 'pg_restore', '--data-only', '--disable-triggers', '-d', $node->connstr($database), "$dumps/custom" ],
        'definitions first, data later');
    is($node->safe_psql($database, $content), $expected, '  restores everything');
}

my $other = start_server('other', extensions => ['randflake_type'],
    settings => { node_id => 2, secret => $other_secret, max_wait => '1h' });

sub nothing_works($server, $database, $name) {
    my @statements = ('SELECT randflake_next()', q{SELECT 'a'::randflake}, 'SELECT 8::bigint::randflake',
        'INSERT INTO zafter DEFAULT VALUES', 'SELECT n FROM zafter ORDER BY id', 'CREATE INDEX ON zafter (id)');
    push @statements, 'SELECT id FROM before', 'SELECT id::bigint FROM before', 'SELECT array_agg(id) FROM before',
        'COPY before TO STDOUT (FORMAT binary)' if $server->safe_psql($database, 'SELECT count(*) FROM before') > 0;
    my @works;
    for my $sql (@statements) {
        my ($status, undef, $errors) = $server->psql($database, $sql, extra_params => [ '-v', 'VERBOSITY=verbose' ]);
        push @works, $sql unless $status != 0 && $errors =~ /ERROR:  55000: .*secret/;
    }
    is("@works", '', $name);
}

my ($list) = run_command([ 'pg_restore', '--list', "$dumps/custom" ]);
my @keys = grep { / TABLE DATA \S+ randflake_key/ } split /\n/, $list;
my @others = grep { !/ TABLE DATA \S+ randflake_key/ } split /\n/, $list;
is(@keys, 2, 'a dump has the fingerprint twice');
append_to_file("$dumps/list", join "\n", @others, reverse(@keys), '');
{
    my (undef, undef, $database) = restore($other, '--schema-only');
    $other->command_fails([
            'pg_restore', '--data-only', '--disable-triggers', "--use-list=$dumps/list",
            '-d', $other->connstr($database), "$dumps/custom" ],
        'without triggers a restore fails under another secret');
    nothing_works($other, $database, '  and nothing can be read or written');
}
$other->sql('CREATE TABLE kept AS SELECT randflake_next() AS id');
my $session = start_session($other, 'SELECT count(id::text) FROM kept', q{DO $$ BEGIN
    WHILE (SELECT count(*) FROM randflake_key) = 1 LOOP COMMIT; PERFORM pg_sleep(0.1); END LOOP; END $$},
    'SELECT count(id::text) FROM kept');
$other->poll_query_until('postgres', q{SELECT count(*) = 1 FROM pg_stat_activity WHERE query ~ '^DO'});
$other->sql(qq{INSERT INTO randflake_key VALUES ('$fingerprint')});
my ($out, $error) = finish_session($session);
is($out, 1, 'a session that could read');
like($error, qr/55000: values of type randflake in this database belong to another secret/,
    '  cannot after the other fingerprint arrived');

error_is($other, 'SELECT id FROM kept', '55000',
    { detail => qr/^The database has key fingerprint \Q$fingerprint\E beside \w+, this server has \w+\.$/,
      hint => qr/new database/ }, 'the error names both fingerprints and the remedy');
$other->stop;

# --- a changed secret ------------------------------------------------------------------------
configure($node, node_id => 1, secret => $other_secret, max_wait => '1h');
$node->restart;
nothing_works($node, 'postgres', 'a server restarted with another secret reads nothing');
error_is($node, 'SELECT id FROM before', '55000', { detail => qr/key fingerprint \Q$fingerprint\E, this server has/,
    hint => qr/secret_file/ }, '  and says which one it needs');
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
sub unbound_for($server, $who, $user, $reason) {
    my (undef, undef, $errors) = $server->psql('early', q{SELECT 'a'::randflake},
        extra_params => [ '-U', $user, '-v', 'VERBOSITY=verbose' ]);
    like($errors, qr/55000: the type randflake is not bound to a secret.*DETAIL:  $reason.*HINT: .*randflake_bind_secret\(\)/s,
        "with the secret, a first use $who is told why it binds nothing");
    is($node->safe_psql('early', 'SELECT count(*) FROM randflake_key'), 0, '  and binds nothing');
}
my ($superuser) = $node->sql('SELECT current_user');
unbound_for($node, 'by an ordinary role', 'app', 'Role "app" may not bind it\.');
unbound_for($standby, 'on a standby', $superuser, 'A standby cannot bind it\.');

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

$template = 'defined';
for my $order ([ @others, @keys ], [ @keys, @others ], [ $keys[1], @others, $keys[0] ], [ $keys[0], @others, $keys[1] ]) {
    write_private_file("$dumps/list", join "\n", @$order, '');
    my ($good, $errors, $database) = restore($node, '--section=data', '--section=post-data', "--use-list=$dumps/list");
    ok($good && $errors eq '', 'unbound, the same secret: ' . join ', ', map { / TABLE DATA \S+ (\S+)/ } @$order) or diag($errors);
    is($node->safe_psql($database, $content), $expected, '  nothing is lost');
}
$template = 'template0';

configure($node, node_id => 1, max_wait => '1h');
$node->restart;
$node->safe_psql('early', 'DROP TABLE made');
$node->command_ok([ 'pg_dump', '-p', $node->port, '-h', $node->host, '-Fc', '-f', "$dumps/custom", 'early' ],
    'a dump without a secret');
for my $options ([], ['--jobs=2']) {
    my ($good, $errors, $database) = restore($node, @$options);
    ok($good && $errors eq '', "@$options restores without a secret") or diag($errors);
    is($node->safe_psql($database, 'TABLE randflake_key'), $fingerprint, '  the fingerprint too');
}

configure($node, node_id => 1, secret => $other_secret, max_wait => '1h');
$node->restart;
my ($bound) = $node->safe_psql('early', 'DELETE FROM randflake_key; SELECT randflake_bind_secret()');
isnt($bound, $fingerprint, 'a database is bound to another secret');
is($node->safe_psql('early', 'TABLE randflake_key UNION ALL TABLE randflake_key_check'), "$bound\n$bound",
    '  and dumps it');
$node->stop;
done_testing();
