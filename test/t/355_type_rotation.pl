# Replicates the type's values logically in both directions, as text and in binary, while the secret
# changes. Some replication slots begin before the new secret's first value, others after it. A
# server without the new secret still reads all values of the old secret.
use Randflake;
use Time::HiRes qw(time);

my @secrets = (random_secret(), random_secret());
my @names = ('one', 'two');
my @formats = ('as_text', 'as_binary');
my %node;

for my $i (0, 1) {
    my $name = $names[$i];
    my $node = $node{$name} = new_server($name, init => [ allows_streaming => 'logical' ],
        conf => "max_worker_processes = 20\nmax_logical_replication_workers = 12\n"
          . "max_sync_workers_per_subscription = 4\nwal_retrieve_retry_interval = 200ms\n",
        secrets => [ $secrets[0] ], settings => { node_id => 10 * $i, node_count => 2, max_wait => '1h' });
    start_under_clock($node, $node{one});    # both servers share one clock
    $node->sql('CREATE EXTENSION randflake_type CASCADE');
    for my $table (map { my $format = $_; map { "${_}_$format" } @names } @formats, 'later') {
        $node->sql(
            "CREATE TABLE $table (id randflake PRIMARY KEY DEFAULT randflake_next(), others randflake[], n integer)");
    }
    $node->sql("CREATE PUBLICATION $_ FOR TABLE ${name}_$_") for @formats, 'later';
    $node->sql("INSERT INTO ${name}_$_ (n) SELECT generate_series(1, 100)") for @formats, 'later';
    $node->sql("SELECT pg_create_logical_replication_slot('$_', 'test_decoding')")
      for qw(before lacking);
}

sub other_of($name) { return $name eq 'one' ? 'two' : 'one' }

sub subscribe($name, $publication, $binary) {
    my $connection = $node{ other_of($name) }->connstr('postgres') =~ s/'/''/gr;
    $node{$name}->sql("CREATE SUBSCRIPTION ${name}_$publication CONNECTION '$connection' "
          . "PUBLICATION $publication WITH (binary = $binary)");
    $node{$name}->wait_for_subscription_sync($node{ other_of($name) }, "${name}_$publication");
}

sub follows($name, $publication, $test_name) {
    my $from = other_of($name);
    my $content = "SELECT count(*), md5(string_agg(format('%s %s %s', id, others, n), ',' ORDER BY id)) FROM ${from}_$publication";
    $node{$from}->wait_for_catchup("${name}_$publication");
    is($node{$name}->sql($content), $node{$from}->sql($content), $test_name);
}

for my $name (@names) {
    subscribe($name, $_, $_ eq 'as_binary' ? 'true' : 'false') for @formats;
}

# --- the change -----------------------------------------------------------------------------------
my $from = int(time) + 25;
is(reload_secrets($node{$_}, $secrets[0], $from => $secrets[1]), 2, "$_ has a second secret") for @names;
clock_runs_from($node{one}, $from + 0.5);

my $entries = 'SELECT count(DISTINCT fingerprint) FROM randflake_key';
is($node{$_}->sql("SELECT count(id::text) FROM ${_}_as_text; $entries"), "100\n1",
    "$_: neither the time nor a look at earlier values binds anything") for @names;
