# Runs COPY FROM into tables whose defaults make identifiers. COPY must insert many rows at once, as
# it does for bigserial. Only COPY may use the "_in_copy" variants of the functions.
use Randflake;

my $node = start_server('main', extensions => ['randflake_type'],
    init => [ allows_streaming => 'logical' ], conf => "autovacuum = off\n",
    settings => { node_id => 1, node_count => 16, secret => random_secret(), max_wait => '1h' });

# Maps each default to its column's type, and to a default that calls nextval() and makes values of
# the same length.
my %forms = ('randflake_generate()' => [ 'bigint', q{nextval('serial')} ],
    'randflake_generate_text()' => [ 'text', q{lpad(nextval('serial')::text, 13, '0')} ],
    'randflake_next()' => [ 'randflake', q{nextval('serial')} ],
    'snowflake_generate()' => [ 'bigint', q{nextval('serial')} ]);
my @forms = sort keys %forms;

my $rows = $node->basedir . '/rows';
my $many = $node->basedir . '/many';
my $no_number = $node->basedir . '/no_number';
append_to_file($rows, join '', map { "$_\n" } 1 .. 1000);
append_to_file($many, join '', map { sprintf "%016d\n", $_ } 1 .. 100_000);
append_to_file($no_number, "1\n2\nx\n");

# Runs the statements. Checks that the query's only column has the given number of distinct values.
sub makes_distinct($sql, $query, $count, $test_name) {
    $node->sql($sql);
    is($node->sql("SELECT count(*), count(id), count(DISTINCT id::text) FROM ($query) AS made (id)"),
        "$count|$count|$count", $test_name);
}

# Returns SQL that makes the table of a measurement.
sub table_of($type, $default) {
    return "DROP TABLE IF EXISTS many; DROP SEQUENCE IF EXISTS serial; CREATE SEQUENCE serial; CREATE TABLE many (id $type DEFAULT $default, body text);";
}

# --- WAL ---------------------------------------------------------------------------------------
# Runs a COPY twice, because other processes also write WAL. Returns the smaller of the two WAL
# sizes.
sub wal_of_copy($type, $default) {
    my @bytes = map {
        ($node->sql(table_of($type, $default) . <<"SQL") =~ /(\d+)\z/)[0]
SELECT pg_current_wal_insert_lsn() AS before \\gset
COPY many (body) FROM '$many';
SELECT pg_wal_lsn_diff(pg_current_wal_insert_lsn(), :'before');
SQL
    } 1 .. 2;
    return $bytes[0] < $bytes[1] ? $bytes[0] : $bytes[1];
}

for my $form (@forms) {
    my ($type, $serial_default) = @{ $forms{$form} };
    my $serial = wal_of_copy($type eq 'text' ? 'text' : 'bigint', $serial_default);
    my $ours = wal_of_copy($type, $form);
    cmp_ok($ours, '<=', 1.05 * $serial, sprintf '%s: WAL of COPY is %.3f of bigserial\'s', $form, $ours / $serial);
    makes_distinct('', 'SELECT id FROM many', 100_000, '  and all are distinct');
}

