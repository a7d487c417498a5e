# Partitions a table by a primary key of type randflake, with the statements of docs/type.md. Checks
# dumps, restores, detached partitions, and pruning at plan time and at run time.
use Docs;
use Randflake;

read_document('docs/type.md', 'test/t/356_type_partitions.pl');
my $node = new_server('main', settings => { node_id => 1, node_count => 4, secret => random_secret(), max_wait => '1h' });
my $sql = sub { return $node->sql(join ';', @_) };

# The page's example detaches January 2026, so the test sets the clock to that month.
my $january = 1768478400;    # 2026-01-15 12:00
clock_runs_from($node, $january);
start_under_clock($node);
$sql->('CREATE EXTENSION randflake_type CASCADE', q{ALTER SYSTEM SET timezone = 'UTC'}, 'SELECT pg_reload_conf()');
$sql->(block('table'));
$sql->(block('procedure'));
$sql->(q{SET timezone = 'America/New_York'}, q{SET datestyle = 'German'}, block('make'));

my $partitions = q{SELECT string_agg(inhrelid::regclass::text, ' ' ORDER BY inhrelid::regclass::text)
    FROM pg_inherits WHERE inhparent = 'event'::regclass};
is($sql->($partitions), 'event_2026_01 event_2026_02 event_2026_03 event_2026_04', 'partitions of four months');
$sql->(block('make'));
is($sql->($partitions), 'event_2026_01 event_2026_02 event_2026_03 event_2026_04', '  and no more when made again');

# --- months ----------------------------------------------------------------------------------
$sql->(q{INSERT INTO event (body) SELECT 'now' FROM generate_series(1, 1000)});
$sql->(<<'SQL');
INSERT INTO event SELECT randflake_encode(t, 7, s)::randflake, t::text
FROM generate_series('2026-01-01', '2026-04-30 23:59:59', interval '6 hours') AS t, generate_series(0, 9) AS s;
INSERT INTO event SELECT randflake_encode(t, 131071, 131071)::randflake, t::text
FROM unnest(ARRAY['2026-01-31 23:59:59', '2026-02-28 23:59:59']::timestamptz[]) AS t;
SQL
is($sql->(q{SELECT string_agg(DISTINCT format('%s %s', tableoid::regclass, to_char(randflake_timestamp(id), 'YYYY_MM')), ','
    ORDER BY format('%s %s', tableoid::regclass, to_char(randflake_timestamp(id), 'YYYY_MM'))) FROM event}),
    'event_2026_01 2026_01,event_2026_02 2026_02,event_2026_03 2026_03,event_2026_04 2026_04',
    'each row is in the partition of its month, to the last second');
error_is($node, q{INSERT INTO event VALUES (randflake_encode('2026-05-01', 0, 0)::randflake)}, '23514', {},
    '  and has none after the last');
error_is($node,
    q{CREATE TABLE overlap PARTITION OF event FOR VALUES FROM (randflake_lower('2026-04-15')) TO (randflake_lower('2026-05-15'))},
    '42P17', {}, 'partitions cannot overlap');

# --- pruning ---------------------------------------------------------------------------------
sub looked_at($query, @before) {
    my $plan = $sql->('SET enable_seqscan = on', @before, "EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF) $query");
    my %seen;
    my @lines = split /\n/, $plan;
    for my $i (0 .. $#lines) {
        $seen{$1} = 1 if $lines[$i] =~ /\bon event_(\d+_\d+)\b/ && $lines[$i] !~ /never executed/;
    }
    my ($removed) = $plan =~ /Subplans Removed: (\d+)/;
    return join(' ', sort keys %seen) . ($removed ? " ($removed removed)" : '');
}
is(looked_at(q{SELECT * FROM event WHERE id >= randflake_lower('2026-02-10') AND id < randflake_lower('2026-02-20')}),
    '2026_02', 'plan time: a range in one month');
is(looked_at(q{SELECT * FROM event WHERE id >= randflake_lower('2026-02-10') AND id < randflake_lower('2026-03-01')}),
    '2026_02', '  up to its end');
is(looked_at(q{SELECT * FROM event WHERE id < randflake_lower('2026-02-01 00:00:01')}),
    '2026_01 2026_02', '  over its end');
