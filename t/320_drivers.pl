# Every recipe of docs/drivers.md, extracted from it and run against a server: what it prints must be
# the identifier in the database, to the last digit, its text form, and the row found by each.
# Those for the type print the text form alone.
#
# A recipe whose driver is not installed is skipped. test/js and test/prisma have the packages of
# the JavaScript ones: npm ci, in either.

use strict;
use warnings;

use Cwd qw(getcwd);
use Docs;
use IPC::Run ();
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Randflake;
use Test::More;

read_document('docs/drivers.md', 't/320_drivers.pl');
my $sources = getcwd();
my $node = start_server(
    'main',
    settings => { node_id => 1, secret => random_secret(), max_wait => '1h' },
    conf => "listen_addresses = '127.0.0.1'\n");

# Runs a program; returns whether it succeeded, and its output, errors included.
sub output_of {
    my (@command) = @_;
    my $output = '';
    my $good = eval { IPC::Run::run(\@command, '<', '/dev/null', '>&', \$output) };
    return ($good, $output);
}

# Whether a program succeeds: what tells if a driver is there.
sub succeeds {
    return (output_of(@_))[0];
}

# Writes a file of the document into a directory of its own; the directory.
my %directory;

sub extract {
    my ($recipe, @names) = @_;
    my $directory = $directory{$recipe} //= PostgreSQL::Test::Utils::tempdir();
    for my $name (@names) {
        append_to_file("$directory/$name", block($name));
    }
    return $directory;
}

# Runs a recipe in a database of its own and checks what it prints. Of the server's identifiers it
# gets one of the harder kind: negative, and none that a floating-point number can hold.
sub check_recipe {
    my ($recipe, @command) = @_;
    my $database = $recipe =~ tr/A-Za-z0-9//cdr;
    $node->safe_psql('postgres', qq{CREATE DATABASE "$database"});
    $node->safe_psql($database, <<"SQL");
CREATE SCHEMA original;
CREATE EXTENSION randflake_type SCHEMA original CASCADE;
CREATE FUNCTION randflake_generate() RETURNS bigint LANGUAGE plpgsql AS \$\$
DECLARE
    id bigint;
BEGIN
    LOOP
        id := original.randflake_generate();
        EXIT WHEN id < 0 AND id::float8::numeric <> id;
    END LOOP;
    RETURN id;
END \$\$;
ALTER DATABASE "$database" SET search_path = public, original;
SQL
    local %ENV = (
        %ENV,
        PGHOST => '127.0.0.1',
        PGPORT => $node->port,
        PGDATABASE => $database,
        PGUSER => scalar getpwuid($<),
        HOME => $directory{$recipe},
        GOCACHE => PostgreSQL::Test::Utils::tempdir(),
        GOFLAGS => '',
        GO111MODULE => 'off',
        GOPATH => '/usr/share/gocode');
    my ($good, $output) = output_of(@command);
    if (!$good) {
        fail("$recipe: runs");
        diag($output);
        return;
    }
    # Those for the type print it, and a name; the others a number, its text form, and two names.
    my ($type, $default, $shown) = $recipe =~ /_type$/
      ? ('randflake', 'randflake_next()', q{format('%s %s', id, name)})
      : ('bigint', 'randflake_generate()', q{format('%s %s %s %3$s', id, randflake_to_text(id), name)});
    is($node->safe_psql($database, <<'SQL'), "id|$type|$default", "$recipe: makes the key");
SELECT attname, format_type(atttypid, atttypmod), pg_get_expr(adbin, adrelid)
FROM pg_index JOIN pg_attribute ON attrelid = indrelid AND attnum = ALL (indkey)
JOIN pg_attrdef ON adrelid = attrelid AND adnum = attnum
WHERE indisprimary AND indrelid = 'customer'::regclass
SQL
    my $row = $node->safe_psql($database, "SELECT $shown FROM customer");
    ok($output eq "$row\n" && $row =~ / Ada$/, '  and loses nothing of it')
      or diag("in the database: $row\nprinted: $output");
    return;
}

# --- JavaScript ------------------------------------------------------------------------------

# Node finds packages in node_modules beside the program, or above. A Node.js among the packages goes
# before the machine's.
sub javascript_recipe {
    my ($recipe, $packages, $program, @prepare) = @_;
  SKIP: {
        skip 'node is not installed', 2 unless succeeds('node', '--version');
        skip "npm ci was not run in $packages", 2 unless -d "$packages/node_modules";
        my $directory = $directory{$recipe};
        local $ENV{PATH} = "$directory/node_modules/.bin:$ENV{PATH}";
        symlink "$sources/$packages/node_modules", "$directory/node_modules" or die $!;
        for my $step (@prepare) {
            my ($good, $output) = output_of('sh', '-c', "cd $directory && $step");
            ok($good, "$recipe: $step") or diag($output);
        }
        check_recipe($recipe, 'node', "$directory/$program");
    }
    return;
}

for my $recipe (map { ($_, "${_}_type") } qw(pg drizzle sequelize)) {
    extract($recipe, "$recipe.mjs");
    javascript_recipe($recipe, 'test/js', "$recipe.mjs");
}

