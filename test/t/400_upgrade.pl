# Updates of the extensions in a database: from every version there is to the default one, which must
# leave what a fresh installation makes, and the work that the database did before. Since there may
# be one version only, a next one is made up here, in an installation of the test's own, with an
# update to it; and another one, whose update forgets something, which must be noticed.

use Randflake;
use RandflakeCatalog;
use RandflakeInstallation;

my ($installation, $scripts) = private_installation();
my @extensions = qw(randflake randflake_type randflake_coordinator);    # as they can be created
my ($next, $faulty) = ('99.0', '99.1');

# --- the next version ------------------------------------------------------------------------

# What changes: the statements that update, and the same in the script that installs, as pairs of
# what stands there and what comes in its place.
my %changes = (
    randflake => {
        update => [
            <<'SQL',
CREATE FUNCTION randflake_is_even(id bigint) RETURNS boolean
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
AS $$ SELECT id OPERATOR(pg_catalog.%) 2 OPERATOR(pg_catalog.=) 0 $$;
SQL
            q{COMMENT ON FUNCTION randflake_is_even(bigint) IS 'whether it is even';},
            q{COMMENT ON FUNCTION randflake_generate_text() IS 'a new text';},
            'REVOKE ALL ON FUNCTION randflake_is_even(bigint) FROM PUBLIC;',
            'ALTER FUNCTION randflake_to_text(bigint) COST 7;'
        ],
        install => [
            [ q{'a new identifier in text form'}, q{'a new text'} ],
            [
                "randflake_to_text(id bigint) RETURNS text\nAS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;",
                "randflake_to_text(id bigint) RETURNS text\nAS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 7;"
            ],
            [ "-- Watching\n", <<'SQL' ] ] },
CREATE FUNCTION randflake_is_even(id bigint) RETURNS boolean
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
AS $$ SELECT id OPERATOR(pg_catalog.%) 2 OPERATOR(pg_catalog.=) 0 $$;
COMMENT ON FUNCTION randflake_is_even(bigint) IS 'whether it is even';
REVOKE ALL ON FUNCTION randflake_is_even(bigint) FROM PUBLIC;
SQL
    randflake_type => {
        update => [
            'ALTER TABLE randflake_key ADD COLUMN bound_at timestamptz;',
            'ALTER FUNCTION randflake_lower(timestamptz) COST 7;',
            q{COMMENT ON COLUMN randflake_key.bound_at IS 'since when';}
        ],
        install => [
            [
                'CREATE TABLE randflake_key (fingerprint text NOT NULL)',
                'CREATE TABLE randflake_key (fingerprint text NOT NULL, bound_at timestamptz)'
            ],
            [
                'COMMENT ON COLUMN randflake_key.fingerprint IS',
                "COMMENT ON COLUMN randflake_key.bound_at IS 'since when';\n"
                  . 'COMMENT ON COLUMN randflake_key.fingerprint IS'
            ],
            [
                "randflake_lower(second timestamptz) RETURNS randflake\nAS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;",
                "randflake_lower(second timestamptz) RETURNS randflake\nAS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 7;"
            ] ] },
    randflake_coordinator => {
        update => [
            q{ALTER TABLE randflake_lease ADD COLUMN label text NOT NULL DEFAULT '';},
            'GRANT SELECT (label) ON randflake_lease TO pg_monitor;',
            q{COMMENT ON COLUMN randflake_lease.label IS 'a label';}
        ],
        install => [
            [
                "    secrets text NOT NULL,\n    CONSTRAINT",
                "    secrets text NOT NULL,\n    label text NOT NULL DEFAULT '',\n    CONSTRAINT"
            ],
            [
                'GRANT SELECT ON randflake_leases, randflake_pool TO pg_monitor;',
                "GRANT SELECT ON randflake_leases, randflake_pool TO pg_monitor;\n"
                  . "COMMENT ON COLUMN randflake_lease.label IS 'a label';\n"
                  . 'GRANT SELECT (label) ON randflake_lease TO pg_monitor;'
            ] ] });

sub write_file {
    my ($name, $text) = @_;
    unlink "$scripts/$name";    # it may be a link
    append_to_file("$scripts/$name", $text);
}

