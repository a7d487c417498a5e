# Runs the blocks of docs/sharding.md on the servers that the page names, and checks its claims.
use Docs;
use Randflake;

read_document('docs/sharding.md', 'test/t/310_sharding.pl');
my $secret = random_secret();

# The three servers share a secret and can replicate to each other.
my @nodes = map { start_server("db$_", settings => { node_id => $_, secret => $secret, max_wait => '1h' }, extensions => [],
        init => [ allows_streaming => 'logical' ], conf => "log_statement = all\n") } 0 .. 2;

sub with_addresses($text) {
    $text =~ s/host 'db(\d)'/"host '" . $nodes[$1]->host . "', port '" . $nodes[$1]->port . "'"/ge;
    $text =~ s/host=db(\d)/'host=' . $nodes[$1]->host . ' port=' . $nodes[$1]->port/ge;
    return $text;
}

sub run_block($name, $me) {
    return $nodes[$me]->sql(with_addresses(block($name)), extra_params => [ '-v', "me=$me" ]);
}

# Checks that the query's counts add up to $rows and are about equal. For up to 8 equally likely
# shards, a chi-square above 60 has a probability below one in a billion.
sub is_balanced($node, $query, $shards, $rows, $test_name) {
    my @counts = split /\n/, $node->sql($query);
    my ($sum, $chi_square) = (0, 0);
    $sum += $_ for @counts;
    $chi_square += ($_ - $rows / $shards)**2 / ($rows / $shards) for @counts;
    ok(@counts == $shards && $sum == $rows && $chi_square < 60, $test_name)
      or diag("rows: @counts; chi-square $chi_square");
}

run_block('servers', $_) for 0 .. 2;
my $node = $nodes[0];

# --- one server ------------------------------------------------------------------------------
run_block('hash', 0);
$node->sql(q{INSERT INTO event (body) SELECT 'row ' || n FROM generate_series(1, 10000) AS n});
is_balanced($node, 'SELECT count(*) FROM event GROUP BY tableoid', 4, 10000, 'hash partitions are balanced');

run_block('range', 0);
$node->sql(q{INSERT INTO message (body) SELECT 'row ' || n FROM generate_series(1, 10000) AS n});
is_balanced($node, 'SELECT count(*) FROM message GROUP BY tableoid', 4, 10000, 'range partitions are balanced');
is($node->sql(q{SELECT count(*) FROM message WHERE tableoid <> ('message_' || randflake_shard(id, 4))::regclass}), 0,
    '  and hold the rows of their shard');

sub partitions_of($plan) { return join ' ', $plan =~ /\bon ((?:event|message|item)_\d)/g }
is(partitions_of(run_block('lookup', 0)), 'message_3 message_0',
    'a search for an identifier looks at one partition, by number and by text');
is( partitions_of($node->sql('EXPLAIN (COSTS OFF) SELECT * FROM event WHERE id = 4611686018427387904')) =~ tr/ //,
    0, '  by hash too');
my $generic = $node->sql(<<'SQL');
SET plan_cache_mode = force_generic_plan;
PREPARE by_id (bigint) AS SELECT * FROM message WHERE id = $1;
EXPLAIN (COSTS OFF) EXECUTE by_id(-1);
SQL
is(partitions_of($generic), 'message_1', '  and in a prepared statement');
like($generic, qr/Subplans Removed: 3/, '  of which the plan is generic');

# --- split shards ----------------------------------------------------------------------------
my @halves = map { [ split /\|/ ] } split /\n/, run_block('halves', 0);
is(@halves, 8, 'each of 4 shards has two halves');

my $fingerprint = q{SELECT count(*), md5(string_agg(id || body, ',' ORDER BY id)) FROM message};
my $before = $node->sql($fingerprint);
run_block('split', 0);
is($node->sql($fingerprint), $before, 'cutting a shard in two loses no row');
is( $node->sql('SELECT DISTINCT tableoid::regclass, randflake_shard(id, 8)'
          . ' FROM message WHERE id >= 4611686018427387904 ORDER BY 2'),
    "message_6|6\nmessage_7|7", '  and puts each into its half');
my %lower_bound = map { split /\|/ } split /\n/, $node->sql('SELECT shard, lower FROM randflake_shard_ranges(8)');
for my $shard (6, 7) {
    like($node->sql("SELECT pg_get_expr(relpartbound, oid) FROM pg_class WHERE relname = 'message_$shard'"),
        qr/FROM \('?$lower_bound{$shard}'?\)/, '  beginning where it does');
}

