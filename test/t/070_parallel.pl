# Parallel workers generate in their own slots and inherit nothing from their leader, which has
# identifiers in stock when they start.

use Randflake;

my $node = start_server(
    'main',
    settings => { node_id => 500, node_count => 256, secret => random_secret(), max_wait => '1h' });
my $fields;

# Workers alone, then with their leader, which makes some before and after.
for my $leader ('off', 'on') {
    my $session = start_session($node,
        'CREATE TEMP TABLE warm AS SELECT randflake_generate() AS id FROM generate_series(1, 1000)',
        'DROP TABLE IF EXISTS source, made, leader',
        'CREATE TABLE source AS SELECT n FROM generate_series(1, 200000) AS n',
        'ANALYZE source',
        "SET parallel_leader_participation = $leader",
        'SET parallel_setup_cost = 0',
        'SET parallel_tuple_cost = 0',
        'SET min_parallel_table_scan_size = 0',
        'SET max_parallel_workers_per_gather = 4',
        'CREATE TABLE leader AS SELECT randflake_generate() AS id FROM generate_series(1, 1000)',
        'CREATE TABLE made AS SELECT randflake_generate() AS id FROM source',
        'INSERT INTO leader SELECT randflake_generate() FROM generate_series(1, 1000)',
        'INSERT INTO leader SELECT id FROM warm');
    is((finish_session($session))[1], '', "leader $leader: generates");
    all_distinct($node, 'SELECT id FROM made UNION ALL SELECT id FROM leader', 203000,
        "leader $leader: nothing twice");

    my $own = fields_of($node, 'SELECT id FROM leader')->{nodes};
    $fields = fields_of($node, 'SELECT id FROM made');
    my @nodes = split / /, $fields->{nodes};
    cmp_ok(scalar @nodes, '>=', 2, "leader $leader: several slots, $fields->{nodes}");
    ok(!(grep { $_ == $own } @nodes), "leader $leader: none of them the leader's, $own")
      if $leader eq 'off';
}

# Forces a worker for a query that needs none
my $force = $node->safe_psql('postgres',
    q{SELECT name FROM pg_settings WHERE name IN ('debug_parallel_query', 'force_parallel_mode')});
my $nodes = $node->safe_psql('postgres', <<"SQL");
CREATE TEMP TABLE nodes AS SELECT node_id FROM randflake_decode(randflake_generate());
SET $force = on;
CREATE TEMP TABLE made AS SELECT randflake_generate() AS id FROM generate_series(1, 1000);
SET $force = off;
SELECT count(*), count(DISTINCT id), count(DISTINCT (randflake_decode(id)).node_id),
       bool_or((randflake_decode(id)).node_id IN (SELECT node_id FROM nodes)) FROM made;
SQL
is($nodes, '1000|1000|1|f', 'a forced worker generates in one slot, not that of its leader');

$node->stop;
done_testing();
