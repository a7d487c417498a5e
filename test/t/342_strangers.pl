# Attacks as each person in the tables of docs/security.md, to check the column "does not learn".
use Docs;
use File::Find ();
use IO::Socket::UNIX ();
use Randflake;

read_document('docs/security.md', 'test/t/342_strangers.pl');

# Collects the person of each table row in which the column "does not learn" is not empty.
my ($table) = slurp_file('docs/security.md') =~ /^\| a person with \| learns \| does not learn \|\n(.*?)\n\n/ms;
my %untried = map { s/\[([^]]*)\]\([^)]*\)/$1/gr => 1 } $table =~ /^\| ([^|]*?) \| [^|]* \| [^|\s][^|]* \|$/mg;
cmp_ok(scalar keys %untried, '>=', 9, 'lines of the table');

# Marks this person's row as tested, and begins the attempts.
sub attempts_of($person) { ok(delete $untried{$person}, "--- $person") or diag(join "\n", keys %untried) }

my $secret = random_secret();
my $node = start_server('main', own_clock => 1, extensions => [], init => [ allows_streaming => 'logical' ],
    secrets => [$secret], settings => { node_id => 0, node_count => 2, max_wait => '1h' });
my $secret_file = secret_path($node);
$node->sql(<<'SQL');
SELECT pg_create_logical_replication_slot('capture', 'test_decoding');
CREATE EXTENSION randflake;
CREATE ROLE stranger LOGIN;
CREATE ROLE decoder LOGIN;
CREATE ROLE encoder LOGIN;
CREATE ROLE monitor LOGIN IN ROLE pg_monitor;
GRANT EXECUTE ON FUNCTION randflake_decode(bigint) TO decoder, encoder;
GRANT EXECUTE ON FUNCTION randflake_encode(timestamptz, integer, integer) TO encoder;
SELECT randflake_generate();
SQL

# Reads, as this role, everything that might show the secret.
sub finds_no_secret($role, @more) {
    my $seen = '';
    for my $sql (
        'SHOW randflake.secret', 'SHOW randflake.secret_file', 'SHOW ALL', 'SELECT * FROM pg_settings',
        'SELECT * FROM pg_file_settings', 'SELECT * FROM pg_stat_activity', 'SELECT * FROM randflake_status',
        'SELECT * FROM randflake_slots', "SELECT pg_read_file('$secret_file')",
        "CREATE TEMP TABLE f (l text); COPY f FROM '$secret_file'; TABLE f", @more) {
        my (undef, $out, $err) = $node->psql('postgres', $sql, extra_params => [ '-U', $role ]);
        $seen .= "$out\n$err\n";
    }
    no_secret_in($seen, $secret, '  the secret');
}

# --- identifiers -------------------------------------------------------------------------------
my $second = 10 + int time;
clock_stands_at($node, $second);
$node->sql('CREATE TABLE made AS SELECT n, randflake_generate() AS id FROM generate_series(1, 20000) AS n');
clock_stands_at($node, $second + 60);
$node->sql('INSERT INTO made SELECT n, randflake_generate() FROM generate_series(20001, 40000) AS n');
my @made = split /\n/, $node->sql('SELECT id FROM made ORDER BY n');

attempts_of('one identifier');
cmp_ok(abs($_ - 10000), '<', 6 * 71, '  half of a second are negative')
  for split /\n/, $node->sql('SELECT count(*) FILTER (WHERE id < 0) FROM made GROUP BY n <= 20000');

