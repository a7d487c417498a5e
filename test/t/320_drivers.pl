# The recipes of docs/drivers*.md, extracted from the pages and run against a server; see lib/Recipes.pm.
# scripts/test_tools.sh installs what they need.

use Docs;
use Randflake;
use Recipes;

read_document('docs/drivers.md', 'test/t/320_drivers.pl');
read_document('docs/drivers-javascript.md', 'test/t/320_drivers.pl');
read_document('docs/drivers-python.md', 'test/t/320_drivers.pl');
read_document('docs/drivers-java-go-rust.md', 'test/t/320_drivers.pl');
read_document('docs/drivers-ruby-php-perl.md', 'test/t/320_drivers.pl');
my $node = start_recipes('light', block('database'), block('tables'));

# --- JavaScript ------------------------------------------------------------------------------

# Node finds packages in node_modules beside the program. A Node.js among the packages goes before the
# machine's.
my $javascript = succeeds('node', '--version');
my $packages = 'test/js';

sub javascript {
    my ($program, %recipe) = @_;
    recipe(name => $program, packages => $packages, run => [ 'node', "$program.mjs" ],
        needs => [ 'node', $javascript, "$packages/node_modules (npm ci)", -d "$packages/node_modules" ],
        %recipe, files => [ 'text_form.mjs', "$program.mjs", @{ $recipe{files} // [] } ]);
}

javascript($_, tables => 1) for qw(pg postgres);
javascript('drizzle', files => ['schema.mjs'], prepare => [ [ 'sh', '-ec', block('drizzle-kit') ] ]);
javascript($_) for qw(sequelize knex kysely typeorm);

# Prisma's program downloads an engine for migrations, which making a client does not need: it is
# told that it has one.
javascript('prisma', tables => 1, files => ['schema.prisma'],
    environment => { PRISMA_SCHEMA_ENGINE_BINARY => '/bin/true', CHECKPOINT_DISABLE => 1 },
    prepare => [ [ 'prisma', 'generate', '--schema=schema.prisma' ] ]);

unlike(slurp_file("$packages/package-lock.json"), qr/"resolved"|https?:\/\/registry/,
    'the lock file names no host to download from');

# --- Python ----------------------------------------------------------------------------------

# Debian's packages belong to its own interpreter.
my $python = -x '/usr/bin/python3' ? '/usr/bin/python3' : 'python3';

sub python {
    my ($module, $package, %recipe) = @_;
    recipe(name => $module, files => [ 'text_form.py', "${module}_recipe.py" ],
        needs => [ $package, succeeds($python, '-c', "import $module") ],
        run => [ $python, "${module}_recipe.py" ], %recipe);
}

python('psycopg2', 'python3-psycopg2', tables => 1);
python('psycopg', 'python3-psycopg', tables => 1);
python('asyncpg', 'python3-asyncpg', tables => 1);
python('sqlalchemy', 'python3-sqlalchemy');
python('django', 'python3-django');

# --- Java and Go -----------------------------------------------------------------------------

my $jdbc = '/usr/share/java/postgresql.jar';
recipe(name => 'JDBC', files => ['Recipe.java'], tables => 1,
    needs => [ 'default-jdk-headless', succeeds('javac', '-version'), 'libpostgresql-jdbc-java', -e $jdbc ],
    run => [ 'java', '-XX:TieredStopAtLevel=1', '-cp', $jdbc, 'Recipe.java' ]);

recipe(name => 'lib/pq', files => ['pq.go'], tables => 1,
    needs => [
        'golang-go', succeeds('go', 'version'), 'golang-github-lib-pq-dev',
        -d '/usr/share/gocode/src/github.com/lib/pq' ],
    environment => {
        GOCACHE => PostgreSQL::Test::Utils::tempdir(), GOFLAGS => '', GO111MODULE => 'off',
        GOPATH => '/usr/share/gocode' }, run => [ 'go', 'run', 'pq.go' ]);

# --- Ruby, PHP, Perl -------------------------------------------------------------------------

my $ruby = '/usr/bin/ruby';
recipe(name => 'pg for Ruby', files => ['pg_recipe.rb'], tables => 1,
    needs => [ 'ruby-pg', succeeds($ruby, '-e', 'require "pg"') ],
    run => [ $ruby, 'pg_recipe.rb' ]);
recipe(name => 'ActiveRecord', files => ['activerecord.rb'],
    needs => [ 'ruby-activerecord', succeeds($ruby, '-e', 'require "pg"; require "active_record"') ],
    run => [ $ruby, 'activerecord.rb' ]);

my $php = '/usr/bin/php';
my $pdo = succeeds($php, '-r', 'exit(in_array("pgsql", PDO::getAvailableDrivers()) ? 0 : 1);');
recipe(name => 'PDO', files => ['pdo.php'], tables => 1, needs => [ 'php-cli php-pgsql', $pdo ],
    run => [ $php, 'pdo.php' ]);
recipe(name => 'Doctrine', files => ['doctrine.php'],
    needs => [
        'php-cli php-pgsql', $pdo, map { $_->[0], -e "/usr/share/php/$_->[1]/autoload.php" }
          [ 'php-doctrine-orm', 'Doctrine/ORM' ],
        [ 'php-symfony-cache', 'Symfony/Component/Cache' ] ], run => [ $php, 'doctrine.php' ]);

my $perl = '/usr/bin/perl';
recipe(name => 'DBD::Pg', files => ['dbd_pg.pl'], tables => 1,
    needs => [ 'libdbd-pg-perl', succeeds($perl, '-MDBD::Pg', '-e', '1') ],
    run => [ $perl, 'dbd_pg.pl' ]);

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
}

check_api('api', 'randflake_from_text', 'customer_text',
    'randflake_decode(public.randflake_from_text(id))');
check_api('api_type', 'randflake', 'customer_pkey', 'randflake_timestamp(id)');

$node->stop;
every_block_was_used();
done_testing();
