# Moves tables beside real publications and subscriptions. A subscriber keeps what its publisher
# sends, and the state of a move never reaches a subscriber.
use Randflake;

$RandflakeSessions::keep = 1;
my $tool = 'randflake_migrate';
my $script = slurp_file('migrate/randflake_migrate.sql');
my ($publisher, $subscriber) = map {
    start_server($_, settings => { node_id => 1 + ($_ eq 'subscriber'), secret => '00112233445566778899aabbccddeeff', max_wait => '1h' },
        extensions => [], init => [ allows_streaming => 'logical' ], conf => "deadlock_timeout = 1min\n")
} qw(publisher subscriber);
my $tables = 'CREATE TABLE item (id serial PRIMARY KEY, n integer); CREATE TABLE note (id integer PRIMARY KEY);';
$_->sql("CREATE SCHEMA randflake; CREATE EXTENSION randflake SCHEMA randflake; $tables CREATE TABLE own (id serial PRIMARY KEY)")
  for $publisher, $subscriber;
my $connection = $publisher->connstr('postgres') =~ s{'}{''}gr;

sub blockers($node, $group) {
    return $node->sql("SELECT object || ' ' || note FROM $tool.plan() WHERE grp = '$group' AND what = 'blocker' ORDER BY 1");
}

sub refused($node, $sql, $pattern, $test_name) { like(error_of($node, $sql)->{text}, $pattern, $test_name) }
sub moved($node) { is($node->psql('postgres', "SELECT $tool.todo(1) \\gexec", on_error_stop => 1), 0, '  the steps run') }

# Inserts a row at the publisher and waits for it at the subscriber.
sub arrives($n, $when) {
    $publisher->sql("INSERT INTO note VALUES ($n)");
    ok($subscriber->poll_query_until('postgres', "SELECT EXISTS (SELECT FROM note WHERE id = $n)"), "rows arrive $when");
}

# --- a publication of all tables ---------------------------------------------------------------
$publisher->sql("INSERT INTO item (n) SELECT generate_series(1, 10); CREATE PUBLICATION everything FOR ALL TABLES WITH (publish = 'insert, update'); BEGIN; $script COMMIT");
$subscriber->sql("BEGIN; $script COMMIT");
$subscriber->sql("CREATE SUBSCRIPTION feed CONNECTION '$connection' PUBLICATION everything");
arrives(1, 'with a publication of all tables');
my $sends = qr/publication everything would send the state of the move/;
like(blockers($publisher, 'own'), $sends, '  which is a blocker');
refused($publisher, "SELECT $tool.$_('own')", $sends, "  to $_()") for qw(start transaction);
refused($publisher, "INSERT INTO $tool.move (id, grp, mover, tables, names, owners, target, rows) VALUES (1, '', '', '{}', '{}', '{}', '', '')",
    qr/publication "everything" would send/, '  and the state refuses a row');
my $remedy = $publisher->sql("SELECT remedy FROM $tool.plan() WHERE grp = 'own' AND what = 'blocker'");
$publisher->sql($remedy);
is($publisher->sql('SELECT string_agg(tablename, $$ $$ ORDER BY tablename), bool_and(pubinsert AND pubupdate AND NOT pubdelete)'
          . ' FROM pg_publication_tables JOIN pg_publication USING (pubname)'), 'item note own|t', 'the remedy publishes the same tables and changes');
is(blockers($publisher, 'own'), '', '  and no blocker is left');
$publisher->sql('ALTER PUBLICATION everything DROP TABLE own');
$subscriber->sql('ALTER SUBSCRIPTION feed REFRESH PUBLICATION');
$publisher->sql("SELECT $tool.start('own')");
moved($publisher);
arrives(2, 'during a move');
$publisher->sql('CREATE PUBLICATION late FOR TABLES IN SCHEMA randflake_migrate');
refused($publisher, "SELECT $tool.undo(1)", qr/HINT: +ALTER PUBLICATION late DROP TABLES IN SCHEMA/, 'a publication that begins during a move stops it');
$publisher->sql("ALTER PUBLICATION late DROP TABLES IN SCHEMA randflake_migrate; SELECT $tool.undo(1)");
moved($publisher);
is($publisher->sql("SELECT atttypid::regtype FROM pg_attribute WHERE attrelid = 'own'::regclass AND attname = 'id'"), 'integer', '  which is undone');
arrives(3, 'after it');

# --- a subscriber ------------------------------------------------------------------------------
my $fills = qr/item subscription feed fills it, with the numbers of its publisher/;
like(blockers($subscriber, 'item'), $fills, 'a table that a subscription fills is blocked');
refused($subscriber, "SELECT $tool.$_('item')", $fills, "  to $_()") for qw(start transaction);
is(blockers($subscriber, 'own'), '', '  and no other table');
$subscriber->sql('ALTER SUBSCRIPTION feed REFRESH PUBLICATION');
$subscriber->sql("SELECT $tool.start('own')");
moved($subscriber);
arrives(4, 'while the subscriber moves a table of its own');
$subscriber->sql("SELECT $tool.undo(1)");
moved($subscriber);
arrives(5, 'when that is undone');
$subscriber->sql('DROP SUBSCRIPTION feed');
is(blockers($subscriber, 'item'), '', 'without the subscription nothing blocks');
done_testing();