for my $name (@names) {
    # The first insert under the new secret rolls back, so the next one must add the secret's entry.
    $node{$name}->sql(<<"SQL");
BEGIN; INSERT INTO ${name}_as_text (n) VALUES (0); ROLLBACK;
BEGIN; INSERT INTO ${name}_as_text (n) VALUES (201); UPDATE ${name}_as_text SET others = ARRAY[id, NULL] WHERE n % 10 = 1; COMMIT;
INSERT INTO ${name}_as_binary (others, n) SELECT ARRAY[randflake_next()], generate_series(201, 300);
SQL
    $node{$name}->sql("UPDATE ${name}_$_ SET id = randflake_next() WHERE n <= 100 AND n % 10 = 3; DELETE FROM ${name}_$_ WHERE n <= 100 AND n % 10 = 4")
      for @formats;
}
for my $name (@names) {
    follows($name, $_, "$name follows $_, from the first value on") for @formats;
}
is($node{$_}->sql($entries), 2, "$_ has both secrets") for @names;
for my $name (@names) {
    is($node{$name}->sql(<<"SQL"), 't', "$name: values of both sides of the time, of both servers");
SELECT bool_and(o AND n) FROM (
    SELECT bool_or(id < randflake_lower(to_timestamp($from))) AS o, bool_or(id >= randflake_lower(to_timestamp($from))) AS n
    FROM (TABLE one_as_binary UNION ALL TABLE two_as_binary) AS b GROUP BY randflake_node_id(id) / 10) AS both_sides
SQL
}

# --- read slots -----------------------------------------------------------------------------------
# Returns whether a slot shows 100 or more changes, and whether these have the tables' identifiers.
sub decoded($name, $slot) {
    return $node{$name}->sql(<<"SQL");
WITH shown AS (
    SELECT substring(data FROM '.*id\\[randflake\\]:''?(\\w+)') AS id
    FROM pg_logical_slot_peek_changes('$slot', NULL, NULL) WHERE data ~ 'table public.${name}_\\w+: (INSERT|UPDATE)')
SELECT count(*) >= 100,
       bool_and(id IN (SELECT id::text FROM ${name}_as_text UNION ALL SELECT id::text FROM ${name}_as_binary UNION ALL SELECT id::text FROM ${name}_later))
FROM shown
SQL
}
for my $name (@names) {
    my $node = $node{$name};
    is(decoded($name, 'before'), 't|t', "$name: a slot of before shows the first value and what follows");
    $node->sql(q{SELECT pg_create_logical_replication_slot('after', 'test_decoding')});
    $node->sql("INSERT INTO ${name}_as_text (n) SELECT generate_series(301, 400)");
    is(decoded($name, 'after'), 't|t', '  and one of after');
    is($node->sql(<<"SQL"), "t\nt\nt", '  in a session that has shown and made values');
SELECT count(id::text) > 0 FROM ${name}_as_text;
SELECT count(*) > 100 FROM pg_logical_slot_peek_changes('before', NULL, NULL);
SELECT count(id::text) > 0 FROM ${name}_as_text;
SQL
}
$node{$_}->sql("INSERT INTO ${_}_later (n) VALUES (2)") for @names;
for my $name (@names) {
    subscribe($name, 'later', 'false');
    follows($name, 'later', "$name: a copy of both sides of the time");
}

# --- a missing secret -----------------------------------------------------------------------------
$node{two}->sql("DROP SUBSCRIPTION two_$_") for @formats, 'later';
my $node = $node{one};
$node->sql("SELECT pg_drop_replication_slot('$_')") for qw(before after);
$node->stop;
write_secrets($node, $secrets[0]);
start_under_clock($node);
my $lacks = {
    message => qr/belong to another secret/,
    detail => qr/They differ from .* on; earlier values can be read\./,
    hint => qr/into "randflake\.secret_file"/ };
my $peek = q{SELECT count(*) FROM pg_logical_slot_peek_changes('lacking', NULL, NULL)};
error_is($node, $peek, '55000', $lacks, 'without the secret, a slot is not decoded');
error_is($node, 'SELECT id FROM one_as_text', '55000', $lacks, '  nor are values of it shown');
my $earlier = "SELECT count(id::text) FROM one_as_text WHERE id < randflake_lower(to_timestamp($from))";
is($node->sql($earlier), 80, '  but those of before');
$node->stop;
write_secrets($node, $secrets[0], $from => $secrets[1]);
start_under_clock($node);
is(decoded('one', 'lacking'), 't|t', '  and the secret frees the slot');
$_->stop for values %node;
done_testing();