attempts_of('many identifiers');
my @order = split /\|/, $node->sql(<<'SQL');
SELECT corr(n, id::numeric), corr(n, randflake_shard(id, 1024)), corr(n, ascii(right(randflake_to_text(id), 1))) FROM made
SQL
# The correlation of 40,000 independent pairs has a standard deviation of 0.005.
cmp_ok(abs $order[$_], '<', 0.03, '  order: it is not in the ' . ('number', 'shard', 'text')[$_]) for 0 .. 2;
my %steps;
$steps{ $made[ $_ + 1 ] - $made[$_] }++ for 0 .. $#made - 1;
is(scalar(grep { $_ > 1 } values %steps), 0, '  no step comes twice');
# If identifiers counted up, the greatest one would reveal how many there are.
my ($least, $greatest) = split /\|/, $node->sql(
    'SELECT min(id) / 2.0 ^ 63, max(id) / 2.0 ^ 63 FROM (SELECT id FROM made ORDER BY n LIMIT 1000) AS first');
cmp_ok($least, '<', -0.95, '  volume: the first thousand are spread over all numbers');
cmp_ok($greatest, '>', 0.95, '    up to the greatest');

attempts_of('many identifiers and the time of each');
# If an identifier were a linear function of its fields, an attacker could predict it.
my ($linear, $affine, $flips) = split /\|/, $node->sql(<<'SQL');
WITH pair AS (
    SELECT randflake_encode(t, 1, 2 * n) AS a, randflake_encode(t, 1, 2 * n + 1) AS b,
           randflake_encode(t + interval '1 s', 1, 2 * n) AS c, randflake_encode(t + interval '1 s', 1, 2 * n + 1) AS d
    FROM (VALUES ('2024-10-27 10:00:00+00'::timestamptz)) AS v (t), generate_series(0, 19999) AS n)