# Prisma's program downloads an engine for migrations, which making a client does not need: it is
# told that it has one.
for my $kind ('', '_type') {
    my ($recipe, $schema) = ("prisma$kind", "schema$kind.prisma");
    extract($recipe, $schema, "$recipe.mjs");
    local $ENV{PRISMA_SCHEMA_ENGINE_BINARY} = '/bin/true';
    local $ENV{CHECKPOINT_DISABLE} = 1;
    local $ENV{HOME} = $directory{$recipe};
    javascript_recipe($recipe, 'test/prisma', "$recipe.mjs",
        "node_modules/.bin/prisma generate --schema=$schema");
}

# Lock files name no registry.
for my $lock (glob 'test/{js,prisma}/package-lock.json') {
    unlike(slurp_file($lock), qr/"resolved"|https?:\/\/registry/, "$lock names no host to download from");
}

# --- Python ----------------------------------------------------------------------------------

# Debian's packages belong to its own interpreter.
my $python = -x '/usr/bin/python3' ? '/usr/bin/python3' : 'python3';
for my $program (qw(psycopg2_recipe sqlalchemy_recipe django_recipe psycopg2_type sqlalchemy_type
    django_type)) {
    my ($module) = $program =~ /(.*)_/;
    my $recipe = $program =~ s/_recipe$//r;
    my $directory = extract($recipe, "$program.py");
  SKIP: {
        skip "Python has no $module (Debian: python3-$module)", 2
          unless succeeds($python, '-c', "import psycopg2, $module");
        check_recipe($recipe, $python, "$directory/$program.py");
    }
}

# --- Java and Go -----------------------------------------------------------------------------

extract('Java', 'Recipe.java');
extract('Java_type', 'RecipeType.java');
my ($jdbc) = grep { -e } '/usr/share/java/postgresql.jar';
SKIP: {
    skip 'java is not installed (Debian: default-jdk-headless)', 4 unless succeeds('javac', '-version');
    skip 'the JDBC driver is missing (Debian: libpostgresql-jdbc-java)', 4 unless $jdbc;
    check_recipe('Java', 'java', '-cp', $jdbc, "$directory{Java}/Recipe.java");
    check_recipe('Java_type', 'java', '-cp', $jdbc, "$directory{Java_type}/RecipeType.java");
}

extract('Go', 'recipe.go');
extract('Go_type', 'recipe_type.go');
SKIP: {
    skip 'go is not installed (Debian: golang-go)', 4 unless succeeds('go', 'version');
    skip 'lib/pq is missing (Debian: golang-github-lib-pq-dev)', 4
      unless -d '/usr/share/gocode/src/github.com/lib/pq';
    check_recipe('Go', 'go', 'run', "$directory{Go}/recipe.go");
    check_recipe('Go_type', 'go', 'run', "$directory{Go_type}/recipe_type.go");
}

# --- an API on a view, with the statements that PostgREST makes of its requests --------------

# Its arguments: what makes an identifier of the text, the index that finds it, and a call with it
# that the role has no right to.
sub check_api {
    my ($recipe, $from_text, $index, $forbidden) = @_;
    $node->safe_psql('postgres', "CREATE DATABASE $recipe");
    $node->safe_psql($recipe, 'CREATE EXTENSION randflake_type CASCADE');
    $node->safe_psql($recipe, block("$recipe.sql"));
    my $as_anon = 'SET ROLE web_anon; SET search_path = api, public;';
    my $made = $node->safe_psql($recipe,
        "$as_anon INSERT INTO customer (name) VALUES ('Ada') RETURNING to_json(customer)");
    my ($text) = $made =~ /^\{"id":"([0-9a-v]{1,13})","name":"Ada"\}$/;
    ok(defined $text, "$recipe: a request inserts and gets the text form") or diag($made);
    is($node->safe_psql($recipe, "$as_anon SELECT name FROM customer WHERE id = '$text'"),
        'Ada', '  and finds the row by it');
    is($node->safe_psql($recipe, "SELECT count(*) FROM customer WHERE id = ${from_text}('$text')"),
        1, '  which is the identifier in the database');
    like($node->safe_psql($recipe,
            "SET enable_seqscan = off; EXPLAIN SELECT * FROM api.customer WHERE id = '$text'"),
        qr/Index Scan using $index /, '  through an index');
    isnt($node->psql($recipe, "$as_anon SELECT * FROM public.customer"), 0, '  and cannot see the table');
    isnt($node->psql($recipe, "$as_anon SELECT public.$forbidden FROM customer"), 0, '  nor decode it');
    $node->safe_psql('postgres', "DROP DATABASE $recipe");
    $node->safe_psql('postgres', 'DROP ROLE web_anon');
    return;
}

check_api('api', 'randflake_from_text', 'customer_randflake_to_text_idx',
    'randflake_decode(public.randflake_from_text(id))');
check_api('api_type', 'randflake', 'customer_pkey', 'randflake_timestamp(id)');

$node->stop;
every_block_was_used();
done_testing();