my $id = $sql->(q{SELECT id FROM event_2026_03 ORDER BY id LIMIT 1 OFFSET 5});
is(looked_at("SELECT * FROM event WHERE id = '$id'"), '2026_03', '  one key');
my $number = $sql->("SELECT id::bigint FROM event WHERE id = '$id'");
is(looked_at("SELECT * FROM event WHERE id = ($number)::randflake"), '2026_03', '  one key by number');
is(looked_at("SELECT * FROM event WHERE id = randflake_from_text('$id')::randflake"), '2026_03',
    '  by what gives a number');
like($sql->('SET plan_cache_mode = force_generic_plan', "PREPARE by_number AS SELECT ($number)::randflake",
        'EXPLAIN (VERBOSE, COSTS OFF) EXECUTE by_number'),
    qr/Output: '$id'::randflake/, '  which is a constant in the plan');
like($sql->('EXPLAIN (VERBOSE, COSTS OFF) SELECT 42::randflake'), qr/Output: '\w+'::randflake/, '  as an integer is');

# The cast of a number is STABLE, so no index can use it. Roles need EXECUTE on its function.
error_is($node, "CREATE INDEX ON event_2026_03 (body) WHERE id > ($number)::randflake", '42P17',
    { message => qr/must be marked IMMUTABLE/ }, 'the cast of a number is no constant for an index');
$sql->('CREATE ROLE ordinary', 'REVOKE EXECUTE ON FUNCTION randflake_from_bigint(bigint, integer, boolean) FROM PUBLIC');
error_is($node, "SET ROLE ordinary; SELECT ($number)::randflake", '42501',
    { message => qr/permission denied for function randflake_from_bigint/ }, 'a revoked cast is denied');
$sql->('GRANT EXECUTE ON FUNCTION randflake_from_bigint(bigint, integer, boolean) TO PUBLIC');

clock_runs_from($node, $january + 75 * 86400);    # 2026-03-31
is(looked_at(block('recent') =~ s/;\s*$//r), '2026_03 2026_04 (2 removed)',
    'run time: the last hour, whenever that is');
is(looked_at('EXECUTE one_key (' . "'$id')", 'SET plan_cache_mode = force_generic_plan',
        'PREPARE one_key (randflake) AS SELECT * FROM event WHERE id = $1'),
    '2026_03 (3 removed)', '  a key that is a parameter');
is(looked_at(q{SELECT * FROM event WHERE id = (SELECT max(id) FROM event_2026_02)}),
    '2026_02', '  a key that another query finds');

# --- dump and restore ------------------------------------------------------------------------
my $bounds = q{SELECT string_agg(relname || pg_get_expr(relpartbound, oid), ',' ORDER BY relname) FROM pg_class WHERE relispartition AND relkind = 'r'};
my $content = q{SELECT md5(string_agg(format('%s %s %s', id, body, tableoid::regclass), ',' ORDER BY id)) FROM event};
like($sql->($bounds), qr/^event_2026_01FOR VALUES FROM \('[0-9a-v]{1,13}'\) TO \('[0-9a-v]{1,13}'\),/,
    'bounds are shown as identifiers');
my $dump = tempdir() . '/dump.sql';
$node->command_ok([ 'pg_dump', '-h', $node->host, '-p', $node->port, '-f', $dump, 'postgres' ], 'pg_dump');
$sql->('CREATE DATABASE restored TEMPLATE template0');
$node->command_ok([ 'psql', '-Xq', '-v', 'ON_ERROR_STOP=1', '-f', $dump, '-d', $node->connstr('restored') ], 'restore');
is($node->safe_psql('restored', $_), $sql->($_), '  loses nothing') for $bounds, $content;

# --- a detached month ------------------------------------------------------------------------
my $rows = $sql->('SELECT count(*) FROM event WHERE id >= randflake_lower($$2026-02-01$$)');
$node->sql(block('detach'));
is($sql->($partitions), 'event_2026_02 event_2026_03 event_2026_04', 'a month is detached');
is($sql->('SELECT count(*) > 1000 FROM event_2026_01'), 't', '  with its rows');
$sql->(block('drop'));
is($sql->('SELECT count(*) FROM event'), $rows, '  and dropped, and the others stay');
$sql->(block('make'));
is($sql->($partitions), join(' ', map { "event_2026_0$_" } 2 .. 6), 'time goes on');
$node->stop;
every_block_was_used();
done_testing();
