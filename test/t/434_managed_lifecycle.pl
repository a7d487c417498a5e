# What happens to a database with the edition for managed servers: it is dumped and restored, also as an
# extension of pg_tle; it moves to another tablespace; a later version is installed over its own.

use Docs;
use Randflake;
use RandflakeInstallation;
use RandflakeManaged;

my ($installation, $extensions) = private_installation();
my $node = managed_server('main', install_path => $installation);
install_managed($node, undef);

sub problem_is {
    my ($database, $pattern, $test_name) = @_;
    like(as_owner($node, 'SELECT mode, problem, first_node_id FROM randflake.randflake_status', $database), $pattern, $test_name);
}

# A new database with all that a dump of the owner's has.
sub restore {
    my ($from, $to) = @_;
    $node->safe_psql('postgres', "CREATE DATABASE $to OWNER owner");
    command_ok([ 'sh', '-c', "pg_dump -U owner '" . $node->connstr($from) . "' | psql -XqAt -v ON_ERROR_STOP=1 -U owner '" . $node->connstr($to) . "'" ], "$to: restored");
}

# --- the status ------------------------------------------------------------------------------------

problem_is('app', qr/^managed\|randflake is not configured in this database: .*\|$/, 'the status before it is configured');
as_owner($node, 'SELECT randflake.randflake_configure(NULL, 7); CREATE TABLE item (id bigint DEFAULT randflake.randflake_generate()); INSERT INTO item DEFAULT VALUES');
my $secret = 'SELECT secret FROM randflake.randflake_state';
restore('app', 'restored');
problem_is('restored', qr/^managed\|this database is a copy of the one that was configured.*\|7$/, '  of a restored dump');
is(as_owner($node, $secret, 'restored'), as_owner($node, $secret), '  which has the secret');
as_owner($node, 'DROP SEQUENCE randflake.randflake_tickets_7, randflake.randflake_numbers_7', 'restored');
problem_is('restored', qr/^managed\|this database is a copy.*\|7$/, '  without sequences');

# --- another tablespace ----------------------------------------------------------------------------

my $space = PostgreSQL::Test::Utils::tempdir();
$node->safe_psql('postgres', "CREATE TABLESPACE space LOCATION '$space'; CREATE DATABASE copy TEMPLATE app");
for my $place (qw(space pg_default)) {
    $node->safe_psql('postgres', "ALTER DATABASE $_ SET TABLESPACE $place") for qw(app copy);
    as_owner($node, 'INSERT INTO item SELECT FROM generate_series(1, 3)');
    error_is($node, 'SELECT randflake.randflake_generate()', '55000', { message => qr/is a copy/ }, "a copy in $place", database => 'copy');
}
is($node->safe_psql('app', 'SELECT count(DISTINCT id) FROM item'), 7, 'a database goes on in another tablespace');

# --- the extension ---------------------------------------------------------------------------------

# What pg_tle registers, an extension that is no superuser's, as files.
sub write_file {
    my ($name, $text) = @_;
    unlink "$extensions/$name";
    append_to_file("$extensions/$name", $text);
}

sub register {
    my ($program, @arguments) = @_;
    my $printed = `$program @arguments`;
    my ($function, $parts, $script) = $printed =~ /^SELECT pgtle\.(\w+)\('randflake_managed', (.*?), \$_randflake_managed_\$\n(.*)\$_randflake_managed_\$\);/s
      or die "$program printed something else";
    my @versions = $function eq 'install_extension' ? $parts =~ /^'([^']+)'/ : $parts =~ /'([^']+)'/g;
    write_file('randflake_managed--' . join('--', @versions) . '.sql', $script);
    write_file('randflake_managed.control', "default_version = '$versions[-1]'\nsuperuser = false\n");
    return $printed;
}
register('managed/pgtle.sh');
$node->safe_psql('postgres', 'CREATE DATABASE tle OWNER owner');
as_owner($node, 'CREATE EXTENSION randflake_managed; SELECT randflake.randflake_configure(NULL, 9); CREATE TABLE item (id bigint DEFAULT randflake.randflake_generate()); INSERT INTO item DEFAULT VALUES', 'tle');
restore('tle', 'tle_restored');
is(as_owner($node, $secret, 'tle_restored'), as_owner($node, $secret, 'tle'), 'the extension: a dump has the secret');
problem_is('tle_restored', qr/^managed\|this database is a copy.*\|9$/, '  and what was restored is a copy');
as_owner($node, 'SELECT randflake.randflake_configure(NULL, 10); INSERT INTO item DEFAULT VALUES', 'tle_restored');
is(as_owner($node, 'SELECT string_agg(d.node_id::text, $$,$$ ORDER BY d.node_id) FROM item, randflake.randflake_decode(id) AS d', 'tle_restored'), '9,10', '  which reads what there was, and makes more');
is(system("managed/pgtle.sh \"1'; DROP\" >/dev/null 2>&1") >> 8, 2, 'pgtle.sh takes nothing but a version');

done_testing();
