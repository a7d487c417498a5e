# Checks that the planner's estimates for the type equal those for bigints in the same order.
use Randflake;

my $node = start_server('main', extensions => ['randflake_type'],
    conf => "autovacuum = off\nmax_parallel_workers_per_gather = 0\njit = off\n");

# Each hour has 4,000 values, most of them in its first half, and 300 extra copies of one value.
$node->sql(<<'SQL');
CREATE TABLE log (id randflake, twin bigint, n integer);
CREATE INDEX ON log (id);
CREATE INDEX ON log (twin);
CREATE TABLE few (LIKE log);
CREATE TABLE unknown (LIKE log);
CREATE FUNCTION twin(t timestamptz) RETURNS bigint LANGUAGE sql IMMUTABLE
    AS $$ SELECT (extract(epoch FROM t)::bigint - 1730000000) << 34 $$;
CREATE FUNCTION fill(first integer, count integer) RETURNS void LANGUAGE sql AS $$
    INSERT INTO log SELECT randflake_encode(t, n % 5, n)::randflake, twin(t) + ((n % 5) << 17) + n, n
    FROM generate_series(0, count - 1) AS n,
        date_trunc('second', '2026-01-01Z'::timestamptz + make_interval(secs => first + 3600 * (n::float8 / count) ^ 2)) AS t $$;
SELECT fill(3600 * n, 4000) FROM generate_series(0, 5) AS n;
INSERT INTO log SELECT id, twin FROM log, generate_series(1, 300) WHERE n = 2000;
INSERT INTO log SELECT FROM generate_series(1, 500);
INSERT INTO few SELECT * FROM log WHERE n % 900 = 7;
ANALYZE log, few;
CREATE FUNCTION rows_of(query text) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE plan json;
BEGIN
    EXECUTE 'EXPLAIN (FORMAT JSON) ' || query INTO plan;
    RETURN plan #>> '{0,Plan,Plan Rows}';
END $$;
SQL

# Compares the estimates for both types. For each type, replaces "id" in the queries by the type's
# column, and the times by constants.
sub estimates_are_the_same($name, $good, @queries) {
    my $bad = '';
    for my $query (@queries) {
        my $of_type = $query =~ s/([\d:]{8})/randflake_lower('2026-01-01 $1Z')/gr;
        my $of_twin = $query =~ s/\bid\b/twin/gr =~ s/([\d:]{8})/twin('2026-01-01 $1Z')/gr;
        my ($expected, $twin, $found) = split /\|/, $node->sql(
            "SELECT rows_of(\$\$$of_type\$\$), rows_of(\$\$$of_twin\$\$), count(*) FROM ($of_type) AS q");
        note("$query: expected $expected, as bigint $twin, found $found");
        # The planner's order of multiplications depends on the type, so rounding errors may differ.
        $bad .= "$query: expected $expected, as bigint $twin, found $found\n"
          unless ($good > 1 || abs($expected - $twin) <= 1 + $twin / 1e6) && (!$good || abs($expected - $found) <= 0.3 * $found + 60);
    }
    is($bad, '', $name);
}

my @conditions = ('id >= 05:00:00', 'id >= 05:45:00', 'id >= 05:59:30', 'id > 03:10:00', 'id < 00:00:30', 'id <= 04:00:00',
    'id >= 01:00:00 AND id < 02:00:00', 'id >= 02:10:00 AND id < 02:20:00', 'id BETWEEN 00:00:05 AND 05:30:00',
    'id < 03:30:00 AND id > 03:29:00', 'id >= 04:31:00 AND id < 04:32:00', 'id >= 05:30:00 AND id < 23:00:00',
    'id < 00:00:00', 'id >= 06:00:00', '05:45:00 <= id', '02:10:00 <= id AND 02:20:00 > id',
    '02:10:00 <= id AND id < 02:20:00', 'id >= 02:10:00 AND 02:20:00 > id', 'NOT id < 03:10:00',
    'id < 01:00:00 OR id > 05:00:00', 'id >= 02:00:00 AND id < 03:00:00 AND n < 5000');
# The planner estimates these conditions badly. The test only compares the two types' estimates.
my @others = ('id < ANY (ARRAY[01:00:00, 02:00:00])', 'id > ALL (ARRAY[01:00:00, 02:00:00])', 'id = 01:00:00',
    'id <> 01:00:00', 'id IN (01:00:00, 02:00:00)', 'least(id, id) < 03:00:00', 'id >= 02:00:00 AND n < 100',
    'id < (SELECT 03:00:00)', 'id >= 03:00:00 AND id < (SELECT 04:00:00)', 'id >= 04:00:00 AND id < 03:00:00', 'id > NULL',
    'id >= 03:00:01 AND id < 03:00:00');
my @joins = map { "SELECT FROM $_" } 'log AS a JOIN few AS b USING (id) WHERE id >= 05:00:00',
  'log AS a JOIN log AS b USING (id) WHERE a.id >= 01:00:00 AND a.id < 01:30:00', 'few AS a JOIN log AS b ON a.id < b.id',
  'log AS a JOIN few AS b ON a.id >= b.id AND b.id < 02:00:00', 'log AS a LEFT JOIN few AS b USING (id) WHERE a.id < 02:00:00',
  'few AS a WHERE EXISTS (SELECT FROM log AS b WHERE a.id = b.id AND b.id > 03:00:00)';
my @log = map { "SELECT FROM log WHERE $_" } @conditions;
estimates_are_the_same('estimates of times are those of numbers, and good', 1, @log);
estimates_are_the_same('  of joins too', 0, @joins);
estimates_are_the_same('  of several upper bounds the tightest counts', 2, map { "SELECT FROM log WHERE id >= 02:10:00 AND $_" }
    'id < 02:20:00 AND id < 05:00:00', 'id < 05:00:00 AND id < 02:20:00');
estimates_are_the_same('  and of everything else, also without statistics', 0, (map { "SELECT FROM log WHERE $_" } @others),
    map { my $condition = $_; map { "SELECT FROM $_ WHERE $condition" } qw(few unknown) } @conditions, @others);
$node->sql('SELECT fill(6 * 3600, 40)');
estimates_are_the_same('  also soon after inserts', 0, @log, 'SELECT FROM log WHERE id >= 06:30:00');
$node->sql('SELECT fill(7 * 3600, 4000)');
estimates_are_the_same('  and long after', 0,
    map { "SELECT FROM log WHERE $_" } @conditions, 'id >= 07:30:00', 'id < 07:00:00', 'id > 07:59:59');
$node->stop;
done_testing();
