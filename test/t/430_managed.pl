# Compares results and errors of the managed script with those of the library. Moves tables from the
# script to the library and back. Checks that roles without grants cannot decode identifiers.
use JSON::PP;
use Randflake;
use RandflakeManaged;

my @ring = (random_secret(), 1750000000, random_secret(), 1790000000, random_secret());
my $library = new_server('library', secrets => \@ring, settings => { node_id => 1 }, conf => "wal_level = logical\n");
$library->start;
$library->sql('CREATE DATABASE app; CREATE ROLE owner LOGIN; CREATE ROLE mallory');
$library->safe_psql('app', 'CREATE SCHEMA randflake; CREATE EXTENSION randflake SCHEMA randflake');

my $managed = managed_server('managed', streaming => 'logical', conf => <<'CONF');
log_statement = none
session_preload_libraries = 'auto_explain'
auto_explain.log_nested_statements = on
auto_explain.log_verbose = on
CONF
$managed->safe_psql('app', 'CREATE ROLE mallory LOGIN');
as_owner($managed, "ALTER DEFAULT PRIVILEGES GRANT ALL ON $_ TO mallory, PUBLIC")
  for qw(TABLES SEQUENCES FUNCTIONS SCHEMAS);
install_managed($managed, undef);

# --- conformance ----------------------------------------------------------------------------------
for my $vector (@{ decode_json(slurp_file('test/unit/reference_vectors.json')) }) {
    my $keys = "randflake.randflake_key_schedule('\\x$vector->{secret}')";
    my $raw = unpack 'q', pack 'Q', $vector->{raw_id};
    is( as_owner($managed,
            "SELECT id, randflake.randflake_decrypt(id, k) = $raw, randflake.randflake_to_text(id), "
              . 'randflake.randflake_from_text(upper(randflake.randflake_to_text(id))) = id '
              . "FROM $keys AS k, randflake.randflake_encrypt($raw, k) AS id"),
        "$vector->{encrypted_id}|t|$vector->{encoded_id}|t", "vector $vector->{encoded_id}");
}

for my $vector (grep { $_->{label} !~ /[^ -~]/ } @{ decode_json(slurp_file('test/unit/feistel_vectors.json')) }) {
    my $values = join ', ', map { "($_->[0], $_->[1])" } @{ $vector->{numbers} };
    is(as_owner($managed, "SELECT count(*) FROM randflake.randflake_permutation_key('$vector->{secret}', '$vector->{use}', '$vector->{label}') AS k, "
              . "(VALUES $values) AS v (a, b) WHERE randflake.randflake_permute(a, k, false) = b AND randflake.randflake_permute(b, k, true) = a"),
        scalar @{ $vector->{numbers} }, "vectors of $vector->{use}, label '$vector->{label}'");
}

is(as_owner($managed, <<'SQL'), '1392|1392', 'many at once');
SELECT count(*), count(*) FILTER (WHERE many.id = randflake.randflake_encrypt(many.number, k))
FROM randflake.randflake_key_schedule('\x00112233445566778899aabbccddeeff') AS k, unnest(ARRAY[0, 63, 64, 65, 200, 1000]) AS wanted,
     LATERAL (SELECT array_agg(hashint8extended(i, wanted)) AS numbers FROM generate_series(1, wanted) AS i) AS a,
     LATERAL ROWS FROM (unnest(randflake.randflake_encrypt_many(numbers, k)), unnest(numbers)) AS many (id, number)
SQL

# Returns SQL that encodes `count` numbers and decodes identifiers, with these columns.
sub conversions($name, $count, $nodes, $sequences, $columns, $random, $more = '') {
    return <<"SQL";
SET TimeZone = 'UTC';
CREATE OR REPLACE FUNCTION pg_temp.try_encode(at timestamptz, node integer, n integer) RETURNS bigint LANGUAGE plpgsql
AS 'BEGIN RETURN randflake.${name}_encode(at, node, n); EXCEPTION WHEN invalid_parameter_value THEN RETURN NULL; END';
SELECT i, id, inside.*, random, made.*, $columns
FROM generate_series(0::bigint, $count - 1) AS i,
     pg_temp.try_encode(to_timestamp(1730000000 + i * 7919 * 104729 % CASE WHEN i % 2 = 0 THEN 1073741824 ELSE 70000000 END),
                        (i * 31337 % $nodes)::integer, CASE WHEN i % 100 = 0 THEN 0 ELSE (i * 65537 % $sequences)::integer END) AS id
     LEFT JOIN LATERAL randflake.${name}_decode(id) AS inside ON true,
     $random AS random, randflake.${name}_decode(random) AS made$more
SQL
}
my $numbers = conversions('randflake', 20000, 131072, 131072, 'randflake.randflake_to_text(id), randflake.randflake_shard(id, (1 + i % 1000)::integer),'
      . ' CASE WHEN i % 50 = 0 THEN randflake.randflake_generated_at(random) END', 'hashint8extended(i, 1)');