# --- tables and COPY ---------------------------------------------------------------------------
for my $form (@forms) {
    my $type = $forms{$form}[0];
    my $columns = "id $type DEFAULT $form, n integer";
    my $copy = "COPY made (n) FROM '$rows'";

    $node->sql("CREATE TABLE made ($columns, second $type DEFAULT $form)");
    my $both = 'SELECT id FROM made UNION ALL SELECT second FROM made';
    makes_distinct("$copy; $copy", $both, 4000, "$form: two columns of a table");
    makes_distinct("TRUNCATE made; ALTER TABLE made ADD PRIMARY KEY (id); $copy", 'SELECT id FROM made', 1000, '  with a primary key');

    makes_distinct(<<"SQL", 'SELECT id FROM made', 1000, '  default of a domain');
DROP TABLE made;
CREATE DOMAIN key AS $type DEFAULT $form;
CREATE TABLE made (id key, n integer);
$copy;
SQL
    makes_distinct('ALTER TABLE made ADD COLUMN more key', 'SELECT more FROM made', 1000,
        '  and of a column that is added');
    $node->sql('DROP TABLE made; DROP DOMAIN key');

    # --- triggers ------------------------------------------------------------------------------

    for my $when ('BEFORE', 'AFTER') {
        makes_distinct(<<"SQL", 'SELECT id FROM made UNION ALL SELECT id FROM log', 2000, "  with $when triggers that insert");
CREATE TABLE made ($columns);
CREATE TABLE log ($columns);
CREATE FUNCTION insert_too() RETURNS trigger LANGUAGE plpgsql AS
\$\$ BEGIN INSERT INTO log (n) VALUES (NEW.n); RETURN NEW; END \$\$;
CREATE TRIGGER insert_too $when INSERT ON made FOR EACH ROW EXECUTE FUNCTION insert_too();
$copy;
SQL
        $node->sql('DROP TABLE made, log; DROP FUNCTION insert_too');
    }

    # Each case has a statement and a description. The trigger runs the statement for the first row.
    for my $case ([ "ALTER TABLE other ADD COLUMN id $type DEFAULT $form", 'adds a column' ],
        [ "ALTER TABLE other ADD COLUMN id $type; ALTER TABLE other ALTER COLUMN id TYPE $type USING $form",
            'rewrites a table' ],
        [ "PERFORM add_column()", 'calls a function in SQL that adds a column' ],
        [ "DROP TABLE other; CREATE TABLE other AS SELECT $form AS id FROM generate_series(1, 1000)",
            'makes a table of a query' ],
        [ "EXECUTE 'PREPARE make AS INSERT INTO copied SELECT FROM generate_series(1, 10)'; EXECUTE 'EXECUTE make';"
              . " ALTER TABLE other ADD COLUMN id $type DEFAULT $form",
            'prepares a statement and adds a column' ]) {
        my ($action, $name) = @$case;
        makes_distinct(<<"SQL", 'SELECT id FROM other', 1000, "  with a trigger that $name");
CREATE TABLE made ($columns);
CREATE TABLE copied ($columns);
CREATE TABLE other AS SELECT n FROM generate_series(1, 1000) AS n;
CREATE FUNCTION add_column() RETURNS void LANGUAGE sql AS
'ALTER TABLE other ADD COLUMN id $type DEFAULT $form';
CREATE FUNCTION act() RETURNS trigger LANGUAGE plpgsql AS
\$\$ BEGIN $action; RETURN NULL; END \$\$;
CREATE TRIGGER act AFTER INSERT ON made FOR EACH ROW WHEN (NEW.n = 1) EXECUTE FUNCTION act();
$copy;
SQL
        is( $node->sql('SELECT count(DISTINCT id::text) = count(*) FROM (TABLE made UNION ALL TABLE copied) AS made'),
            't', '    as are those of the tables copied to');
        $node->sql('DROP TABLE made, copied, other; DROP FUNCTION act, add_column');
    }

    # --- event triggers ------------------------------------------------------------------------

    for my $case ([ "COPY copied (n) FROM '$rows'", 'copies' ],
        [ "BEGIN COPY copied (n) FROM '$no_number'; EXCEPTION WHEN data_exception THEN NULL; END", 'fails to copy' ]) {
        my ($action, $name) = @$case;
        makes_distinct(<<"SQL", 'SELECT id FROM other', 1000, "  ADD COLUMN with an event trigger that $name");
CREATE TABLE copied ($columns);
CREATE TABLE other AS SELECT n FROM generate_series(1, 1000) AS n;
CREATE FUNCTION act() RETURNS event_trigger LANGUAGE plpgsql AS \$\$ BEGIN $action; END \$\$;
CREATE EVENT TRIGGER act ON ddl_command_start WHEN TAG IN ('ALTER TABLE') EXECUTE FUNCTION act();
ALTER TABLE other ADD COLUMN id $type DEFAULT $form;
DROP EVENT TRIGGER act;
DROP FUNCTION act;
SQL
        $node->sql('DROP TABLE copied, other');
    }

    # --- after COPY ----------------------------------------------------------------------------

    makes_distinct(<<"SQL", 'SELECT id FROM made UNION ALL SELECT later FROM made', 2000, '  ADD COLUMN after COPY');
CREATE TABLE made ($columns);
\\set ON_ERROR_STOP off
COPY made (n) FROM '$no_number';
\\set ON_ERROR_STOP on
$copy;
ALTER TABLE made ADD COLUMN later $type DEFAULT $form;
SQL
    makes_distinct("ALTER TABLE made ALTER COLUMN id TYPE $type USING $form", 'SELECT id FROM made', 1000,
        '  table rewrite');
    error_is($node, "CREATE TABLE refused (id $type GENERATED ALWAYS AS ($form) STORED)",
        '42P17', { message => qr/not immutable/ }, '  generated columns are refused');
    $node->sql('DROP TABLE made');
}

