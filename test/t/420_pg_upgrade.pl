# pg_upgrade from an older PostgreSQL: identifiers, privileges and leases stay, and the next
# identifiers are others. RANDFLAKE_OLD_INSTALL names the directory that has bin/ of the older
# PostgreSQL, in which the extension must be installed; scripts/matrix.sh sees to it.

use Docs;
use Randflake;
use RandflakeCatalog;

my $install = $ENV{RANDFLAKE_OLD_INSTALL}
  or plan skip_all => 'needs another PostgreSQL: run scripts/matrix.sh';

read_document('docs/operations.md', 'test/t/420_pg_upgrade.pl');
my $secret = random_secret();

# Both are configured alike, as is their operator's duty.
sub new_cluster {
    my ($name, @options) = @_;
    my $node = PostgreSQL::Test::Cluster->new($name, @options);
    my $checksums = $node->pg_version >= 18 ? ['--no-data-checksums'] : [];
    $node->init(extra => [ '--encoding=UTF8', '--no-locale', @$checksums ]);
    $node->append_conf('postgresql.conf',
        "shared_preload_libraries = 'randflake'\ninclude = 'randflake.conf'\n");
    configure($node, node_id => 5, node_count => 2, secret => $secret, max_wait => '1min');
    return $node;
}

my $old = new_cluster('old', install_path => $install);
$old->start;
$old->safe_psql('postgres', <<'SQL');
CREATE ROLE support;
CREATE EXTENSION randflake_type CASCADE;
CREATE EXTENSION randflake_coordinator;
GRANT EXECUTE ON FUNCTION randflake_decode(bigint) TO support;
CREATE TABLE item (id bigint PRIMARY KEY DEFAULT randflake_generate(), n integer);
INSERT INTO item (n) SELECT generate_series(1, 50000);
CREATE TABLE parcel (id randflake PRIMARY KEY DEFAULT randflake_next(), n integer);
INSERT INTO parcel SELECT randflake_generate(), generate_series(1, 1000);
CREATE TABLE before AS SELECT id, inside.* FROM item, randflake_decode(id) AS inside;
CREATE VIEW shards AS SELECT id, randflake_shard(id, 8) FROM item;
SELECT randflake_lease_configure(10, 20, 30, 1, never_leased => true);
SELECT pg_sleep(2.5);
SELECT randflake_lease_acquire('holder', '00000000-0000-0000-0000-000000000001', 3, 10,
                               '0123456789abcdef');
SQL
my @contents = (
    'SELECT * FROM item ORDER BY id',
    'SELECT * FROM shards ORDER BY id',
    'SELECT * FROM parcel ORDER BY id',
    'SELECT * FROM randflake_key',
    'SELECT * FROM randflake_lease',
    'SELECT * FROM randflake_lease_pool',
    'SELECT id, inside.* FROM item, randflake_decode(id) AS inside ORDER BY id');
my $privileges = <<'SQL';
SELECT oid::regprocedure, proacl FROM pg_proc WHERE proname LIKE 'randflake%'
ORDER BY oid::regprocedure::text
SQL
my %expected = map { $_ => $old->safe_psql('postgres', $_) } @contents, $privileges;
my $old_version = $old->safe_psql('postgres', 'SHOW server_version');
$old->stop;

my $new = new_cluster('new');
my $output = $new->basedir;
chdir $output or die "could not change the directory to $output: $!";
$new->command_ok(
    [
        'pg_upgrade', '--no-sync',
        '-d', $old->data_dir, '-b', $old->config_data('--bindir'), '-p', $old->port,
        '-D', $new->data_dir, '-B', $new->config_data('--bindir'), '-P', $new->port,
        '-s', $new->host
    ],
    'pg_upgrade');
$new->start;
my $new_version = $new->safe_psql('postgres', 'SHOW server_version');
isnt($new_version =~ s/\D.*//r, $old_version =~ s/\D.*//r, "from $old_version to $new_version");

is($new->safe_psql('postgres', $_), $expected{$_}, "as before: $_") for @contents, $privileges;
$new->safe_psql('postgres', 'INSERT INTO item (n) SELECT generate_series(50001, 100000)');
all_distinct($new, 'SELECT id FROM item', 100_000, 'no identifier comes again');
is($new->safe_psql('postgres', <<'SQL'), 't|t', 'the next are of later seconds and the same node ids');
SELECT min(generated_at) > (SELECT max(generated_at) FROM before), bool_and(node_id IN (5, 6))
FROM item, randflake_decode(id) WHERE n > 50000
SQL

# All objects are what a fresh installation of the new PostgreSQL makes of the same script.
$new->safe_psql('postgres', <<'SQL');
DROP VIEW shards;
DROP TABLE item, parcel, before;
REVOKE EXECUTE ON FUNCTION randflake_decode(bigint) FROM support;
CREATE DATABASE fresh;
SQL
$new->safe_psql('fresh', 'CREATE EXTENSION randflake_type CASCADE; CREATE EXTENSION randflake_coordinator');
same_definitions(definitions_of($new, 'postgres'), definitions_of($new, 'fresh'),
        'every object is as in a fresh installation');

every_block_was_used();
done_testing();
