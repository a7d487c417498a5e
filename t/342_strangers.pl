# docs/security.md's first table: what somebody who may run SQL, and has no grant, does not learn.

use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Randflake;
use Test::More;

my $node = new_server('main',
    settings => { node_id => 0, node_count => 2, secret => random_secret(), max_wait => '1h' });
start_under_clock($node);
$node->safe_psql('postgres', 'CREATE EXTENSION randflake; CREATE ROLE stranger LOGIN; SELECT randflake_generate()');

# --- a database with randflake alone ---------------------------------------------------------

# Every object of the extension that a stranger may use, and why it gives nothing away.
my %harmless = (
    'randflake_generate()' => 'a new identifier',
    'randflake_generate(integer)' => 'new identifiers',
    'randflake_generate_text()' => 'a new identifier',
    'randflake_generate_in_copy(internal)' => 'SQL has no value for its argument',
    'randflake_generate_text_in_copy(internal)' => 'SQL has no value for its argument',
    'snowflake_generate_in_copy(internal)' => 'SQL has no value for its argument',
    'randflake_to_text(bigint)' => 'the same number in other digits, whatever the secret',
    'randflake_from_text(text)' => 'the same number in other digits, whatever the secret',
    'randflake_shard(bigint,integer)' => 'from the identifier alone, whatever the secret',
    'randflake_shard_ranges(integer)' => 'takes no identifier',
    'snowflake_generate()' => 'a new identifier, which is public',
    'snowflake_decode(bigint)' => 'Snowflake identifiers, which are public',
    'snowflake_decode(bigint,text)' => 'Snowflake identifiers, which are public',
    'snowflake_lower(timestamp with time zone)' => 'Snowflake identifiers, which are public',
    'snowflake_lower(timestamp with time zone,text)' => 'Snowflake identifiers, which are public',
    'snowflake_layouts()' => 'takes no identifier');
my $functions = <<'SQL';
SELECT pg_proc.oid::regprocedure FROM pg_depend JOIN pg_proc ON pg_proc.oid = objid
WHERE refclassid = 'pg_extension'::regclass AND classid = 'pg_proc'::regclass
  AND refobjid = (SELECT oid FROM pg_extension WHERE extname = 'randflake')
  AND has_function_privilege('stranger', pg_proc.oid, 'EXECUTE')
SQL
is_deeply([ sort split /\n/, $node->safe_psql('postgres', $functions) ], [ sort keys %harmless ],
    'a stranger may call what gives nothing away, and nothing else');
is($node->safe_psql('postgres', <<'SQL'), '', '  and reads no view or table');
SELECT relname FROM pg_depend JOIN pg_class ON pg_class.oid = objid
WHERE deptype = 'e' AND classid = 'pg_class'::regclass AND has_any_column_privilege('stranger', pg_class.oid, 'SELECT')
SQL
is($node->safe_psql('postgres', <<'SQL'), 0, '  and finds no type, operator, cast or operator class');
SELECT count(*) FROM pg_depend JOIN pg_extension AS e ON e.oid = refobjid
WHERE deptype = 'e' AND extname = 'randflake' AND classid IN ('pg_operator'::regclass, 'pg_cast'::regclass,
    'pg_opclass'::regclass, 'pg_opfamily'::regclass, 'pg_amop'::regclass)
SQL

# Those that take an identifier need no secret: they give the same on a server that has another one.
my $calls = q{SELECT string_agg(format('%s %s %s', randflake_to_text(id), randflake_from_text(randflake_to_text(id)),
    randflake_shard(id, 1000)), ',' ORDER BY id) FROM hashint8extended(3, 0) AS seed, generate_series(seed, seed + 9) AS id};
my $other = new_server('other', settings => { node_id => 0, secret => random_secret() });
start_under_clock($other);
$other->safe_psql('postgres', 'CREATE EXTENSION randflake');
is($node->safe_psql('postgres', $calls), $other->safe_psql('postgres', $calls),
    'text form and shards are the same under another secret');