# --- conditions --------------------------------------------------------------------------------
$node->sql(<<"SQL");
CREATE TABLE made (n integer CHECK (randflake_generate() IS NOT NULL));
CREATE TABLE log (n integer);
CREATE FUNCTION insert_too() RETURNS trigger LANGUAGE plpgsql AS
\$\$ BEGIN INSERT INTO log (n) VALUES (NEW.n); RETURN NULL; END \$\$;
CREATE TRIGGER insert_too AFTER INSERT ON made FOR EACH ROW
    WHEN (randflake_generate() % 2 = 0) EXECUTE FUNCTION insert_too();
COPY made (n) FROM '$rows' WHERE randflake_generate() % 2 = 0;
SQL
my ($chosen, $logged) = split /\|/, $node->sql('SELECT (SELECT count(*) FROM made), (SELECT count(*) FROM log)');
# The bounds 160 and 130 are about ten standard deviations.
cmp_ok(abs($chosen - 500), '<', 160, "WHERE takes about a half: $chosen of 1000");
cmp_ok(abs($logged - $chosen / 2), '<', 130, "  and a trigger's condition a half of these: $logged");

# --- privileges --------------------------------------------------------------------------------
$node->sql('DROP TABLE made; CREATE ROLE app LOGIN IN ROLE pg_read_server_files');
for my $form (@forms) {
    my $name = $form =~ s/\(\)//r;
    my $copy = "COPY made (n) FROM '$rows'";
    $node->sql(<<"SQL");
CREATE TABLE made (id $forms{$form}[0] DEFAULT $form, n integer);
GRANT INSERT ON made TO app;
REVOKE EXECUTE ON FUNCTION $form FROM PUBLIC;
SQL
    error_is($node, $copy, '42501', { message => qr/permission denied for function $name\b(?!_)/ },
        "$form: REVOKE holds for COPY", user => 'app');
    $node->sql("GRANT EXECUTE ON FUNCTION $form TO app");
    my $error = error_of($node, $copy, user => 'app');
    is($error->{text}, '', '  and GRANT');
    $node->sql("REVOKE EXECUTE ON FUNCTION ${name}_in_copy FROM PUBLIC");
    $error = error_of($node, $copy, user => 'app');
    is($error->{text}, '', '  without a GRANT on its twin');
    makes_distinct('', 'SELECT id FROM made', 2000, '  and all are distinct');
    $node->sql("DROP TABLE made; GRANT EXECUTE ON FUNCTION $form, ${name}_in_copy TO PUBLIC");
}

$node->sql('CREATE DATABASE schemas');
$node->safe_psql('schemas', <<'SQL');
CREATE SCHEMA hidden;
CREATE EXTENSION randflake SCHEMA hidden;
CREATE TABLE made (id bigint DEFAULT hidden.randflake_generate(), n integer);
GRANT INSERT, SELECT ON made TO app;
SQL
is($node->safe_psql('schemas',
    "SET max_parallel_workers_per_gather = 0; COPY made (n) FROM '$rows'; SELECT count(DISTINCT id) FROM made",
    extra_params => [ '-U', 'app' ]), 1000, 'a role without privileges on the schema of the extension copies');