my ($released) = slurp_file("$scripts/randflake.control") =~ /^default_version = '(.*)'$/m;
for my $extension (@extensions) {
    my $control = slurp_file("$scripts/$extension.control");
    is(($control =~ s/^default_version = '\Q$released\E'$/default_version = '$next'/mr) ne $control, 1,
        "$extension is of version $released");
    write_file("$extension.control", $control =~ s/^(default_version) = .*$/$1 = '$next'/mr);

    my $install = slurp_file("$scripts/$extension--$released.sql");
    for my $change (@{ $changes{$extension}{install} }) {
        my ($old, $new) = @$change;
        is(() = $install =~ /\Q$old\E/g, 1, "  its script has: $old");
        $install =~ s/\Q$old\E/$new/;
    }
    my @update = @{ $changes{$extension}{update} };
    write_file("$extension--$next.sql", $install);
    write_file("$extension--$released--$next.sql", join "\n", @update);
    write_file("$extension--$faulty.sql", $install);
    write_file("$extension--$released--$faulty.sql", join "\n", @update[ 0 .. $#update - 1 ]);
}

# --- a server that has all of them -----------------------------------------------------------

my $node = new_server('main', install_path => $installation);
$node->start;

sub query {
    my ($database, $sql) = @_;
    return $node->safe_psql($database, $sql);
}

# A database with a version of the extensions, the default one if none is given.
sub create_database {
    my ($database, $version) = @_;
    query('postgres', "CREATE DATABASE $database");
    query($database, "CREATE EXTENSION $_" . ($version ? " VERSION '$version'" : '')) for @extensions;
}

sub versions_of {
    my ($database) = @_;
    return query($database,
        q{SELECT string_agg(DISTINCT extversion, ' '), count(*) FROM pg_extension WHERE extname LIKE 'randflake%'});
}

create_database('fresh');
is(versions_of('fresh'), "$next|3", 'a fresh installation is of the default version');
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
    'ALTER FUNCTION randflake_bind_secret() SECURITY INVOKER',
    'ALTER TABLE randflake_lease ALTER holder DROP NOT NULL',
    'ALTER TABLE randflake_lease DROP CONSTRAINT randflake_lease_no_overlap',
    'ALTER SEQUENCE randflake_lease_takeover MINVALUE -1',
    'ALTER VIEW randflake_leases SET (security_barrier)',
    'ALTER TABLE randflake_key ENABLE REPLICA TRIGGER randflake_key_guard',
    q{UPDATE pg_extension SET extcondition[1] = 'WHERE false' WHERE extname = 'randflake_coordinator'},
    'ALTER EXTENSION randflake DROP FUNCTION randflake_from_text(text)')
{
    query('postgres', 'CREATE DATABASE changed TEMPLATE fresh');
    query('changed', $change);
    is(scalar(differences(definitions_of($node, 'changed'), $fresh)),
        1, "a difference is seen: $change");
    query('postgres', 'DROP DATABASE changed');
}

create_database('fresh_of_faulty', $faulty);
my $wanted = definitions_of($node, 'fresh_of_faulty');
create_database('updated_faultily', $released);
query('updated_faultily', "ALTER EXTENSION $_ UPDATE TO '$faulty'") for @extensions;
is(versions_of('updated_faultily'), "$faulty|3", 'an update that forgets something runs');
is(scalar(differences(definitions_of($node, 'updated_faultily'), $wanted)), scalar @extensions,
    '  and what each forgot is seen');

# --- every version ---------------------------------------------------------------------------

my @versions = split /\n/, query('postgres',
    "SELECT version FROM pg_available_extension_versions WHERE name = 'randflake' AND version <> '$faulty' ORDER BY 1");
is_deeply([ grep { $_ eq $released || $_ eq $next } @versions ], [ $released, $next ],
    "versions @versions");

for my $version (@versions) {
    my $database = 'from_' . $version =~ s/\W/_/gr;
    create_database($database, $version);
    query($database, <<'SQL');
CREATE TABLE item (id bigint PRIMARY KEY DEFAULT randflake_generate(),
                   ordered randflake UNIQUE DEFAULT randflake_next(), n integer);
INSERT INTO item (n) SELECT generate_series(1, 1000);
CREATE TABLE inside AS SELECT id, (randflake_decode(id)).*, ordered::text FROM item;
SELECT randflake_lease_configure(10, 20, 30, 1, never_leased => true);
SELECT pg_sleep(2.5);
SELECT randflake_lease_acquire('holder', '00000000-0000-0000-0000-000000000001', 3, 10,
                               '0123456789abcdef');
CREATE TABLE leases AS SELECT * FROM randflake_lease;
CREATE TABLE pools AS SELECT * FROM randflake_lease_pool;
SQL
    if ($version ne $next) {
        for my $extension (@extensions) {
            my $path = query($database, <<"SQL");
SELECT path FROM pg_extension_update_paths('$extension')
WHERE source = '$version' AND target = '$next'
SQL
            isnt($path, '', "$extension $version can be updated to $next");
            query($database, "ALTER EXTENSION $extension UPDATE");
        }
    }
    is(versions_of($database), "$next|3", "version $version becomes $next");

    query($database, 'INSERT INTO item (n) SELECT generate_series(1001, 2000)');
    is(query($database, 'SELECT count(DISTINCT id), count(DISTINCT ordered) FROM item'), '2000|2000',
        '  identifiers of before and after are distinct');
    is(query($database, <<'SQL'), '1000|0', '  those of before decode and show as before');
SELECT count(*), count(*) FILTER (WHERE i.* IS DISTINCT FROM
       (i.id, d.generated_at, d.node_id, d.sequence, item.ordered::text)::inside)
FROM inside i JOIN item USING (id), randflake_decode(i.id) d
SQL
    is(query($database, 'SELECT count(*) FROM randflake_key, randflake_key_check, randflake_status s'
          . ' WHERE randflake_key.fingerprint = s.key_fingerprint'
          . ' AND randflake_key_check.fingerprint = s.key_fingerprint'), 1,
        '  the type stays bound');
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
for my $extension (@extensions) {
    is(query('postgres', <<"SQL"), 0, "there are no other versions of $extension");
SELECT count(*) FROM pg_extension_update_paths('$extension')
WHERE path IS NOT NULL AND '$faulty' NOT IN (source, target)
  AND (source NOT IN ($others) OR source = '$next')
SQL
}

$node->stop;
done_testing();
