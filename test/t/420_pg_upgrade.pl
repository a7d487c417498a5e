# Runs pg_upgrade to a new server with the same secret. Data stays the same, and new identifiers
# differ from old ones. pg_upgrade restores definitions before data. So definitions that use the
# type must work while the database still lacks its fingerprint. RANDFLAKE_OLD_INSTALL names the
# installation directory of an older PostgreSQL with the extension. Without it, both servers have
# the same version.
use Randflake;
use RandflakeCatalog;
use RandflakeWindowFile;
use Time::HiRes qw(time);

my $install = $ENV{RANDFLAKE_OLD_INSTALL};
my $secret = random_secret();

sub new_cluster($name, @options) {
    my $node = PostgreSQL::Test::Cluster->new($name, @options);
    my $checksums = $node->pg_version >= 18 ? ['--no-data-checksums'] : [];
    $node->init(extra => [ '--encoding=UTF8', '--no-locale', @$checksums ]);
    $node->append_conf('postgresql.conf', "shared_preload_libraries = 'randflake'\ninclude = 'randflake.conf'\n");
    configure($node, node_id => 5, node_count => 2, secret => $secret, max_wait => '1min');
    return $node;
}

my $old = new_cluster('old', $install ? (install_path => $install) : ());
$old->start;
$old->sql(<<'SQL');
CREATE ROLE support;
CREATE EXTENSION randflake_type CASCADE;
CREATE EXTENSION randflake_coordinator;
GRANT EXECUTE ON FUNCTION randflake_decode(bigint) TO support;
REVOKE USAGE ON TYPE randflake FROM PUBLIC;
GRANT USAGE ON TYPE randflake TO support;
CREATE TABLE item (id bigint PRIMARY KEY DEFAULT randflake_generate(), n integer);
INSERT INTO item (n) SELECT generate_series(1, 50000);
CREATE TABLE parcel (id randflake PRIMARY KEY DEFAULT randflake_next(), n integer);
INSERT INTO parcel SELECT randflake_generate(), generate_series(1, 1000);
CREATE TABLE made (id randflake PRIMARY KEY DEFAULT randflake_next(), others randflake[], n integer);
INSERT INTO made (n) SELECT n FROM generate_series(1, 1000) AS n;
UPDATE made SET others = ARRAY[id, NULL];
CREATE INDEX ON made USING hash (id);
CREATE INDEX ON made USING brin (id);
CREATE TABLE parts (LIKE made) PARTITION BY RANGE (id);
CREATE TABLE parts_old PARTITION OF parts FOR VALUES FROM (MINVALUE) TO (randflake_lower('2026-01-01'));
CREATE TABLE parts_new PARTITION OF parts FOR VALUES FROM (randflake_lower('2026-01-01')) TO (MAXVALUE);
INSERT INTO parts TABLE made;
CREATE VIEW recent AS SELECT * FROM made WHERE id >= randflake_lower('2025-06-01');
CREATE TABLE before AS SELECT id, inside.* FROM item, randflake_decode(id) AS inside;
CREATE VIEW shards AS SELECT id, randflake_shard(id, 8) FROM item;
SELECT randflake_lease_configure(10, 20, 30, 1, never_leased => true);
SELECT pg_sleep(2.5);
SELECT randflake_lease_acquire('holder', '00000000-0000-0000-0000-000000000001', 3, 10,
                               '0123456789abcdef');
CREATE DATABASE unbound;
SQL
$old->sql(comparisons());
$old->safe_psql('unbound',
    'CREATE EXTENSION randflake_type CASCADE; DELETE FROM randflake_key; DELETE FROM randflake_key_check');
my @contents = ('SELECT * FROM item ORDER BY id', 'SELECT * FROM shards ORDER BY id',
    'SELECT * FROM parcel ORDER BY id', 'SELECT * FROM made ORDER BY id',
    'SELECT *, tableoid::regclass FROM parts ORDER BY id', 'SELECT count(*) FROM recent',
    'SELECT * FROM pair ORDER BY a', 'SELECT * FROM randflake_key', 'SELECT * FROM randflake_lease',
    'SELECT * FROM randflake_lease_pool', 'SELECT id, inside.* FROM item, randflake_decode(id) AS inside ORDER BY id');
