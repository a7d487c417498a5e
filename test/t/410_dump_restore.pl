# Dumps a database that makes identifiers and coordinates leases, and restores it to the same server
# and to another server. Identifiers, privileges, leases and the bounds of the pool stay the same.
use Randflake;
use RandflakeCatalog;

my $secret = random_secret();
my $source = new_server('source', settings => { node_id => 1, secret => $secret });
my $other = new_server('other', settings => { node_id => 2, secret => $secret });
my $roles = 'CREATE ROLE app LOGIN; CREATE ROLE support LOGIN; CREATE ROLE holder LOGIN';
for my $node ($source, $other) {
    $node->start;
    $node->sql($roles);
}

$source->sql('CREATE DATABASE app');
$source->safe_psql('app', <<'SQL');
CREATE EXTENSION randflake_type CASCADE;
CREATE EXTENSION randflake_coordinator;
REVOKE EXECUTE ON FUNCTION randflake_generate_text() FROM PUBLIC;
GRANT EXECUTE ON FUNCTION randflake_generate_text() TO app;
GRANT EXECUTE ON FUNCTION randflake_decode(bigint) TO support;
GRANT EXECUTE ON FUNCTION randflake_lease_acquire(text, uuid, integer, integer, text) TO holder;
GRANT SELECT ON randflake_leases TO holder;
REVOKE USAGE ON TYPE randflake FROM PUBLIC;
GRANT USAGE ON TYPE randflake TO app;

CREATE TABLE item (
    id bigint PRIMARY KEY DEFAULT randflake_generate(),
    label text NOT NULL DEFAULT randflake_generate_text(),
    shard integer GENERATED ALWAYS AS (randflake_shard(id, 16)) STORED
) PARTITION BY HASH (id);
CREATE TABLE parcel (id randflake PRIMARY KEY DEFAULT randflake_next(), item bigint);
CREATE TABLE item_0 PARTITION OF item FOR VALUES WITH (MODULUS 2, REMAINDER 0);
CREATE TABLE item_1 PARTITION OF item FOR VALUES WITH (MODULUS 2, REMAINDER 1);
CREATE INDEX ON item (randflake_to_text(id));
CREATE VIEW item_inside AS SELECT item.*, inside.* FROM item, randflake_decode(id) AS inside;
CREATE MATERIALIZED VIEW item_seconds AS SELECT id, randflake_generated_at(id) FROM item;
GRANT SELECT, INSERT ON item TO app;
GRANT SELECT ON item, item_inside TO support;
INSERT INTO item SELECT FROM generate_series(1, 5000);
INSERT INTO parcel (item) SELECT id FROM item;

SELECT randflake_lease_configure(first_node_id => 100, node_count => 50, max_duration => 20,
                                 max_clock_skew => 1, never_leased => true);
SELECT pg_sleep(2.5);
SELECT randflake_lease_acquire('first', '00000000-0000-0000-0000-000000000001', 3, 20,
                               '0123456789abcdef');
SELECT randflake_lease_acquire('second', '00000000-0000-0000-0000-000000000002', 2, 20,
                               '0123456789abcdef');
SELECT randflake_lease_release(2, '00000000-0000-0000-0000-000000000002', lower(span))
FROM randflake_lease WHERE lease_id = 2;
-- A hold of this kind exists after a failover.
INSERT INTO randflake_lease_hold VALUES (99, 'takeover', extract(epoch FROM now())::bigint, 3597, 1);
UPDATE randflake_lease_pool SET high_water = (SELECT max(randflake_lease_until(NULL, h)) FROM randflake_lease_hold h);
REFRESH MATERIALIZED VIEW item_seconds;
SQL
$source->safe_psql('app', comparisons());

my @contents = ('SELECT * FROM item ORDER BY id', 'SELECT * FROM item_inside ORDER BY id',
    'SELECT * FROM item_seconds ORDER BY id', 'SELECT *, id::bigint AS number FROM parcel ORDER BY id',
    'SELECT * FROM pair ORDER BY a', 'SELECT * FROM randflake_lease ORDER BY lease_id',
    'SELECT * FROM randflake_lease_hold ORDER BY entry', 'SELECT * FROM randflake_lease_pool',
    'SELECT last_value, is_called FROM randflake_lease_lease_id_seq');
my %expected = map { $_ => $source->safe_psql('app', $_) } @contents;
my $definitions = definitions_of($source, 'app');