$other->stop;

# Order, time and volume: identifiers of two seconds, in the order in which they were made.
my $second = 10 + int time;
clock_stands_at($node, $second);
$node->safe_psql('postgres', 'CREATE TABLE made AS SELECT n, randflake_generate() AS id FROM generate_series(1, 20000) AS n');
clock_stands_at($node, $second + 60);
$node->safe_psql('postgres', 'INSERT INTO made SELECT n, randflake_generate() FROM generate_series(20001, 40000) AS n');
my ($order, $by_shard, $by_digit) = split /\|/, $node->safe_psql('postgres', <<'SQL');
SELECT corr(n, id::numeric), corr(n, randflake_shard(id, 1024)),
       corr(n, ascii(right(randflake_to_text(id), 1)))
FROM made
SQL
# The correlation of 40,000 independent pairs has a standard deviation of 0.005.
cmp_ok(abs $order, '<', 0.03, 'neither does the number follow the order of making');
cmp_ok(abs $by_shard, '<', 0.03, '  nor the shard');
cmp_ok(abs $by_digit, '<', 0.03, '  nor the text');

# --- with the type ---------------------------------------------------------------------------

$node->safe_psql('postgres', 'CREATE EXTENSION randflake_type');

# The identifier of a second's lower end is never issued: here all of a second, under node ids 0 and
# 1, are.
$second += 120;
clock_stands_at($node, $second);
$node->safe_psql('postgres', 'SELECT randflake_status_reset()');
$node->safe_psql('postgres', 'CREATE TABLE whole AS SELECT randflake_generate() AS id FROM generate_series(1, 200000)');
$node->safe_psql('postgres', 'INSERT INTO whole SELECT randflake_next() FROM generate_series(200001, 262143)');
error_is($node, 'SET randflake.max_wait = 0; SELECT randflake_generate()', '53400', {},
    'every identifier of a second but one is issued');
is( $node->safe_psql('postgres', <<'SQL'), '0 131071 1|1 131072 0', '  from number 1 of node id 0 on');
SELECT string_agg(format('%s %s %s', node_id, count, first), '|' ORDER BY node_id)
FROM (SELECT node_id, count(DISTINCT sequence), min(sequence) AS first FROM whole, randflake_decode(id) GROUP BY 1) AS f
SQL
my $lower = "randflake_lower(to_timestamp($second))";
is($node->safe_psql('postgres', "SELECT count(*) FROM whole WHERE id = $lower\::bigint"), 0,
    '  and the lower end of the second is not among them');
is($node->safe_psql('postgres', "SELECT count(*) FROM whole WHERE id::randflake > $lower"), 262143,
    '  but before them');
is($node->safe_psql('postgres', 'SELECT ids_issued, slots_exhausted FROM randflake_status'), '262143|2',
    '  as the counters say');
is($node->safe_psql('postgres', 'SELECT string_agg(ids_issued::text, $$|$$ ORDER BY node_id) FROM randflake_slots'),
    '131071|131072', '  for each node id');

# The hash of a value does not tell its node id and sequence number: it is none of the server's
# hashes of the number inside, for all numbers of a second and node id.
my $hashes = <<'SQL';
WITH raw AS (SELECT (extract(epoch FROM generated_at)::bigint - 1730000000 << 34) + (node_id::bigint << 17) + sequence
                 AS inside, id FROM whole, randflake_decode(id) LIMIT 1000)
SELECT count(*) FILTER (WHERE hash_record(ROW(id::randflake)) = hash_record(ROW(f)))
     + count(*) FILTER (WHERE randflake_hash(id::randflake) = hashint8(f)),
       count(DISTINCT randflake_hash(id::randflake))
FROM raw, LATERAL (VALUES (inside), (inside # (-9223372036854775807 - 1)), (id)) AS form (f)
SQL
is($node->safe_psql('postgres', $hashes), '0|1000', 'the hash of a value is not one of its number');

$node->stop;
done_testing();
