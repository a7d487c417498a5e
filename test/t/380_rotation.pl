# Changes the secret of two servers while they are under load. Checks that no call fails, that no
# identifier repeats, and that both servers decode all identifiers. Then checks the type: old values
# stay the same, the database gets the new secret's entry by itself, and a restore needs both
# secrets.
use Docs;
use Randflake;

read_document('docs/rotation.md', 'test/t/380_rotation.pl');
my @secrets = (random_secret(), random_secret());
my $work = tempdir();
my $began = time;
my $clock;    # the server whose clock all servers share

sub server($name, $node_id, %options) {
    my $node = new_server($name, secrets => $options{secrets} // [ $secrets[0] ], conf => "log_min_messages = debug1\n",
        settings => { node_id => $node_id, node_count => 3, max_wait => '1h' });
    start_under_clock($node, $clock //= $node);
    $node->sql('CREATE EXTENSION randflake_type CASCADE');
    return $node;
}

my @nodes = map { server("server$_", 10 * $_) } 1, 2;
my @alone = map { server("alone$_", 100 + $_, secrets => [ $secrets[$_] ]) } 0, 1;

for my $node (@nodes) {
    $node->sql(<<'SQL');
CREATE TABLE made (id bigint PRIMARY KEY DEFAULT randflake_generate(),
                   ordered randflake UNIQUE DEFAULT randflake_next(), what text);
INSERT INTO made (what) SELECT 'before' FROM generate_series(1, 2000);
CREATE TABLE copied (LIKE made INCLUDING ALL);
CREATE INDEX ON made USING hash (ordered);
CREATE TABLE bounds AS SELECT randflake_lower(now() + n * interval '1 year') AS bound,
    randflake_lower(now() + n * interval '1 year')::text AS shown FROM generate_series(-2, 30) AS n;
CREATE TABLE parts (id randflake DEFAULT randflake_next(), n integer) PARTITION BY RANGE (id);
CREATE TABLE parts_old PARTITION OF parts FOR VALUES FROM (MINVALUE) TO (randflake_lower('2040-01-01'));
CREATE TABLE parts_new PARTITION OF parts FOR VALUES FROM (randflake_lower('2040-01-01')) TO (MAXVALUE);
CREATE TABLE hashed (id randflake PRIMARY KEY DEFAULT randflake_next(), what text) PARTITION BY HASH (id);
CREATE TABLE hashed_0 PARTITION OF hashed FOR VALUES WITH (MODULUS 3, REMAINDER 0);
CREATE TABLE hashed_1 PARTITION OF hashed FOR VALUES WITH (MODULUS 3, REMAINDER 1);
CREATE TABLE hashed_2 PARTITION OF hashed FOR VALUES WITH (MODULUS 3, REMAINDER 2);
INSERT INTO hashed (what) SELECT 'before' FROM generate_series(1, 500);
CREATE ROLE app LOGIN;
CREATE DATABASE quiet;
SQL
    $node->safe_psql('quiet', <<'SQL');
CREATE EXTENSION randflake_type CASCADE;
CREATE TABLE made (id randflake DEFAULT randflake_next());
GRANT ALL ON made TO app;
SQL
}
my $old = <<'SQL';
SELECT md5(string_agg(format('%s %s %s %s', id, d, ordered, randflake_hash(ordered)), ' ' ORDER BY id))
FROM made, randflake_decode(id) AS d WHERE what = 'before'
UNION ALL
SELECT md5(string_agg(format('%s %s', bound, shown), ' ' ORDER BY bound)) FROM bounds
UNION ALL
SELECT pg_get_expr(relpartbound, oid) FROM pg_class WHERE relname = 'parts_new'
SQL
$nodes[0]->sql('CREATE VIEW orders AS SELECT ordered AS id FROM made');
is($nodes[0]->sql(block('future_values')), 0, 'no value is of the future');
my @old = map { $_->sql($old) } @nodes;

# --- the change ----------------------------------------------------------------------------------
append_to_file("$work/script", <<'SQL');
INSERT INTO made (what) VALUES ('single');
INSERT INTO made (what) SELECT 'many' FROM generate_series(1, 30);
INSERT INTO hashed (what) VALUES ('hashed');
SELECT count(id::text) FROM (SELECT ordered AS id FROM made ORDER BY ordered DESC LIMIT 50) AS latest;
SQL
my $duration = 16;
my ($found, $found_text) = split /\|/, $nodes[0]->sql('SELECT ordered::bigint, ordered FROM made LIMIT 1');
my @executions = ('EXECUTE by_number', 'EXECUTE by_text');
my $prepared = start_session($nodes[0], 'SET plan_cache_mode = force_generic_plan',
    "PREPARE by_number AS SELECT count(*) FROM made WHERE ordered = ($found)::randflake",
    "PREPARE by_text AS SELECT count(*) FROM made WHERE ordered = '$found_text'",
    @executions, "SELECT pg_sleep($duration)", @executions);
$nodes[0]->poll_query_until('postgres',
    "SELECT count(*) = 1 FROM pg_stat_activity WHERE query = 'SELECT pg_sleep($duration)'");

my @clients;
for my $node (@nodes) {
    my %client = (out => '', err => '');
    $client{handle} = IPC::Run::start(
        [ 'pgbench', '-n', '-f', "$work/script", '-c', 8, '-R', 60, '-T', $duration, $node->connstr('postgres') ],
        '<', '/dev/null', '>', \$client{out}, '2>', \$client{err},
        IPC::Run::timeout(2 * $PostgreSQL::Test::Utils::timeout_default));
    push @clients, \%client;
}
my @copies = map {
    start_session($_, q{COPY copied (what) FROM PROGRAM
        'for i in $(seq 1 140); do for j in $(seq 1 20); do printf "copied%0800d\n" 0; done; sleep 0.1; done'})
} @nodes;

my $from = $began + 600;
for my $node (@nodes) {
    write_secrets($node, $secrets[0], $from => $secrets[1]);
    is($node->sql(block('reload')), 2, 'a second secret is added');
}
my $states = 'SELECT string_agg(state, $$ $$ ORDER BY generation) FROM randflake_secrets';
is($nodes[0]->sql($states), 'current future', '  and is still to come');
is($nodes[0]->sql(block('secrets')), $nodes[1]->sql(block('secrets')), '  on both servers alike');
my $fingerprint = 'SELECT key_fingerprint FROM randflake_status';
my $first_fingerprint = $alone[0]->sql($fingerprint);
is($nodes[0]->sql($fingerprint), $first_fingerprint, '  the first is in use');
is($nodes[0]->sql('TABLE randflake_key'), $first_fingerprint, '  and alone in the database');

clock_runs_from($clock, $from - 2);
for my $client (@clients) {
    $client->{handle}->finish;
    is($client->{handle}->result(0), 0, 'no client fails') or diag($client->{err});
    like($client->{out}, qr/number of failed transactions: 0 /, '  and no transaction');
}
is((finish_session($_))[1], '', 'COPY goes on') for @copies;
is_deeply([ finish_session($prepared) ], [ "1\n1\n\n1\n1", '' ], 'prepared statements find the same rows');
is($nodes[0]->sql($states), 'past current', 'the second secret is in use');
isnt($nodes[0]->sql($fingerprint), $first_fingerprint, '  as the status shows');
is($nodes[0]->sql($fingerprint), $nodes[1]->sql($fingerprint), '  the same on both servers');

# --- all identifiers -----------------------------------------------------------------------------
# Compares identifiers of both types as bigint, because both types take numbers from the same slots.
my $all = q{SELECT id, what FROM made UNION ALL SELECT ordered::bigint, 'ordered' FROM made
    UNION ALL SELECT id, left(what, 6) FROM copied UNION ALL SELECT ordered::bigint, 'ordered' FROM copied
    UNION ALL SELECT id::bigint, 'hashed' FROM hashed};
my %made;    # identifier => its decoded fields
my ($twice, $elsewhere) = (0, 0);
my $now = $clock->sql('SELECT ceil(extract(epoch FROM clock_timestamp()))');
for my $i (0, 1) {
    my $node = $nodes[$i];
    for (split /\n/, $node->sql(<<"SQL")) {
SELECT id, extract(epoch FROM generated_at)::bigint, node_id, sequence, what
FROM ($all) AS a, randflake_decode(id)
SQL
        my ($id, $second, $node_id, $sequence, $what) = split /\|/;
        $twice++ if exists $made{$id};
        $elsewhere++ if $second ne '' && ($second < $began || $second > $now || int($node_id / 10) != $i + 1);
        $made{$id} = [ $second, $node_id, $sequence, $what ];
    }
}
is($twice, 0, 'nothing comes twice: ' . keys(%made) . ' identifiers');
is(scalar(grep { $_->[0] eq '' } values %made), 0, '  and all decode');
is($elsewhere, 0, '  to the time of this test and the node ids of their servers');
my %numbers = map { join(' ', @$_[ 0 .. 2 ]) => 1 } values %made;
is(keys %numbers, keys %made, '  to distinct numbers');
for my $what (qw(single many copied ordered hashed)) {
    my ($before, $after) = (0, 0);
    $_->[3] eq $what && ($_->[0] < $from ? $before++ : $after++) for values %made;
    cmp_ok($before, '>', 0, "$what: $before before the time");
    cmp_ok($after, '>', 0, "$what: $after after it");
}

sub ask($node, $expression, @rows) {
    my $file = "$work/rows";
    unlink $file;
    append_to_file($file, join '', map { "$_\n" } @rows);
    return split /\n/, $node->sql(<<"SQL"), -1;
CREATE TEMP TABLE rows (n serial, id bigint, second bigint, node_id integer, sequence integer);
COPY rows (id, second, node_id, sequence) FROM '$file';
SELECT $expression FROM rows ORDER BY n
SQL
}
my @ids = sort { $a <=> $b } keys %made;
my @rows = map { my $id = $_; join "\t", $id, @{ $made{$id} }[ 0 .. 2 ] } @ids;
my $decoded = q{format('%s %s %s', extract(epoch FROM (randflake_decode(id)).generated_at)::bigint,
    (randflake_decode(id)).node_id, (randflake_decode(id)).sequence)};
my @inside = map { join ' ', @{ $made{$_} }[ 0 .. 2 ] } @ids;
same_list([ ask($_, $decoded, @rows) ], \@inside, 'every server decodes what every server made') for @nodes;
my $encoded = 'randflake_encode(to_timestamp(second), node_id, sequence)';
same_list([ ask($nodes[1], $encoded, @rows) ], \@ids, '  and encodes it');
for my $generation (0, 1) {
    my @of = grep { ($made{$_}[0] >= $from) == $generation } @ids;
    my @rows_of = map { my $id = $_; join "\t", $id, @{ $made{$id} }[ 0 .. 2 ] } @of;
    same_list([ ask($alone[$generation], $encoded, @rows_of) ], \@of,
        'secret ' . ($generation + 1) . ' alone gives those of its time: ' . @of);
}

# The server must skip each number whose identifier the first secret decodes to a time before $from.
my @numbers = map { [ $from + 100, 10, $_ ] } 0 .. 9999;
my @of_second = ask($alone[1], $encoded, map { "0\t" . join "\t", @$_ } @numbers);
my @read_by_first =
  ask($alone[0], 'extract(epoch FROM randflake_generated_at(id))::bigint', map { "$_\t0\t0\t0" } @of_second);
my @skipped = grep { $read_by_first[$_] < $from } 0 .. $#numbers;
my $share = ($from - 1730000000) / 2**30;
cmp_ok(abs(@skipped - @numbers * $share), '<', @numbers * 0.015, scalar(@skipped) . ' of 10000 numbers are skipped');
error_is($nodes[0], "SELECT randflake_encode(to_timestamp(@{[ $from + 100 ]}), 10, $skipped[0])", '22023',
    { message => qr/there is no identifier of this second, node id and sequence/,
      detail => qr/identifier of an earlier secret takes its place/ }, '  one that is skipped is an error');

my ($none) = $nodes[0]->sql('SELECT i FROM generate_series(1234567890123456789, 1234567890123457789) AS i'
      . ' WHERE randflake_generated_at(i) IS NULL LIMIT 1');
ok($none, "no secret made $none");
is($nodes[0]->sql("SELECT d IS NULL, (d).node_id IS NULL FROM randflake_decode($none) AS d"),
    't|t', '  and it decodes to nulls');
my $unmade = { message => qr/invalid identifier for type randflake: "/, detail => qr/none of this server's secrets/ };
error_is($nodes[0], "SELECT randflake_to_text($none)::randflake", '22P02', $unmade, '  its text form is refused by the type');
error_is($nodes[0], "SELECT ${none}::bigint::randflake", '22P02', $unmade, '  and so is its bigint');
error_is($nodes[0], "SELECT count(ordered::text::randflake) FROM made; SELECT ${none}::bigint::randflake",
    '22P02', $unmade, '  in a session that has read and shown others too');

# --- the type ------------------------------------------------------------------------------------
is($_->sql($old), shift @old, 'old values and bounds stay as they were') for @nodes;
for my $node (@nodes) {
    is($node->sql(<<'SQL'), 't|t|t|t', 'values go out and come in');
SELECT bool_and(ordered::text::randflake = ordered), bool_and(ordered::bigint::randflake = ordered),
       bool_and(randflake_timestamp(ordered) = randflake_generated_at(ordered::bigint)),
       bool_and(randflake_node_id(ordered) = (randflake_decode(ordered::bigint)).node_id) FROM made
SQL
    is($node->sql(<<"SQL"), 't', '  searches by time find both sides');
SET enable_seqscan = off;
SELECT count(*) FILTER (WHERE ordered < randflake_lower(to_timestamp($from))) =
       count(*) FILTER (WHERE randflake_timestamp(ordered) < to_timestamp($from)) FROM made
SQL
    is($node->sql(<<'SQL'), '0', '  the hash index finds all');
SET enable_seqscan = off;
SET enable_indexonlyscan = off;
SELECT count(*) FROM made AS m
WHERE NOT EXISTS (SELECT FROM made AS same WHERE same.ordered = m.ordered::text::randflake)
SQL
    is($node->sql(<<'SQL'), '0|t', '  each value is found in its hash partition');
SET enable_seqscan = off;
SET enable_hashjoin = off;
SET enable_mergejoin = off;
SELECT (SELECT count(*) FROM hashed AS h
        WHERE NOT EXISTS (SELECT FROM hashed AS same WHERE same.id = h.id::text::randflake)),
       bool_and(satisfies_hash_partition('hashed'::regclass, 3, right(tableoid::regclass::text, 1)::integer, id))
FROM hashed
SQL
    is($node->sql(<<'SQL'), 't|t', 'the database has the fingerprints of both');
SELECT (SELECT array_agg(DISTINCT fingerprint ORDER BY fingerprint) FROM randflake_key) = f,
       (SELECT array_agg(DISTINCT fingerprint ORDER BY fingerprint) FROM randflake_key_check) = f
FROM (SELECT array_agg(fingerprint || coalesce('@' || extract(epoch FROM valid_from)::bigint, '') ORDER BY fingerprint) AS f
      FROM randflake_secrets) AS secrets
SQL
}

my $keys = 'SELECT count(DISTINCT fingerprint) FROM randflake_key';
is($nodes[1]->safe_psql('quiet', $keys), 1, 'a database that was not used has one fingerprint');
my $session = start_session($nodes[1], q{\c quiet}, 'BEGIN', 'INSERT INTO made DEFAULT VALUES', 'SELECT pg_sleep(3)', 'COMMIT');
$nodes[1]->poll_query_until('quiet', q{SELECT count(*) = 1 FROM pg_stat_activity WHERE query LIKE '%pg_sleep(3)%' AND pid <> pg_backend_pid()});
$nodes[1]->safe_psql('quiet', q{SET lock_timeout = '1s'; INSERT INTO made DEFAULT VALUES}, extra_params => [ '-U', 'app' ]);
is((finish_session($session))[1], '', 'two transactions add at once, and neither waits');
is($nodes[1]->safe_psql('quiet', $keys), 2, '  for the same two');

# --- dumps ---------------------------------------------------------------------------------------
$nodes[0]->command_ok([ 'pg_dump', '-p', $nodes[0]->port, '-h', $nodes[0]->host, '-Fc', '-f', "$work/dump", 'postgres' ],
    'pg_dump');
sub restored($node, @options) {
    $node->safe_psql('template1', 'CREATE DATABASE restored TEMPLATE template0');
    my ($out, $err) = ('', '');
    my $good = IPC::Run::run(
        [ 'pg_restore', '-p', $node->port, '-h', $node->host, '-d', 'restored', @options, "$work/dump" ],
        '<', '/dev/null', '>', \$out, '2>', \$err);
    return ($good, $err);
}
my $content = q{SELECT md5(string_agg(format('%s %s', id, ordered), ' ' ORDER BY ordered)) FROM made};
my ($good, $errors) = restored($nodes[1]);
ok($good && $errors !~ /ERROR/, 'a server with both secrets restores it') or diag($errors);
is($nodes[1]->safe_psql('restored', $content), $nodes[0]->sql($content), '  and nothing is lost');
# Restores randflake_key first and randflake_key_check last, as parallel jobs may do.
my ($list) = run_command([ 'pg_restore', '--list', "$work/dump" ]);
my %data = map { $list =~ s/^.* TABLE DATA \S+ $_ .*\n//m ? ($_ => $&) : die "no $_" } 'randflake_key', 'randflake_key_check';
$list =~ s/^(?=.* TABLE DATA )/$data{randflake_key}/m or die 'no data';
append_to_file("$work/list", "$list\n$data{randflake_key_check}");
$nodes[1]->safe_psql('template1', 'DROP DATABASE restored');
($good, $errors) = restored($nodes[1], "--use-list=$work/list");
ok($good && $errors !~ /ERROR/, '  in another order too') or diag($errors);
is($nodes[1]->safe_psql('restored', $content), $nodes[0]->sql($content), '  without a loss');
my $second_fingerprint = $nodes[0]->sql($fingerprint);
$alone[0]->sql('CREATE ROLE app');
($good, $errors) = restored($alone[0]);
ok(!$good && $errors =~ /another secret.*\Q$second_fingerprint\E/s, 'one that lacks the second fails and names it') or diag($errors);
# Concurrent sessions may insert an entry twice. Messages must still name the entry only once.
$alone[0]->safe_psql('restored', <<"SQL");
DELETE FROM randflake_key WHERE fingerprint = '$second_fingerprint\@$from';
INSERT INTO randflake_key VALUES ('$second_fingerprint\@$from'), ('$second_fingerprint\@$from');
SQL
my (undef, undef, $refused) = $alone[0]->psql('restored', 'SELECT max(ordered::text) FROM made');
like($refused, qr/belong to another secret.*key fingerprint \Q$second_fingerprint\E beside \Q$first_fingerprint\E/s,
    '  and nothing can be read there');
write_secrets($alone[0], $secrets[0], $from => $secrets[1]);
$alone[0]->stop;
start_under_clock($alone[0], $clock);
(undef, undef, $refused) = $alone[0]->psql('restored', 'SELECT max(ordered::text) FROM made');
like($refused, qr/were restored under other secrets.*lacked the secret with key fingerprint \Q$second_fingerprint\E/s,
    '  nor when the server has that secret: what was read is wrong');
$alone[0]->sql('DROP DATABASE restored');
($good, $errors) = restored($alone[0]);
ok($good && $errors !~ /ERROR/, '  but the dump can be restored again') or diag($errors);
is($alone[0]->safe_psql('restored', $content), $nodes[0]->sql($content), '  and nothing is lost');

$_->stop for @nodes, @alone;
no_secret_in(join('', map { slurp_file($_->logfile) } @nodes, @alone), $_, 'no log has a secret') for @secrets;
every_block_was_used();
done_testing();
