# Updates of the extension in a database: from every version there is to the default one, which must
# leave what a fresh installation makes, and the work that the database did before.

use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Randflake;
use RandflakeCatalog;
use Test::More;

my $node = new_server('main');
$node->start;

sub query {
    my ($database, $sql) = @_;
    return $node->safe_psql($database, $sql);
}

my ($default) = query('postgres',
    q{SELECT default_version FROM pg_available_extensions WHERE name = 'randflake'});
my @versions = split /\n/, query('postgres',
    q{SELECT version FROM pg_available_extension_versions WHERE name = 'randflake'});
ok((grep { $_ eq $default } @versions), "the default version $default is there");

# A database with a version of the extension, the default one if none is given.
sub create_database {
    my ($database, $version) = @_;
    query('postgres', "CREATE DATABASE $database");
    query($database, 'CREATE EXTENSION randflake' . ($version ? " VERSION '$version'" : ''));
    return;
}

create_database('fresh');
is(query('fresh', q{SELECT extversion FROM pg_extension WHERE extname = 'randflake'}),
    $default, 'a fresh installation is of the default version');
my $fresh = definitions_of($node, 'fresh');
cmp_ok(scalar(grep { /randflake/ } keys %$fresh), '>', 50, 'its objects are found');

# --- the comparison sees ---------------------------------------------------------------------

for my $change (
    'GRANT EXECUTE ON FUNCTION randflake_decode(bigint) TO PUBLIC',
    'REVOKE EXECUTE ON FUNCTION randflake_generate() FROM PUBLIC',
    'GRANT SELECT (holder) ON randflake_lease TO PUBLIC',
    q{COMMENT ON FUNCTION randflake_shard(bigint, integer) IS 'something else'},
    'COMMENT ON COLUMN randflake_lease.holder IS NULL',
    'ALTER FUNCTION randflake_decode(bigint) IMMUTABLE',
    'ALTER FUNCTION randflake_generate() PARALLEL UNSAFE',
    'ALTER FUNCTION randflake_lease_purge(interval) RESET ALL',
    'ALTER TABLE randflake_lease ALTER holder DROP NOT NULL',
    'ALTER TABLE randflake_lease DROP CONSTRAINT randflake_lease_no_overlap',
    'ALTER SEQUENCE randflake_lease_takeover MINVALUE -1',
    'ALTER VIEW randflake_leases SET (security_barrier)',
    q{UPDATE pg_extension SET extcondition[1] = 'WHERE false' WHERE extname = 'randflake'},
    'ALTER EXTENSION randflake DROP FUNCTION randflake_from_text(text)')
{
    query('postgres', 'CREATE DATABASE changed TEMPLATE fresh');
    query('changed', $change);
    is(scalar(differences(definitions_of($node, 'changed'), $fresh)),
        1, "a difference is seen: $change");
    query('postgres', 'DROP DATABASE changed');
}

# --- every version ---------------------------------------------------------------------------

for my $version (@versions) {
    my $database = 'from_' . $version =~ s/\W/_/gr;
    create_database($database, $version);
    query($database, <<'SQL');
CREATE TABLE item (id bigint PRIMARY KEY DEFAULT randflake_generate(), n integer);
INSERT INTO item (n) SELECT generate_series(1, 1000);
CREATE TABLE inside AS SELECT id, (randflake_decode(id)).* FROM item;
SELECT randflake_lease_configure(10, 20, 30, 1);
SELECT randflake_lease_acquire('holder', '00000000-0000-0000-0000-000000000001', 3, 10,
                               '0123456789abcdef');
CREATE TABLE leases AS SELECT * FROM randflake_lease;
CREATE TABLE pools AS SELECT * FROM randflake_lease_pool;
SQL
    my $path = query($database, <<"SQL");
SELECT path FROM pg_extension_update_paths('randflake')
WHERE source = '$version' AND target = '$default'
SQL
    if ($version ne $default) {
        isnt($path, '', "version $version can be updated to $default");
        query($database, 'ALTER EXTENSION randflake UPDATE');
    }
    is(query($database, q{SELECT extversion FROM pg_extension WHERE extname = 'randflake'}),
        $default, "version $version becomes $default");

    query($database, 'INSERT INTO item (n) SELECT generate_series(1001, 2000)');
    is(query($database, 'SELECT count(DISTINCT id) FROM item'), 2000,
        '  identifiers of before and after are distinct');
    is(query($database, <<'SQL'), '1000|0', '  those of before decode as before');
SELECT count(*), count(*) FILTER (WHERE i.* IS DISTINCT FROM
       (i.id, d.generated_at, d.node_id, d.sequence)::inside)
FROM inside i, randflake_decode(i.id) d
SQL
    is(query($database, <<'SQL'), '1|1', '  the coordinator keeps its pool and leases');
SELECT (SELECT count(*) FROM leases JOIN randflake_lease USING (lease_id, nodes, span)),
       (SELECT count(*) FROM pools JOIN randflake_lease_pool USING (nodes, max_duration, high_water))
SQL

    query($database, 'DROP TABLE item, inside, leases, pools');
    same_definitions(definitions_of($node, $database), $fresh,
        '  everything is as in a fresh installation');
}

# No path may lead back from the default version, and none from a version that nothing installs.
my $others = join ', ', map { "'$_'" } @versions;
is(query('postgres', <<"SQL"), 0, 'there are no other versions');
SELECT count(*) FROM pg_extension_update_paths('randflake')
WHERE path IS NOT NULL AND (source NOT IN ($others) OR source = '$default')
SQL

done_testing();