# --- logical replication -----------------------------------------------------------------------
my $subscriber = start_server('subscriber', extensions => ['randflake_type'], conf => "autovacuum = off\n",
    settings => { node_id => 100, node_count => 16, secret => random_secret(), max_wait => '1h' });
my $connection = $node->connstr('postgres') =~ s/'/''/gr;
$node->sql(<<"SQL");
CREATE TABLE source (n integer PRIMARY KEY);
COPY source FROM '$rows';
CREATE PUBLICATION source FOR TABLE source;
DROP TABLE many;
CREATE TABLE many (body text);
COPY many FROM '$many';
CREATE PUBLICATION many FOR TABLE many;
SQL

# Returns how many bytes of WAL a subscriber writes for the initial copy of 100,000 rows. The
# published table lacks the identifier, so the subscriber makes it.
sub wal_of_initial_copy($type, $default) {
    my $before = $subscriber->sql(table_of($type, $default) . <<"SQL");
SELECT pg_current_wal_insert_lsn();
CREATE SUBSCRIPTION many CONNECTION '$connection' PUBLICATION many;
SQL
    $subscriber->wait_for_subscription_sync($node, 'many');
    return $subscriber->sql("SELECT pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '$before'); DROP SUBSCRIPTION many;");
}

for my $form (@forms) {
    my ($type, $serial_default) = @{ $forms{$form} };
    my $serial = wal_of_initial_copy($type eq 'text' ? 'text' : 'bigint', $serial_default);
    my $ours = wal_of_initial_copy($type, $form);
    cmp_ok($ours, '<=', 1.05 * $serial,
        sprintf '%s: WAL of the initial copy of a subscription is %.3f of bigserial\'s', $form, $ours / $serial);
    is($subscriber->sql('SELECT count(*), count(DISTINCT id::text) FROM many'),
        '100000|100000', '  and all are distinct');
}

# A trigger on the subscriber's table adds columns to another table, once during the initial copy
# and once while the subscriber applies rows.
my $columns = join ', ', map { "id_$_ $forms{$forms[$_]}[0] DEFAULT $forms[$_]" } 0 .. $#forms;
my $initial = join ', ', map { "ADD COLUMN initial_$_ $forms{$forms[$_]}[0] DEFAULT $forms[$_]" } 0 .. $#forms;
my $applied = $initial =~ s/initial_/applied_/gr;
$subscriber->sql(<<"SQL");
CREATE TABLE source (n integer PRIMARY KEY, $columns);
CREATE TABLE other AS SELECT n FROM generate_series(1, 1000) AS n;
CREATE FUNCTION add_columns() RETURNS trigger LANGUAGE plpgsql SET search_path = public AS \$\$
BEGIN
    IF NEW.n = 1 THEN
        ALTER TABLE other $initial;
    ELSE
        ALTER TABLE other $applied;
    END IF;
    RETURN NULL;
END
\$\$;
CREATE TRIGGER add_columns AFTER INSERT ON source
    FOR EACH ROW WHEN (NEW.n IN (1, 1001)) EXECUTE FUNCTION add_columns();
ALTER TABLE source ENABLE ALWAYS TRIGGER add_columns;
CREATE SUBSCRIPTION source CONNECTION '$connection' PUBLICATION source;
SQL
$subscriber->wait_for_subscription_sync($node, 'source');
$node->sql('INSERT INTO source SELECT generate_series(1001, 1100)');
$node->wait_for_catchup('source');
for my $column (0 .. $#forms) {
    my $name = $forms[$column];
    is($subscriber->sql("SELECT count(*), count(DISTINCT id_$column\::text) FROM source"),
        '1100|1100', "$name: distinct at a subscriber, of the initial copy and later");
    is( $subscriber->sql(
            "SELECT count(DISTINCT initial_$column\::text), count(DISTINCT applied_$column\::text) FROM other"),
        '1000|1000', '  and in columns that its triggers add');
}
$subscriber->stop;
$node->stop;
done_testing();