# --- three servers ---------------------------------------------------------------------------
run_block('distributed', $_) for 0 .. 2;
run_block('routed', $_) for 0 .. 2;
is(run_block('routed', 0) =~ s/\|\d+$//gmr, "0\n1\n2", 'rows inserted on one server go to all of them');
is_balanced($_, 'SELECT count(*) FROM item GROUP BY tableoid', 3, 4000,
    $_->name . ' sees every row, of all servers alike') for @nodes;
all_distinct($node, 'SELECT id FROM item', 4000, 'no identifier is there twice');
is(fields_of($node, 'SELECT id FROM item')->{nodes}, '0 1 2', 'each server made its own');
for my $me (0 .. 2) {
    is($nodes[$me]->sql("SELECT count(*) FROM ONLY item_$me WHERE randflake_shard(id, 3) <> $me"), 0,
        "db$me has the rows of its shard and no others");
}

for my $shard (0 .. 2) {
    my $id = $node->sql("SELECT id FROM item WHERE randflake_shard(id, 3) = $shard LIMIT 1");
    for my $sql ("SELECT count(*) FROM item WHERE id = $id",
        "SELECT count(*) FROM item WHERE id = randflake_from_text(randflake_to_text($id))") {
        my @offsets = map { -s $_->logfile } @nodes;
        is($node->sql($sql), 1, "a row of db$shard is found from db0");
        my @asked = grep {
            my $log = substr slurp_file($nodes[$_]->logfile), $offsets[$_];
            $log =~ /postgres_fdw.*(?:SELECT|DECLARE)|execute.*FROM public\.item_/
        } 1 .. 2;
        is("@asked", $shard || '', '  asking no other server');
    }
}
$nodes[1]->stop;
is($node->sql('SELECT count(*) FROM item WHERE id = (-9223372036854775808) OR id = 9223372036854775807'), 0,
    'searches for rows of other servers work while one is down');
$nodes[1]->start;

$nodes[$_]->sql('CREATE EXTENSION randflake_type') for 0, 1;
$nodes[1]->sql(<<'SQL');
CREATE TABLE parcel (id randflake PRIMARY KEY DEFAULT randflake_next(), body text);
INSERT INTO parcel (body) SELECT n FROM generate_series(1, 100) AS n;
SQL
$nodes[0]->sql('CREATE FOREIGN TABLE parcel (id randflake, body text) SERVER server_1');
my ($text_form, $number) = split /\|/, $nodes[1]->sql('SELECT id, id::bigint FROM parcel WHERE body = \'42\'');
my @searches = map { "SELECT body FROM parcel WHERE id = $_" } "'$text_form'", "($number)::randflake",
  "randflake_from_text('$text_form')::randflake";
sub remote_sql($sql) {
    my ($asked) = $node->sql("EXPLAIN (VERBOSE, COSTS OFF) $sql") =~ /Remote SQL: (.*)/;
    return $asked;
}
my @arrays = map { "SELECT body FROM parcel WHERE id $_" } "IN ('$text_form', '0000000000000')",
  "= ANY (ARRAY['$text_form']::randflake[])";
unlike(remote_sql($_), qr/WHERE/, "postgres_fdw fetches the table: $_") for @searches, @arrays;
run_block('extensions', 0);
like(remote_sql($_), qr/WHERE \(\(id = '\Q$text_form\E'\)\)/, "  and with the option the row: $_") for @searches;
like(remote_sql($_), qr/WHERE \(\(id = ANY \('\{\Q$text_form\E/, "  and with the option the rows: $_") for @arrays;
is($node->sql($_), 42, '  which it finds') for @searches, @arrays;

run_block('publish_half', 2);
my ($half_bound) = block('publish_half') =~ /id >= (\d+)/;
is( $node->sql('SELECT lower FROM randflake_shard_ranges(6) WHERE shard = 5'),
    $half_bound, 'the bound in the document is that of the half');
$nodes[0]->sql('CREATE DATABASE new_server');
$nodes[0]->safe_psql('new_server', with_addresses(<<'SQL'));
CREATE TABLE item_2 (id bigint PRIMARY KEY, body text);
CREATE SUBSCRIPTION upper_half CONNECTION 'host=db2 dbname=postgres' PUBLICATION upper_half;
SQL
$nodes[0]->wait_for_subscription_sync($nodes[2], 'upper_half', 'new_server');
$nodes[1]->sql(q{INSERT INTO item (body) SELECT n FROM generate_series(1, 1000) AS n});
$nodes[2]->wait_for_catchup('upper_half', 'replay', $nodes[2]->lsn('insert'));
my $upper_half = 'SELECT count(*), md5(string_agg(id || body, \',\' ORDER BY id)) FROM item_2';
is($nodes[0]->safe_psql('new_server', $upper_half), $nodes[2]->sql("$upper_half WHERE id >= $half_bound"),
    'the upper half is on the new server, with what was inserted meanwhile');
is($nodes[0]->safe_psql('new_server', 'SELECT count(*) > 300 FROM item_2'), 't', '  about a sixth of the rows');
my $moved = $nodes[0]->safe_psql('new_server', $upper_half);
$nodes[0]->safe_psql('new_server', 'DROP SUBSCRIPTION upper_half');
$nodes[2]->sql("DELETE FROM item_2 WHERE id >= $half_bound");
is($nodes[0]->safe_psql('new_server', $upper_half), $moved, '  and stays there when the old server has deleted it');

# --- one reader ------------------------------------------------------------------------------
run_block('writer', $_) for 0 .. 1;
run_block('reader', 2);
my $script = $node->basedir . '/insert.sql';
append_to_file($script, q{INSERT INTO note (body) SELECT n FROM generate_series(1, 10) AS n;});
my @writers = map {
    IPC::Run::start([ 'pgbench', '-n', '-f', $script, '-c', 2, '-t', 50, $_->connstr('postgres') ],
        '<', '/dev/null', '>&', \my $output)
} @nodes[ 0, 1 ];
ok($_->finish, 'a writer writes') for @writers;
$nodes[2]->sql('INSERT INTO note (body) VALUES (1), (2)');
$nodes[2]->wait_for_subscription_sync($nodes[$_], "notes_$_") for 0, 1;
all_distinct($nodes[2], 'SELECT id FROM note', 2002, 'the reader has the rows of both, and its own');
is(fields_of($nodes[2], 'SELECT id FROM note')->{nodes}, '0 1 2', '  made by all three');
is( $nodes[2]->sql(q{SELECT sum(value::bigint) FROM pg_stat_subscription_stats stats,
                 jsonb_each_text(to_jsonb(stats)) WHERE key LIKE '%error_count'}),
    0, '  without a conflict');
$_->stop for @nodes;
every_block_was_used();
done_testing();
