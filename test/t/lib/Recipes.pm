# Runs the recipes of docs/drivers*.md: programs that use a driver with keys of the types bigint and
# randflake. Runs each program in its own database, and compares the output with the database.

package Recipes;

use Cwd qw(getcwd);
use Docs;
use Exporter 'import';
use File::Basename qw(dirname);
use File::Path qw(make_path);
use Randflake;
use RandflakeInstallation;

our @EXPORT = qw(start_recipes without_library recipe succeeds);

my $sources = getcwd();
my ($node, $required, $database_sql, $tables_sql, $stand_in);

# Starts the server. `@blocks` is SQL: one block makes a database, and the other makes its tables.
# If a recipe's tools are missing and RANDFLAKE_DRIVERS is `word`, the recipe fails. Otherwise it is
# skipped.
sub start_recipes($word, @blocks) {
    $required = ($ENV{RANDFLAKE_DRIVERS} // '') eq $word;
    ($database_sql, $tables_sql) = @blocks;
    $node = start_server('main', settings => { node_id => 1, secret => random_secret(), max_wait => '1h' },
        conf => "listen_addresses = '127.0.0.1'\n");
    return $node;
}

# Starts a server in which SQL functions replace the library, for the following recipes.
sub without_library {
    ($stand_in) = @_;
    $node->stop;
    my ($prefix, $extensions) = private_installation();
    unlink glob "$extensions/randflake*" or die "no extension in $extensions";
    $node = PostgreSQL::Test::Cluster->new('plain', install_path => $prefix);
    $node->init;
    $node->append_conf('postgresql.conf', "listen_addresses = '127.0.0.1'\n");
    $node->start;
    $node->safe_psql('template1', $stand_in =~ s/^ALTER DATABASE.*//mr);
}

# Runs a program in a directory. Returns whether it succeeded, and its output and errors.
sub output_of($directory, @command) {
    my $output = '';
    my $good =
      eval { IPC::Run::run(\@command, '<', '/dev/null', '>&', \$output, init => sub { chdir $directory or die $! }) };
    return ($good, $output);
}

# Returns whether a program succeeds. The result shows whether the machine has a driver.
sub succeeds { return (output_of('.', @_))[0] }

# These functions return only identifiers that are negative and that no double can represent.
my $hard_identifiers = join '', map { my ($name, $type) = @$_; <<"SQL" } [qw(randflake_generate bigint)], [qw(randflake_next randflake)];
CREATE FUNCTION public.$name() RETURNS $type LANGUAGE plpgsql AS \$\$
DECLARE
    id $type;
BEGIN
    LOOP
        id := randflake.$name();
        EXIT WHEN id::bigint < 0 AND id::bigint::float8::numeric <> id::bigint;
    END LOOP;
    RETURN id;
END \$\$;
SQL

my $keys = <<'SQL';
SELECT string_agg(concat_ws(' ', indrelid::regclass, attname, format_type(atttypid, atttypmod),
                            pg_get_expr(adbin, adrelid)), ', ' ORDER BY indrelid::regclass::text)
FROM pg_index JOIN pg_attribute ON attrelid = indrelid AND attnum = ALL (indkey)
JOIN pg_attrdef ON adrelid = attrelid AND adnum = attnum
WHERE indisprimary AND indrelid IN ('customer'::regclass, 'purchase'::regclass)
SQL

# Describes the join table, whose columns have no default.
my $foreign_keys = <<'SQL';
SELECT string_agg(concat_ws(' ', attname, format_type(atttypid, atttypmod), confrelid::regclass,
                            pg_get_expr(adbin, adrelid)), ', ' ORDER BY attname)
FROM pg_constraint JOIN pg_attribute ON attrelid = conrelid AND attnum = ANY (conkey)
LEFT JOIN pg_attrdef ON adrelid = attrelid AND adnum = attnum
WHERE contype = 'f' AND conrelid = 'bought'::regclass
SQL

# A mapper's recipe prints all these lines, and a driver's recipe prints some of them.
my $printed = <<'SQL';
SELECT format('customer %s %s %s', id, randflake_to_text(id), name) FROM customer WHERE name = 'Ada'
UNION ALL SELECT format('purchase %s %s', id, item) FROM purchase WHERE item = 'pen'
UNION ALL SELECT format('arrays %s %s',
    (SELECT string_agg(id::text, ',' ORDER BY name) FROM customer WHERE name IN ('Ada', 'Bob')),
    (SELECT string_agg(id::text, ',' ORDER BY item) FROM purchase WHERE item IN ('ink', 'pen')))
UNION ALL SELECT format('bulk %s %s',
    (SELECT count(*) FROM customer WHERE name LIKE 'bulk %'),
    (SELECT count(*) FROM purchase WHERE item LIKE 'bulk %'))
UNION ALL SELECT format('json %s %s',
    (SELECT randflake_to_text(id) FROM customer WHERE name = 'Ada'),
    (SELECT id FROM purchase WHERE item = 'pen'))
UNION ALL SELECT format('number %s', number) FROM customer WHERE name = 'Ada'
UNION ALL SELECT format('bought %s', purchase_id) FROM bought JOIN customer ON customer.id = customer_id WHERE name = 'Ada'
UNION ALL SELECT 'malformed 404'
SQL

# Counts the rows of a recipe's bulk insert, and checks that at most 8 statements insert them.
my $bulk = <<'SQL';
SELECT count(*), count(DISTINCT concat(tableoid, ' ', xmin, ' ', cmin)) <= 8 FROM (
    SELECT tableoid, xmin, cmin FROM customer WHERE name LIKE 'bulk %'
    UNION ALL SELECT tableoid, xmin, cmin FROM purchase WHERE item LIKE 'bulk %') AS rows
SQL

# Runs the recipe `name`. The other arguments:
# - `files` lists names of the page's blocks. Each block becomes a file of the same name.
# - `programs` names files in test/recipes.
# - `needs` contains pairs: a requirement, and whether the machine meets it.
# - `tables` is true if the tables exist before the recipe runs.
# - `model` is true for the recipe of a mapper. Such a recipe prints all its lines. Recipes without
#   `tables` count as recipes of mappers.
# - `packages` is the directory with the recipe's node_modules.
# - `prepare` contains commands that run first, and `run` is the recipe's command.
# - `also` maps the names of more files to their contents.
# - `after` contains commands that run last, for example to make tables in a database named "again".
sub recipe(%recipe) {
    my $name = $recipe{name};
    my $directory = tempdir();
    my %files = (map({ $_ => block($_) } @{ $recipe{files} }), map({ $_ => slurp_file("$sources/test/recipes/$_") } @{ $recipe{programs} // [] }),
        %{ $recipe{also} // {} });
    for my $file (keys %files) {
        make_path(dirname("$directory/$file"));
        append_to_file("$directory/$file", $files{$file});
    }
    my @needs = @{ $recipe{needs} // [] };
    my @missing;
    while (my ($thing, $there) = splice @needs, 0, 2) {
        push @missing, $thing if !$there;
    }
  SKIP: {
      if (@missing) {
            my $reason = "$name: not installed: " . join ', ', @missing;
            skip $reason, 1 if !$required || $recipe{packages} && $ENV{RANDFLAKE_WITHOUT_NPM};
            fail($reason);
            return;
        }
        run_recipe(\%recipe, $directory);
    }
}

sub run_steps($name, $directory, @steps) {
    for my $step (@steps) {
        my ($good, $output) = output_of($directory, @$step);
        ok($good, "$name: @$step") or diag($output);
    }
}

sub check_tables($database) {
    is($node->safe_psql($database, $keys),
        'customer id bigint randflake_generate(), purchase id randflake randflake_next()',
        '  with both forms of a key');
    is($node->safe_psql($database, $foreign_keys),
        'customer_id bigint customer, purchase_id randflake purchase', '  and foreign keys of both');
}

sub run_recipe($recipe, $directory) {
    my $name = $recipe->{name};
    my ($find) = $database_sql =~ /^(ALTER DATABASE.*)/m;
    $node->sql('CREATE DATABASE shop');
    $node->safe_psql('shop', $stand_in ? "SELECT randflake.randflake_configure(NULL, 0); $find" : $database_sql);
    $node->safe_psql('shop', $hard_identifiers) if !$stand_in;
    $node->safe_psql('shop', $tables_sql) if $recipe->{tables};
    local %ENV = (%ENV, PGHOST => '127.0.0.1', PGPORT => $node->port, PGDATABASE => 'shop',
        PGUSER => scalar getpwuid($<), HOME => $directory, %{ $recipe->{environment} // {} });
    if ($recipe->{packages}) {
        symlink "$sources/$recipe->{packages}/node_modules", "$directory/node_modules" or die $!;
        $ENV{PATH} = "$directory/node_modules/.bin:$ENV{PATH}";
    }
    run_steps($name, $directory, @{ $recipe->{prepare} // [] });
    my $began = time;
    my ($good, $output) = output_of($directory, @{ $recipe->{run} });
    ok($good, "$name: runs") or diag($output);
    note("$name took ", time - $began, ' s');
    if ($good) {
        my $model = $recipe->{model} || !$recipe->{tables};
        check_tables('shop');
        my $expected = $node->safe_psql('shop', $printed) . "\n";
        $expected =~ s/^(?:bulk|json|number|bought) .*\n//gm if !$model;
        # Without the library, a search for a malformed key raises no error and finds no row.
        s/^malformed.*\n//m for $stand_in ? ($output, $expected) : ();
        is($output, $expected, '  prints what is in the database');
        is($node->safe_psql('shop', $bulk), '2000|t', '  inserts many rows together') if $model;
    }
    if ($recipe->{after}) {
        $node->sql('CREATE DATABASE again');
        $node->safe_psql('again', ($stand_in ? $find : $database_sql) =~ s/DATABASE shop/DATABASE again/r);
        run_steps($name, $directory, @{ $recipe->{after} });
        check_tables('again') if $node->safe_psql('again', q{SELECT to_regclass('bought')});
        $node->sql('DROP DATABASE again WITH (FORCE)');
    }
    $node->sql('DROP DATABASE shop WITH (FORCE)');
}

1;