SELECT count(*) FILTER (WHERE (a # b # c # d) = 0), count(*) - count(DISTINCT b::numeric - a), avg(bit_count((a # b)::bit(64)))
FROM pair
SQL
is($linear, 0, '  the exclusive or of related ones is not the same');
is($affine, 0, '  nor are their differences');
cmp_ok(abs($flips - 32), '<', 0.2, "  a change of one bit inside changes $flips of 64");

# --- randflake alone -------------------------------------------------------------------------
attempts_of('SQL, as an ordinary role, without the type');
# test/t/340_roles.pl checks which objects a stranger may use.
# These functions need no secret, so a server with another secret returns the same values.
my $calls = q{SELECT string_agg(format('%s %s %s', randflake_to_text(id), randflake_from_text(randflake_to_text(id)),
    randflake_shard(id, 1000)), ',' ORDER BY id) FROM hashint8extended(3, 0) AS seed, generate_series(seed, seed + 9) AS id};
my $other = start_server('other', own_clock => 1, settings => { node_id => 0, secret => random_secret() });
is($node->sql($calls), $other->sql($calls), 'text form and shards are the same under another secret');
$other->stop;

# These results, except the identifiers, stay the same while other sessions make identifiers. A
# Snowflake identifier reveals only how many Snowflake identifiers other sessions make.
my $look = <<'SQL';
EXPLAIN (VERBOSE) SELECT randflake_generate(), randflake_generate_text(), snowflake_generate() FROM randflake_generate(10);
SELECT * FROM snowflake_layouts();
SELECT * FROM snowflake_decode(snowflake_lower(to_timestamp(1800000000)));
SELECT count(*) FROM pg_sequences;
SELECT * FROM pg_stat_user_functions;
SELECT relname, reltuples FROM pg_class WHERE relname ~ 'flake';
SELECT name, setting FROM pg_settings WHERE name ~ 'flake';
SQL
my $count_of_own = q{SELECT sequence FROM snowflake_decode(snowflake_generate())};
my $stranger = $node->background_psql('postgres', extra_params => [ '-U', 'stranger' ]);
my ($seen, $own) = map { $stranger->query_safe($_) } $look, $count_of_own;
$node->sql('SELECT count(*) FROM randflake_generate(50000); SELECT randflake_generate_text()');
is($stranger->query_safe($look), $seen, 'the same as before others made many');
is($stranger->query_safe($count_of_own), $own + 1, '  also in the numbers of Snowflake');
$stranger->quit;
error_is($node, "TABLE $_", '42501', {}, "  and not from $_", user => 'stranger')
  for qw(randflake_status randflake_slots pg_shmem_allocations pg_backend_memory_contexts);
finds_no_secret('stranger');

# --- with grants -------------------------------------------------------------------------------
attempts_of('SQL, with `randflake_decode`');
finds_no_secret('decoder', 'SELECT (randflake_decode(id)).* FROM (VALUES (0), (1), (-1)) AS v (id)');
attempts_of('SQL, with `randflake_encode`');
finds_no_secret('encoder', q{SELECT randflake_encode('2024-10-27 03:33:20+00', 0, n) FROM generate_series(0, 99) AS n});

attempts_of('SQL, as a member of `pg_monitor`');
finds_no_secret('monitor');
is($node->sql('SHOW randflake.secret_file', user => 'monitor'), $secret_file, '  knows where it is');

# --- who has files -----------------------------------------------------------------------------
attempts_of('a dump made by `pg_dump`, a subscription, change capture');
command_ok([ 'pg_dumpall', '-f', $node->basedir . '/dump', '-d', $node->connstr('postgres') ], '  of all databases');
no_secret_in(slurp_file($node->basedir . '/dump'), $secret, '  the secret');
my $changes = $node->sql("SELECT data FROM pg_logical_slot_peek_changes('capture', NULL, NULL)");
like($changes, qr/public\.made: INSERT/, '  of all changes');
no_secret_in($changes, $secret, '  the secret');

attempts_of('a base backup, a snapshot of the disk');
$node->backup('backup');
my $found = '';
File::Find::find({ no_chdir => 1, wanted => sub { $found .= slurp_file($_) if -f } }, $node->backup_dir . '/backup');
like($found, qr/secret_file/, '  knows the name of the file');
no_secret_in($found, $secret, '  the secret');
is(index($found, pack 'H*', $secret), -1, '    in binary');

is_deeply([ sort keys %untried ], [], 'every line of the table was tried');

# --- with the type ---------------------------------------------------------------------------
$node->sql('CREATE EXTENSION randflake_type');

# randflake_lower() returns an identifier that no server issues. To check this, the test takes all
# numbers of node ids 0 and 1 in one second.
$second += 120;
clock_stands_at($node, $second);
$node->sql('SELECT randflake_status_reset()');
# A session takes runs of 1, 8 and then 64 numbers. This number of identifiers uses up the last run.
my $in_runs = 1 + 8 + 64 * 2000;
$node->sql("CREATE TABLE whole AS SELECT randflake_generate() AS id FROM generate_series(1, $in_runs)");
$node->sql("SET randflake.max_wait = 0; INSERT INTO whole SELECT randflake_next() FROM generate_series($in_runs + 1, 262143)");
error_is($node, 'SET randflake.max_wait = 0; SELECT randflake_generate()', '53400',
    { detail => qr/^2 node ids give 262143 identifiers a second\./ }, 'every identifier of a second but one is issued');
is( $node->sql(<<'SQL'), '0 131071 1|1 131072 0', '  from number 1 of node id 0 on');
SELECT string_agg(format('%s %s %s', node_id, count, first), '|' ORDER BY node_id)
FROM (SELECT node_id, count(DISTINCT sequence), min(sequence) AS first FROM whole, randflake_decode(id) GROUP BY 1) AS f
SQL
my $lower = "randflake_lower(to_timestamp($second))";
is($node->sql("SELECT count(*) FROM whole WHERE id = $lower\::bigint"), 0,
    '  and the lower end of the second is not among them');
is($node->sql("SELECT count(*) FROM whole WHERE id::randflake > $lower"), 262143, '  but before them');
is($node->sql('SELECT ids_issued, slots_exhausted FROM randflake_status'), '262143|2', '  as the counters say');
is($node->sql('SELECT string_agg(ids_issued::text, $$|$$ ORDER BY node_id) FROM randflake_slots'),
    '131071|131072', '  for each node id');

# Row-level security hides rows, but the planner's estimate reveals their number, as documented.
$node->sql(<<'SQL');
CREATE TABLE hidden AS SELECT id::randflake FROM made;
ANALYZE hidden;
ALTER TABLE hidden ENABLE ROW LEVEL SECURITY;
CREATE POLICY none ON hidden USING (pg_backend_pid() < 0);
GRANT SELECT ON hidden TO stranger;
SQL
my @expected = map {
    my $query = "SELECT FROM hidden WHERE id >= randflake_lower(to_timestamp($_))";
    is($node->sql($query, user => 'stranger'), '', 'no hidden row is seen');
    $node->sql("EXPLAIN $query", user => 'stranger') =~ /rows=(\d+)/;
} $second - 130, $second - 90;
cmp_ok(abs($expected[0] / $expected[1] - 2), '<', 0.2, '  but all are expected to be twice those of a minute less');

# --- without USAGE -------------------------------------------------------------------------------
# Every role can read the stored expression of a view. A randflake constant in this expression shows
# the identifier's fields. So a role that can make such a view can decode the identifier.
clock_stands_at($node, $second + 60);
$node->sql('CREATE ROLE app LOGIN; GRANT CREATE ON SCHEMA public TO app');
$node->sql(block('restrict_type'));
every_block_was_used();
my ($text, $number, $inside_it) = split /\|/, $node->sql(<<'SQL');
SELECT id::text, id::bigint, concat_ws(' ', extract(epoch FROM generated_at)::bigint, node_id, sequence)
FROM (SELECT randflake_next() AS id) AS made, randflake_decode(id::bigint)
SQL
$node->sql(<<"SQL", user => 'app');
CREATE TABLE orders (id randflake, n bigint);
CREATE TABLE inbox (id randflake DEFAULT randflake_generate(), made randflake DEFAULT randflake_next());
INSERT INTO inbox DEFAULT VALUES;
GRANT SELECT, INSERT, UPDATE ON inbox TO stranger;
CREATE TABLE texts AS SELECT '$text'::text AS t, ($number)::bigint AS b, now() AS at FROM generate_series(1, 100);
GRANT SELECT ON texts TO PUBLIC;
CREATE DOMAIN order_key AS randflake;
CREATE TYPE key_range AS RANGE (subtype = randflake);
CREATE AGGREGATE latest(randflake) (SFUNC = randflake_larger, STYPE = randflake, INITCOND = '$text');
CREATE VIEW recent AS SELECT id FROM inbox WHERE id >= randflake_lower(now() - interval '1 hour');
CREATE VIEW written AS SELECT '$text'::randflake AS id;
GRANT SELECT ON recent, written TO stranger;
CREATE FUNCTION invoker(text) RETURNS text LANGUAGE plpgsql AS 'DECLARE id randflake := \$1; BEGIN RETURN id; END';
CREATE FUNCTION of_owner(text) RETURNS text LANGUAGE sql SECURITY DEFINER AS 'SELECT invoker(\$1)';
SQL

my $foreign = $node->basedir . '/identifiers';
append_to_file($foreign, "$text\n");
$node->sql(<<"SQL");
CREATE EXTENSION file_fdw;
CREATE SERVER files FOREIGN DATA WRAPPER file_fdw;
CREATE FOREIGN TABLE elsewhere (id randflake) SERVER files OPTIONS (filename '$foreign');
GRANT SELECT ON elsewhere TO PUBLIC;
SQL

sub constants_in($tree) {
    return map {
        my $raw = unpack('Q<', pack 'c8', split ' ') ^ 1 << 63;
        join ' ', 1730000000 + ($raw >> 34), $raw >> 17 & 0x1ffff, $raw & 0x1ffff
    } $tree =~ /:constvalue 8 \[ ((?:-?\d+ ){8})\]/g;
}
my (undef, $tree) = $node->psql('postgres', <<"SQL", extra_params => [ '-U', 'app' ]);
CREATE TEMP VIEW mine AS SELECT '$text'::randflake;
SELECT ev_action FROM pg_rewrite WHERE ev_class = 'mine'::regclass;
SQL
like(join('|', constants_in($tree)), qr/\b$inside_it\b/, 'a role with USAGE decodes an identifier, as documented');
(undef, $tree) = $node->psql('postgres', "SELECT ev_action FROM pg_rewrite WHERE ev_class = 'written'::regclass",
    extra_params => [ '-U', 'stranger' ]);
like(join('|', constants_in($tree)), qr/\b$inside_it\b/, '  any role reads constants in the views of others');
my (undef, undef, $plans) = $node->psql('postgres', <<'SQL', extra_params => [ '-U', 'stranger' ]);
SET client_min_messages = log;
SET debug_print_plan = on;
DO $$ DECLARE x inbox; BEGIN SELECT * INTO x FROM inbox; PERFORM FROM inbox WHERE made = x.made; END $$;
SQL
my $of_row = $node->sql(q{SELECT concat_ws(' ', extract(epoch FROM generated_at)::bigint, node_id, sequence)}
      . ' FROM inbox, randflake_decode(made::bigint)');
like(join('|', constants_in($plans)), qr/\b$of_row\b/, '  and a role that reads a column, without USAGE');

# With USAGE, each of these attacks works. So if one fails, the reason is that the role lacks USAGE.
my $row = qq{{"id": "$text"}};
my $version = $node->sql('SHOW server_version_num');
my @attacks = (
    "SELECT '$text'::randflake", "SELECT randflake_in('$text')", 'SELECT t::randflake FROM texts LIMIT 1',
    "PREPARE p (randflake) AS SELECT \$1; EXECUTE p ('$text')",
    "PREPARE p (text) AS SELECT \$1::randflake; EXECUTE p ('$text')",
    "SELECT '($text,1)'::orders", "SELECT '{\"($text,1)\"}'::orders[]", "SELECT '{$text}'::randflake[]",
    "SELECT ARRAY[t]::randflake[] FROM texts LIMIT 1", "SELECT ARRAY[b]::randflake[] FROM texts LIMIT 1",
    "SELECT json_populate_record(NULL::orders, '$row')", "SELECT jsonb_populate_record(NULL::orders, '$row')",
    "SELECT * FROM json_populate_recordset(NULL::orders, '[$row]')", "SELECT * FROM json_to_record('$row') AS x (id randflake)",
    "SELECT * FROM xmltable('/r' PASSING xml '<r>$text</r>' COLUMNS id randflake PATH '.')",
    "SELECT COALESCE(id, '$text') FROM inbox", "SELECT FROM inbox WHERE id = '$text'", "SELECT nullif(id, '$text') FROM inbox",
    "SELECT width_bucket('$text', array_agg(id)) FROM inbox", "SELECT lag(id, 1, '$text') OVER () FROM inbox",
    "SELECT id IN ('$text') FROM inbox", "SELECT id FROM inbox UNION SELECT '$text'",
    "SELECT '$text'::order_key", "SELECT '[$text,$text]'::key_range", "SELECT '{[$text,$text]}'::key_multirange",
    "SELECT key_range('$text', NULL)", 'SELECT latest(made) FROM inbox',
    "SELECT ($number)::bigint::randflake", "SELECT randflake_from_bigint($number)", 'SELECT 7::randflake',
    'SELECT b::randflake FROM texts LIMIT 1', 'SELECT b::integer::randflake FROM (SELECT 7::bigint AS b FROM texts) AS s LIMIT 1',
    'SELECT randflake_lower(now())', "SELECT randflake_lower('2026-01-01')", 'SELECT randflake_lower(at) FROM texts LIMIT 1',
    'TABLE recent', 'TABLE elsewhere', "INSERT INTO inbox VALUES ('$text')", "INSERT INTO inbox VALUES ($number)",
    'INSERT INTO inbox (id) SELECT b FROM texts LIMIT 1', 'UPDATE inbox SET id = 7::randflake', 'INSERT INTO inbox DEFAULT VALUES',
    "COPY inbox (made) FROM STDIN;\n$text\n\\.\n", "CREATE TEMP VIEW v AS SELECT '$text'::randflake",
    "DO \$\$ DECLARE x orders.id%TYPE := '$text'; BEGIN END \$\$", "DO \$\$ DECLARE x orders; BEGIN x.id := '$text'; END \$\$",
    "DO \$\$ DECLARE x orders; BEGIN x := row('$text', 1); END \$\$", "DO \$\$ DECLARE x orders; BEGIN x.id := $number; END \$\$",
    "DO \$\$ BEGIN EXECUTE 'SELECT \$1::randflake' USING '$text'::text; END \$\$",
    "SELECT invoker('$text')", "SET debug_print_plan = on; SELECT '$text'::randflake",
    'SET force_parallel_mode = on; SELECT count(t::randflake) FROM texts',
    'SET force_parallel_mode = on; SELECT count(randflake_lower(at)) FROM texts',
    ($version >= 160000 ? ("SELECT pg_input_is_valid('$text', 'randflake')", "SELECT pg_input_error_info('$text', 'randflake')") : ()),
    ($version >= 170000 ? "SELECT * FROM JSON_TABLE(jsonb '$row', '\$' COLUMNS (id randflake))" : ()));
# Without USAGE, PostgreSQL itself refuses declarations that use the type.
my @declarations = ("CREATE TEMP TABLE t (id randflake DEFAULT '$text')", 'CREATE TEMP TABLE t (LIKE inbox)',
    'CREATE TEMP TABLE t AS SELECT id FROM inbox', 'CREATE FUNCTION pg_temp.f(text) RETURNS orders.id%TYPE LANGUAGE plpgsql AS $$BEGIN END$$',
    'CREATE DOMAIN pg_temp.d AS randflake',
    'CREATE TEMP TABLE times AS SELECT at FROM texts; CREATE INDEX ON times (randflake_lower(at))');
for my $attack (@attacks, @declarations) {
    my $sql = $version >= 160000 ? $attack =~ s/force_parallel_mode/debug_parallel_query/r : $attack;
    my ($status, undef, $errors) = $node->psql('postgres', "BEGIN; $sql", extra_params => [ '-U', 'app' ]);
    is($status, 0, "with USAGE: $attack") or diag($errors);
    my $ours = !grep { $_ eq $attack } @declarations;
    error_is($node, $sql, '42501', { message => qr/^permission denied for type /,
        $ours ? (detail => qr/^Role "stranger" needs USAGE on the type/) : () }, '  and without', user => 'stranger');
}

$node->sql('CREATE INDEX ON texts (randflake_lower(at)); ALTER TABLE texts OWNER TO stranger');
error_is($node, 'REINDEX TABLE texts', '42501', { detail => qr/^Role "stranger" needs/ }, 'an index is built by its owner');

sub answer_to($role, @messages) {
    my $socket = IO::Socket::UNIX->new(Peer => $node->host . '/.s.PGSQL.' . $node->port) or die "no connection: $!";
    print {$socket} map { my ($type, $body) = @$_; $type . pack('N', 4 + length $body) . $body }
      [ '', pack('N', 3 << 16) . "user\0$role\0database\0postgres\0\0" ], @messages, [ S => '' ], [ X => '' ];
    $socket->flush;
    local $/;
    my ($error) = <$socket> =~ /\0C(\w{5}\0M[^\0]*)/ or return 'no error';
    return $error =~ s/\0M/ /r;
}
my $type_oid = $node->sql(q{SELECT 'randflake'::regtype::oid});
my $parameter = sub ($form, $bytes) {
    return ([ P => "\0SELECT \$1\0" . pack('n N', 1, $type_oid) ],
        [ B => "\0\0" . pack('n n n N/a* n', 1, $form, 1, $bytes, 0) ], [ E => "\0\0\0\0\0" ]);
};
my $call = sub ($function, @arguments) {
    return [ F => pack('N n n', $node->sql("SELECT '$function'::regprocedure::oid"), 0, scalar @arguments) . pack('(N/a*)*', @arguments) . pack('n', 0) ];
};
my %ways = (
    'a parameter of its oid, as text' => [ $parameter->(0, $text) ],
    'a parameter of its oid, in binary' => [ $parameter->(1, pack 'q>', $number) ],
    'the fast path, input' => [ $call->('randflake_in(cstring)', $text) ],
    'the fast path, an argument' => [ $call->('randflake_to_bigint(randflake)', $text) ],
    'the fast path, a cast' => [ $call->('randflake_from_bigint(bigint, integer, boolean)', $number, -1, 'f') ],
    'the fast path, a time' => [ $call->('randflake_lower(timestamptz)', '2026-01-01') ]);
for my $way (sort keys %ways) {
    is(answer_to('app', @{ $ways{$way} }), 'no error', "with USAGE: $way");
    like(answer_to('stranger', @{ $ways{$way} }), qr/^42501 permission denied for type /, '  and without');
}

sub state_after($session, $sql) { return ($session->query("$sql;\n\\echo :SQLSTATE") =~ /(\w{5})$/)[0] }
$node->sql('CREATE ROLE late LOGIN; CREATE ROLE makers; GRANT USAGE ON TYPE randflake TO makers, pg_database_owner');
my $making = "SELECT '$text'::randflake";
my $late = $node->background_psql('postgres', on_error_stop => 0, extra_params => [ '-U', 'late' ]);
for my $change (
    [ 'GRANT USAGE ON TYPE randflake TO late', 'REVOKE USAGE ON TYPE randflake FROM late' ],
    [ 'GRANT USAGE ON TYPE randflake TO PUBLIC', 'REVOKE USAGE ON TYPE randflake FROM PUBLIC' ],
    [ 'GRANT makers TO late', 'REVOKE makers FROM late' ],
    [ 'ALTER ROLE late SUPERUSER', 'ALTER ROLE late NOSUPERUSER' ],
    [ 'ALTER DATABASE postgres OWNER TO late', 'ALTER DATABASE postgres OWNER TO postgres' ]) {
    is(state_after($late, $making), '42501', 'an open session is refused');
    $node->sql($change->[0]);
    is(state_after($late, $making), '00000', "  not after $change->[0]");
    $node->sql($change->[1]);
}
is(state_after($late, $making), '42501', '  but at last');
is(state_after($late, "SELECT of_owner('$text')"), '00000', 'a SECURITY DEFINER function has the privileges of its owner');
is(state_after($late, "SELECT invoker('$text')"), '42501', '  which the session does not keep, nor what the function made');
$late->quit;
my $both = $node->background_psql('postgres', on_error_stop => 0);
is(state_after($both, $_->[0]), $_->[1], "one session: $_->[0]")
  for [ $making, '00000' ], [ "SET ROLE stranger; $making", '42501' ], [ "SET ROLE app; $making", '00000' ],
  [ "PREPARE q AS SELECT t::randflake FROM texts; EXECUTE q; SET ROLE stranger; EXECUTE q", '42501' ];
$both->quit;

my (undef, $out, $errors) = $node->psql('postgres', <<'SQL', extra_params => [ '-U', 'stranger' ]);
INSERT INTO inbox (id) VALUES (NULL);
INSERT INTO inbox (id) SELECT max(made) FROM inbox;
SELECT count(*), count(DISTINCT made), count(made::bigint), count(made::text), count(DISTINCT ROW(made)) FROM inbox;
SELECT count(*) FROM inbox AS a JOIN inbox AS b ON a.made = b.made;
SELECT id::text FROM written;
SQL
is("$out$errors", "3|3|3|3|3\n3\n$text", 'without USAGE, values are made anew, compared and shown');
$node->stop;
done_testing();