my $privileges = <<'SQL';
SELECT oid::regprocedure::text, proacl FROM pg_proc WHERE proname LIKE 'randflake%'
UNION ALL SELECT oid::regtype::text, typacl FROM pg_type WHERE typname = 'randflake'
ORDER BY 1
SQL
my %expected = map { $_ => $old->sql($_) } @contents, $privileges;
my $old_version = $old->sql('SHOW server_version');
$old->stop;

my $new = new_cluster('new');
# pg_upgrade writes into its directory. The test stays in its own: Cluster.pm removes that of the
# server first, and File::Temp removes nothing for a process whose directory is gone.
$new->command_ok([
        'sh', '-c', 'cd "$0" && exec "$@"', $new->basedir, 'pg_upgrade', '--no-sync',
        '-d', $old->data_dir, '-b', $old->config_data('--bindir'), '-p', $old->port,
        '-D', $new->data_dir, '-B', $new->config_data('--bindir'), '-P', $new->port,
        '-s', $new->host ], 'pg_upgrade');
ok(!-e window_path($new), '  leaves the state behind');
my $started = time;
$new->start;
my $new_version = $new->sql('SHOW server_version');
isnt($new_version =~ s/\D.*//r, $old_version =~ s/\D.*//r, "from $old_version to $new_version") if $install;
is($new->sql(q{SELECT n_tup_ins FROM pg_stat_user_tables WHERE relname = 'randflake_key'}), 0,
    'nothing is bound before the files are there');

is($new->sql($_), $expected{$_}, "as before: $_") for @contents, $privileges;
$new->sql('INSERT INTO item (n) SELECT generate_series(50001, 100000)');
all_distinct($new, 'SELECT id FROM item', 100_000, 'no identifier comes again');
is($new->sql(<<'SQL'), 't|t', 'the next are of later seconds and the same node ids');
SELECT min(generated_at) > (SELECT max(generated_at) FROM before), bool_and(node_id IN (5, 6))
FROM item, randflake_decode(id) WHERE n > 50000
SQL

$new->sql('INSERT INTO made (n) VALUES (1001)');
is($new->sql(
        'SET enable_seqscan = off; SELECT n FROM made WHERE id > (SELECT id FROM made WHERE n = 1000) ORDER BY id'),
    1001, 'values of the type go on');

my $keys = 'SELECT (SELECT count(*) FROM randflake_key), (SELECT count(*) FROM randflake_key_check)';
is($new->safe_psql('unbound', $keys), '0|0', 'an unbound database stays so');
$new->safe_psql('unbound', 'SELECT randflake_next()');
is($new->safe_psql('unbound', $keys), '1|1', '  until it is used');

is($new->sql("SELECT min(generated_at) > to_timestamp($started + 2) FROM item, randflake_decode(id)"
          . ' WHERE n > 50000'), 't', 'the new server held off from its start');

$new->sql(<<'SQL');
DROP DOMAIN pair_domain;
DROP FUNCTION pair_function;
DROP TABLE pair, pair_log CASCADE;
DROP VIEW shards, recent;
DROP TABLE item, parcel, before, made, parts;
REVOKE EXECUTE ON FUNCTION randflake_decode(bigint) FROM support;
REVOKE USAGE ON TYPE randflake FROM support;
GRANT USAGE ON TYPE randflake TO PUBLIC;
CREATE DATABASE fresh;
SQL
$new->safe_psql('fresh', 'CREATE EXTENSION randflake_type CASCADE; CREATE EXTENSION randflake_coordinator');
same_definitions(definitions_of($new, 'postgres'), definitions_of($new, 'fresh'),
        'every object is as in a fresh installation');
done_testing();