sub is_restored($node, $database, $how) {
    is($node->safe_psql($database, $_), $expected{$_}, "$how: $_") for @contents;
    same_definitions(definitions_of($node, $database), $definitions, '  the same objects, comments and privileges');
    is($node->safe_psql($database, 'INSERT INTO item DEFAULT VALUES; SELECT count(DISTINCT id) FROM item'),
        5001, '  the next identifier is another one');

    error_is($node, q{SELECT randflake_lease_acquire('third', '00000000-0000-0000-0000-000000000003', 3, 20, '0123456789abcdef')},
        '55000', { message => qr/^no lease may begin before/ }, '  the high-water mark holds', database => $database);
    my $pool = $expected{'SELECT * FROM randflake_lease_pool'};
    my ($mark) = $pool =~ /\|20\|1\|f\|131072\|60000\|(\d+)\|/;
    $node->safe_psql($database, 'SELECT randflake_lease_configure()');
    is($node->safe_psql($database,
        "SELECT high_water >= $mark, '$pool' NOT LIKE '%' || coordinator FROM randflake_lease_pool"), 't|t',
        '  also when it knows itself for another');
}

my $base = $source->basedir;
$source->command_ok([ 'pg_dump', '-f', "$base/plain", $source->connstr('app') ], 'a plain dump');
$source->command_ok([ 'pg_dump', '-Fc', '-f', "$base/custom", $source->connstr('app') ], 'a dump in custom format');
no_secret_in(slurp_file("$base/plain"), $secret, '  without the secret');

for my $node ($source, $other) {
    my $where = $node == $source ? 'same server' : 'other server';
    $node->sql("CREATE DATABASE $_") for qw(plain custom);
    $node->command_ok([ 'psql', '-Xq', '-v', 'ON_ERROR_STOP=1', '-f', "$base/plain", $node->connstr('plain') ],
        "restored by psql, $where");
    is_restored($node, 'plain', "plain, $where");
    $node->command_ok([ 'pg_restore', '--exit-on-error', '-d', $node->connstr('custom'), "$base/custom" ],
        "restored by pg_restore, $where");
    is_restored($node, 'custom', "custom, $where");
}

# --- each extension --------------------------------------------------------------------------
for my $case (
    [ 'randflake', 'CREATE TABLE held (id bigint PRIMARY KEY DEFAULT randflake_generate())' ],
    [ 'randflake_coordinator', 'CREATE TABLE held (id integer)',
        'SELECT randflake_lease_configure(first_node_id => 7)' ],
    [ 'randflake randflake_type', 'CREATE TABLE held (id randflake PRIMARY KEY DEFAULT randflake_next())' ],
    [ 'randflake randflake_coordinator', 'CREATE TABLE held (id bigint PRIMARY KEY DEFAULT randflake_generate())' ],
    [ 'randflake randflake_type randflake_coordinator',
        'CREATE TABLE held (id randflake PRIMARY KEY DEFAULT randflake_next())',
        'SELECT randflake_lease_configure(first_node_id => 7)' ]) {
    my ($extensions, @statements) = @$case;
    my $database = 'only_' . $extensions =~ tr/ /_/r;
    my @create = map { "CREATE EXTENSION $_" } split / /, $extensions;
    my $held = 'SELECT count(*), md5(string_agg(id::text, $$ $$ ORDER BY id)) FROM held';
    $source->sql("CREATE DATABASE $database");
    $source->safe_psql($database, join ';', @create, @statements,
        $statements[0] =~ /DEFAULT/ ? 'INSERT INTO held SELECT FROM generate_series(1, 100)' : ());
    $source->command_ok([ 'pg_dump', '-Fc', '-f', "$base/custom", $source->connstr($database) ],
        "a dump with $extensions");
    $other->sql("CREATE DATABASE $database");
    $other->command_ok(
        [ 'pg_restore', '--exit-on-error', '--jobs=2', '-d', $other->connstr($database), "$base/custom" ],
        '  is restored');
    is($other->safe_psql($database, $held), $source->safe_psql($database, $held), '  with its rows');
    same_definitions(definitions_of($other, $database), definitions_of($source, $database), '  and the same objects');
    is($other->safe_psql($database,
            q{SELECT string_agg(extname, ' ' ORDER BY extname) FROM pg_extension WHERE extname <> 'plpgsql'}),
        join(' ', sort split / /, $extensions), '  of the same extensions');
}
done_testing();