my $numbers53 = conversions('randflake53', 1000, 256, 32768,
    q{masked, randflake.randflake_unmask(masked, label), prefixed, randflake.randflake_from_text(prefixed, 'a_b')}, 'abs(hashint8extended(i, 1) % 9007199254740992)', <<'SQL');
, substr(repeat(U&'order\043a\00e9\ff21\+01f600', 14), 1, 1 + (i % 90)::integer) AS label, randflake.randflake_mask(random, label) AS masked,
     randflake.randflake_to_text(hashint8extended(i, 2), 'a_b') AS prefixed
SQL
for my $case ([ 'one secret', $ring[0] ], [ 'three secrets', @ring ]) {
    my ($name, @secrets) = @$case;
    write_secrets($library, @secrets);
    $library->stop;
    unlink $library->data_dir . '/randflake/window';
    $library->start;
    as_owner($managed, 'DROP SCHEMA randflake CASCADE');
    install_managed($managed, 2, slurp_file(secret_path($library)));
    my $expected = $library->safe_psql('app', $numbers);
    my $got = as_owner($managed, $numbers);
    ok($got eq $expected && $got =~ tr/\n// == 19999, "$name: 20,000 numbers and what is made of them");
    $expected = $library->safe_psql('app', $numbers53);
    $got = as_owner($managed, $numbers53);
    ok($got eq $expected && $got =~ tr/\n// == 999, "$name: 1,000 numbers of 53 bits, masks and prefixes");
    my $own = as_owner($managed, 'SELECT string_agg(id::text, $$,$$) FROM randflake.randflake_generate(20000) AS id');
    is($library->safe_psql('app', "SELECT count(DISTINCT d.*), min(node_id), max(node_id) FROM unnest('{$own}'::bigint[]) AS id, randflake.randflake_decode(id) AS d"),
        '20000|2|2', "$name: the library reads the edition's identifiers");
    $own = $library->safe_psql('app', 'SELECT string_agg(id::text, $$,$$) FROM randflake.randflake_generate(20000) AS id');
    is(as_owner($managed, "SELECT count(DISTINCT d.*), min(node_id), max(node_id) FROM unnest('{$own}'::bigint[]) AS id, randflake.randflake_decode(id) AS d"),
        '20000|1|1', "$name: and the edition the library's");
    # Starts when a second has few numbers left, so the identifiers continue in the next second.
    $own = as_owner($managed, 'SELECT setval(tickets, pg_sequence_last_value(tickets) + greatest(((extract(epoch FROM now())::bigint - 1730000000 + 21) << 6) - randflake.randflake_position(tickets, hops, leaps), 0)), setval(numbers, greatest(v, (v >> 47 << 47) | ((extract(epoch FROM now())::bigint - 1730000000 + 20) << 17)) & ~131071::bigint | 32000) FROM randflake.randflake_state, pg_sequence_last_value(numbers) AS v;'
          . ' SELECT string_agg(id::text, $$,$$) FROM (SELECT randflake.randflake53_generate(1500) UNION ALL SELECT randflake.randflake53_generate()) AS g (id)') =~ s/.*\n//r;
    is($library->safe_psql('app', "SELECT count(DISTINCT d.*), min(node_id), max(node_id), count(DISTINCT generated_at) > 1, max(sequence) > 32700 FROM unnest('{$own}'::bigint[]) AS id, randflake.randflake53_decode(id) AS d"),
        '1501|2|2|t|t', "$name: the library reads the edition's identifiers of 53 bits");
    is(as_owner($managed, 'SELECT * FROM randflake.randflake_secrets'),
        $library->safe_psql('app', 'SELECT * FROM randflake.randflake_secrets'), "$name: fingerprints and states");
}

for my $call (
    'generate(-1)', "encode('2024-10-27 03:33:19+00', 0, 0)", "encode('2058-11-05 17:10:24+00', 0, 0)",
    "encode('infinity', 0, 0)", "encode('2025-01-01', 131072, 0)", "encode('2025-01-01', 0, -1)",
    "from_text('')", "from_text('w')", "from_text('00000000000000')", "from_text('g000000000000')",
    "from_text('1 ')", "from_text(repeat('1', 100))", "from_text('ord_1', 'cus')", "from_text('cus_a_1', 'cus')", "from_text('1', 'cus')",
    "from_text('cus_w', 'cus')", "from_text('cus_', 'cus')", "to_text(1, '')", "to_text(1, 'a_')", "from_text('A_1', 'A')", "to_text(1, repeat('a', 200))",
    "mask(1, '')", "mask(1, repeat('a', 256))", "mask(-1, 'a')", "mask(9007199254740992, 'a')", "unmask(-1, 'a')", '53_decode(-1)', '53_generate(-1)', '53_decode(9007199254740992)',
    "53_encode('2025-01-01', 256, 0)", "53_encode('2025-01-01', 0, 32768)", "53_encode('2058-11-05 17:10:24+00', 0, 0)", 'shard(1, 0)', 'shard_ranges(0)') {
    my %errors = map { $_->name => error_of($_, "SET TimeZone = 'UTC'; SELECT randflake.randflake_$call" =~ s/_53/53/r, database => 'app') } $library, $managed;
    is_deeply([ @{ $errors{managed} }{qw(sqlstate message detail)} ], [ @{ $errors{library} }{qw(sqlstate message detail)} ], "error of $call");
}
my $ranges = 'SELECT md5(string_agg(r::text, $$;$$)) FROM unnest(ARRAY[1, 2, 3, 7, 1000]) AS n, randflake.randflake_shard_ranges(n) AS r';
is(as_owner($managed, $ranges), $library->safe_psql('app', $ranges), 'ranges of shards');

for my $bad ([ '' => qr/There must be/ ], [ 'abc' => qr/exactly 32/ ], [ "$ring[0] from 2026-01-01T00:00:00Z" => qr/first secret/ ],
    [ "$ring[0]\n$ring[0] from 2026-01-01T00:00:00Z" => qr/come twice/ ], [ "$ring[0]\n$ring[2]" => qr/followed by/ ],
    [ "$ring[0]\n$ring[2] from 2026-01-01T00:00:00" => qr/offset/ ], [ "$ring[0]\n$ring[2] from 2026-01-01T00:00:00.5Z" => qr/full second/ ],
    [ "$ring[0]\n$ring[2] from 2020-01-01T00:00:00Z" => qr/can hold/ ]) {
    error_is($managed, "SELECT randflake.randflake_configure('$bad->[0]', NULL)", '22023', { message => qr/^(?!.*[0-9a-f]{12})/, detail => $bad->[1] },
        "refused: $bad->[1]", database => 'app', user => 'owner');
}
error_is($managed, "SELECT randflake.randflake_configure('" . random_secret() . "', NULL)", '55000',
    { message => qr/not those that identifiers were made under/ }, 'another secret is refused', database => 'app', user => 'owner');
error_is($managed, 'SELECT randflake.randflake_configure(NULL, 131072)', '22023', { message => qr/out of range/ }, 'node id', database => 'app', user => 'owner');
as_owner($managed, 'SELECT randflake.randflake_configure(NULL, 256)');
error_is($managed, 'SELECT randflake.randflake53_generate()', '55000', { message => qr/node ids 256 to 256 do not fit in 53-bit/, hint => qr/up to 255/ }, 'a node id beyond 53 bits', database => 'app');
as_owner($managed, 'SELECT randflake.randflake_configure(NULL, 2)');
as_owner($managed, 'BEGIN;' . slurp_file('migrate/randflake_migrate.sql') . 'COMMIT; CREATE SCHEMA api; CREATE TABLE customer (id serial PRIMARY KEY, name text)');
is(as_owner($managed, q{SELECT generator FROM randflake_migrate.target('53')}), 'randflake.randflake53_generate()', 'the migration finds 53 bits');
as_owner($managed, as_owner($managed, 'SELECT randflake_migrate.masks()'));
is(as_owner($managed, q{INSERT INTO customer (name) VALUES ('Ada'); SELECT c.id = m, c.name FROM randflake.randflake_mask(1, 'public.customer') AS m, api.customer(m) AS c}), 't|Ada', '  and masks');
as_owner($managed, 'DROP SCHEMA randflake_migrate, api CASCADE; DROP TABLE customer');
error_is($managed, 'BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT randflake.randflake_configure(NULL, 2)', '0A000', {}, 'configured under an old snapshot', database => 'app', user => 'owner');

# --- there and back -------------------------------------------------------------------------------
as_owner($managed, <<'SQL');
CREATE TABLE item (id bigint PRIMARY KEY DEFAULT randflake.randflake_generate(), label text DEFAULT randflake.randflake_generate_text(),
                   shard integer GENERATED ALWAYS AS (randflake.randflake_shard(id, 16)) STORED);
INSERT INTO item SELECT FROM generate_series(1, 1000);
CREATE PUBLICATION items FOR TABLE item;
SQL
my $rows = 'SELECT count(*), md5(string_agg(item::text, $$,$$ ORDER BY id)), count(inside.node_id) FROM item, randflake.randflake_decode(id) AS inside';
my ($from, $to) = ($managed, $library);
for my $database ('there', 'back') {
    my $dump = $from->basedir . '/dump';
    my $source = $from == $managed ? 'app' : 'there';
    command_ok([ 'pg_dump', '-Fc', '--exclude-schema=randflake', '--no-publications', '-U', 'owner', '-f', $dump, $from->connstr($source) ], "$database: dumped by the owner");
    $to->sql("CREATE DATABASE $database OWNER owner");
    if ($to == $library) {
        $to->safe_psql($database, 'CREATE SCHEMA randflake AUTHORIZATION owner; CREATE EXTENSION randflake SCHEMA randflake; GRANT EXECUTE ON FUNCTION randflake.randflake_decode(bigint), randflake.randflake_generated_at(bigint) TO owner');
    } else {
        my $script = slurp_file('managed/randflake.sql');
        as_owner($to, "BEGIN; $script COMMIT; SELECT randflake.randflake_configure('" . slurp_file(secret_path($library)) . "', 7)", $database);
    }
    command_ok([ 'sh', '-c', "pg_restore -l $dump | grep -v ' EXTENSION ' >$dump.list && pg_restore -L $dump.list --exit-on-error -U owner -d '" . $to->connstr($database) . "' $dump" ], "$database: restored");
    is(as_owner($to, $rows, $database), as_owner($managed, $rows), "$database: the same rows, which decode");
    is(as_owner($to, 'BEGIN; INSERT INTO item DEFAULT VALUES RETURNING randflake.randflake_generated_at(id) > now() - interval $$1 min$$; DELETE FROM item WHERE xmin = pg_current_xact_id()::xid; COMMIT', $database), 't', "$database: the default works");
    ($from, $to) = ($to, $from);
}
$library->safe_psql('app', 'CREATE TABLE item (id bigint PRIMARY KEY DEFAULT randflake.randflake_generate(), label text, shard integer)');
$library->safe_psql('app', "CREATE SUBSCRIPTION items CONNECTION 'host=" . $managed->host . ' port=' . $managed->port . " dbname=app' PUBLICATION items");
as_owner($managed, 'INSERT INTO item DEFAULT VALUES');
$managed->wait_for_catchup('items');
ok($library->poll_query_until('app', 'SELECT count(*) = 1001 FROM item, randflake.randflake_decode(id) AS d WHERE d.node_id = 2'), 'logical replication to the library');
$library->safe_psql('app', 'DROP SUBSCRIPTION items');

# --- roles ----------------------------------------------------------------------------------------
is(as_owner($managed, <<'SQL'), 'randflake53_generate,randflake53_generate,randflake_from_digits,randflake_from_text,randflake_from_text,randflake_generate,randflake_generate,randflake_generate_text,randflake_prefixed,randflake_shard,randflake_shard_ranges,randflake_to_text,randflake_to_text|', 'what PUBLIC may call and read');
SELECT (SELECT string_agg(proname, ',' ORDER BY proname) FROM pg_proc WHERE pronamespace = 'randflake'::regnamespace AND has_function_privilege('mallory', oid, 'EXECUTE')),
       (SELECT string_agg(relname, ',') FROM pg_class WHERE relnamespace = 'randflake'::regnamespace AND relkind IN ('r', 'v', 'S')
        AND CASE relkind WHEN 'S' THEN has_sequence_privilege('mallory', oid, 'USAGE, SELECT, UPDATE') ELSE has_table_privilege('mallory', oid, 'SELECT, INSERT, UPDATE, DELETE, TRUNCATE, REFERENCES, TRIGGER') END)
SQL
ok(as_owner($managed, q{SELECT NOT has_schema_privilege('mallory', 'randflake', 'CREATE')}) eq 't', 'no other role makes objects in the schema');
is(as_owner($managed, <<'SQL'), '0', 'every function has a fixed path, or a body that was resolved when it was made and no privileges of the owner');
SELECT count(*) FROM pg_proc WHERE pronamespace = 'randflake'::regnamespace AND (prosqlbody IS NULL OR prosecdef)
AND proconfig[1] IS DISTINCT FROM 'search_path=pg_catalog, pg_temp'
SQL

# Mallory's search_path begins with a schema whose operators and functions hide PostgreSQL's own.
my $body = q{LANGUAGE plpgsql AS 'BEGIN RAISE ''trojan''; END'};
my $trojans = join ' ', map { "CREATE FUNCTION evil.$_ $body;" }
  'nextval(oid) RETURNS bigint', 'pg_sequence_last_value(oid) RETURNS bigint', 'setval(oid, bigint) RETURNS bigint', 'floor(double precision) RETURNS double precision',
  'clock_timestamp() RETURNS timestamptz', 'date_part(text, timestamptz) RETURNS double precision', 'cardinality(bigint[]) RETURNS integer', 'pg_relation_filepath(oid) RETURNS text',
  'substr(text, integer, integer) RETURNS text', 'length(text) RETURNS integer', 'format(text, integer) RETURNS text';
$managed->safe_psql('app', <<"SQL");
CREATE SCHEMA evil AUTHORIZATION mallory; GRANT TEMPORARY ON DATABASE app TO mallory; SET ROLE mallory; $trojans
SELECT format('CREATE FUNCTION evil.%I(%s, %s) RETURNS %s', oprcode, oprleft::regtype, oprright::regtype, oprresult::regtype) || \$\$ $body\$\$,
       format('CREATE OPERATOR evil.%s (FUNCTION = evil.%I, LEFTARG = %s, RIGHTARG = %s)', oprname, oprcode, oprleft::regtype, oprright::regtype)
FROM pg_operator WHERE oprleft IN ('int4'::regtype, 'int8'::regtype) AND oprright IN ('int4'::regtype, 'int8'::regtype) \\gexec
SQL
my $hostile = <<'SQL';
SET search_path = evil, pg_temp, pg_catalog; SET default_transaction_isolation = 'serializable'; SET TimeZone = 'Asia/Kathmandu'; SET DateStyle = 'German';
SET extra_float_digits = -15; SET IntervalStyle = 'sql_standard'; SET jit_above_cost = 0; SET plan_cache_mode = force_custom_plan; SET enable_seqscan = off;
SET array_nulls = off; SET bytea_output = escape; SET row_security = off; SET transform_null_equals = on; SET lc_numeric = 'C'; SET work_mem = 64;
SQL
# PostgreSQL 19 lacks this setting.
$hostile .= 'SET standard_conforming_strings = off;' if $managed->pg_version->major < 19;
$hostile .= "CREATE TEMP TABLE $_ (oid oid, datname name, name text, setting text); INSERT INTO $_ VALUES (1, 'app', 'max_connections', '1000000');" for qw(pg_database pg_settings pg_class randflake_state);
for my $call ('randflake_generate() IS NOT NULL', 'count(*) OPERATOR(pg_catalog.=) 10 FROM randflake.randflake_generate(10)', "randflake_generate_text() OPERATOR(pg_catalog.<>) ''",
    'randflake53_generate() IS NOT NULL', 'count(*) OPERATOR(pg_catalog.=) 10 FROM randflake.randflake53_generate(10)', 'randflake_shard(42, 8) OPERATOR(pg_catalog.=) 4', "randflake_from_text('1a') OPERATOR(pg_catalog.=) 42", "randflake_to_text(42) OPERATOR(pg_catalog.=) '1a'") {
    as_owner($managed, q{SELECT setval((SELECT numbers FROM randflake.randflake_state), 0)});
    my $error = error_of($managed, "$hostile SELECT randflake.$call" =~ s/randflake\.count/count/r, database => 'app', user => 'mallory');
    is($error->{text}, '', "mallory calls $call");
}
my $error = error_of($managed, 'SELECT randflake.randflake_generate(); SELECT lastval()', database => 'app', user => 'mallory');
is($error->{sqlstate}, '42501', 'lastval() after a call does not show the number');

as_owner($managed, 'DROP SCHEMA randflake CASCADE');
my $log = -s $managed->logfile;
$managed->safe_psql('app', "ALTER SYSTEM SET $_") for 'auto_explain.log_min_duration = 0', 'log_statement = \'all\'', 'log_min_duration_statement = 0';
$managed->reload;
install_managed($managed, 3);
as_owner($managed, 'SELECT count(*) FROM randflake.randflake_generate(100); SELECT randflake.randflake_decode(randflake.randflake_generate()); SELECT * FROM randflake.randflake_status;'
      . q{SELECT randflake.randflake_unmask(randflake.randflake_mask(1, 'a'), 'a'), randflake.randflake53_decode(randflake.randflake53_generate())});
my @secret = split /[|,{}]+/, as_owner($managed, q{SELECT secret, keys, keys53, randflake.randflake_permutation_key(secret, 'randflake mask', 'a') FROM randflake.randflake_state});
my $text = slurp_file($managed->logfile, $log);
like($text, qr/Query Text: .*nextval/s, 'the log has plans of nested statements');
is((grep { length > 5 && index($text, $_) >= 0 } @secret), 0, 'neither secret nor key is in the log');
like($secret[0], qr/^[0-9a-f]{32}$/, 'the owner reads the secret');
is($managed->safe_psql('app', 'SET ROLE pg_monitor; SELECT mode, problem, first_node_id, ids_per_second FROM randflake.randflake_status') =~ s/SET\n//r, 'managed||3|122880', 'the status');

# --- one node id ----------------------------------------------------------------------------------
# When a server with the library takes over the node id, it must begin after all seconds that the
# script used.
as_owner($managed, q{
    DO 'BEGIN PERFORM setval(numbers, (pg_sequence_last_value(numbers) | 131071) - 8192) FROM randflake.randflake_state; END';
    SELECT randflake.randflake_generate(3);} x 20);
my $last = as_owner($managed, 'SELECT last_second FROM randflake.randflake_status');
my ($skew) = slurp_file('docs/managed.md') =~ /set `randflake\.max_clock_skew = (\w+)`/
  or die 'docs/managed.md names no max_clock_skew';
sub start_library {
    $library->stop;
    unlink $library->data_dir . '/randflake/window';
    write_secrets($library, $secret[0]);
    configure($library, secret_file => secret_path($library), @_);
    $library->start;
}
start_library(node_id => 3, max_clock_skew => $skew, max_wait => 0);
my ($opens) = error_of($library, 'SET client_min_messages = error; SELECT randflake.randflake_generate()', database => 'app')->{detail} =~ /^It opens at (.*)\.$/;
is($library->safe_psql('app', "SELECT '$opens'::timestamptz > '$last'"), 't', 'from here to the library');
start_library(node_id => 4, max_wait => '1min');
$library->safe_psql('app', 'SELECT randflake.randflake_generate()');
my $end = $library->safe_psql('app', 'SELECT window_end FROM randflake.randflake_status');
$library->stop;
is(as_owner($managed, "SELECT randflake.randflake_configure(NULL, 4); SELECT randflake.randflake_generated_at(randflake.randflake_generate()) > '$end'") =~ s/\n//r,
    't', '  and back');
done_testing();
