# What EXPLAIN tells about values of the type randflake: second and order, which every SQL user sees anyway,
# and neither the node id nor the sequence number. And that they are still good.

use Randflake;

my $node = start_server('main', extensions => ['randflake_type'],
    conf => "autovacuum = off\nmax_parallel_workers_per_gather = 0\njit = off\n");
my $version = $node->safe_psql('postgres', 'SHOW server_version_num');

sub query {
    my ($sql, $user) = @_;
    return $node->safe_psql('postgres', $sql, extra_params => [ '-U', $user // 'postgres' ]);
}

# --- the attack --------------------------------------------------------------------------------

# A role without grants has an identifier. It interpolates: a condition whose other half is known only
# to a join, on a cross join so large that the estimated rows have all digits.
query('CREATE ROLE stranger LOGIN');
my $start = 1767225600;    # 2026-01-01
my %inside;                # identifiers, with what is inside
for my $known (1 .. 5) {
    my ($second, $node_id, $sequence) = ($start + $known, 1000 + int rand 130_000, int rand 131_072);
    my $text = query("SELECT randflake_encode(to_timestamp($second), $node_id, $sequence)::randflake");
    $inside{$text} = [ $second, $node_id, $sequence ];
}
my $columns = <<"SQL";
CREATE TEMP TABLE h AS SELECT randflake_lower(to_timestamp(n)) AS id FROM generate_series($start, $start + 6) AS n;
ANALYZE h;
SQL
my %setting_of = (bounds => $columns, ends => "$columns CREATE UNIQUE INDEX ON h (id);\n");

my $large = 'generate_series(1, 1000000000) AS a, generate_series(1, 1000000000) AS b';

# Rows that are expected of a condition on "id" and "V"
sub expected_rows {
    my ($setting, $condition, @values) = @_;
    my $sql = $setting . join '', map {
        my $filter = $condition =~ s/\bid\b/h.id/gr =~ s/\bV\b/$_/gr;
        "EXPLAIN (FORMAT JSON) SELECT FROM h, $large WHERE ($filter) OR a < b - b;\n"
    } @values;
    # The first number of each plan is that of its top node.
    my @rows = map { /"Plan Rows": (\d+)/ ? $1 : '' } split /^\[$/m, query($sql, 'stranger');
    return @rows[ 1 .. $#rows ];
}

for my $setting (sort keys %setting_of) {
    my $read = 0;
    for my $text (sort keys %inside) {
        my ($second, $node_id) = @{ $inside{$text} };
        my ($here, $lower, $upper) = expected_rows($setting_of{$setting}, 'id < V', "'$text'::randflake",
            map { "randflake_lower(to_timestamp($_))" } $second, $second + 1);
        my $part = ($here - $lower) / ($upper - $lower);
        note("$setting: node id $node_id, read ", $part * 131_072);
        $read++ if abs($part * 131_072 - $node_id) < 2;
    }
    is($read, 0, "$setting: no node id is read from estimates");
}

# The same with the column and the constant in each other's place: V is the bound, or the index's end.
for my $index (0, 1) {
    my $read = 0;
    for my $text (sort keys %inside) {
        my ($second, $node_id) = @{ $inside{$text} };
        my $setting = "CREATE TEMP TABLE h AS SELECT randflake_lower(to_timestamp(n)) AS id"
          . " FROM generate_series($start - 40, $start - 9) AS n;\n"
          . ($index ? 'CREATE INDEX ON h (id); ANALYZE h; ' : '') . "INSERT INTO h VALUES ('$text');\n"
          . ($index ? '' : "ANALYZE h;\n");
        my ($below, $above, $low, $high) = expected_rows($setting, 'id < V',
            map { "randflake_lower(to_timestamp($_))" } map { $start - $_ } 30, 29, 8, 7);
        # Seconds from the last bound before V, as many as a second's part of that bin is smaller
        my $seconds = $high > $low ? ($above - $below) / ($high - $low) : 0;
        my $part = $seconds - int $seconds;
        note("index $index: node id $node_id, read ", $part * 131_072);
        $read++ if abs($part * 131_072 - $node_id) < 20;
    }
    is($read, 0, $index ? "  nor of the index's end" : '  nor of a bound');
}

# --- the same for other values in the same seconds and order -----------------------------------

# Two schemas hold the same but for node ids and sequence numbers: at(second, rank). In one of them, ranks
# are consecutive numbers. Whatever is planned, and run, must look the same in both.
for my $schema (qw(one other)) {
    my ($node_id, $sequence) = $schema eq 'one' ? (5, 'rank') : ('131071 - (40 - rank) ^ 3', 131_000);
    query(<<"SQL");
CREATE SCHEMA $schema;
SET search_path = $schema, public;
CREATE FUNCTION at(second integer, rank integer) RETURNS randflake IMMUTABLE LANGUAGE sql
    AS \$\$ SELECT randflake_encode(to_timestamp($start + second), ($node_id)::integer, $sequence)::randflake \$\$;
CREATE TABLE many (id randflake, payload integer);
INSERT INTO many SELECT at(n % 200, (n * n) % 10), n FROM generate_series(1, 2000) AS n;
INSERT INTO many SELECT at(50 + n % 3, n % 10), n FROM generate_series(1, 300) AS n;
INSERT INTO many SELECT NULL, n FROM generate_series(1, 100) AS n;
-- Bounds of bins that are seconds wide, within which something can be interpolated
CREATE TABLE few AS SELECT at(n * 20, n % 10) AS id, n AS payload FROM generate_series(1, 12) AS n;
CREATE TABLE two AS SELECT at(n * 40, n) AS id FROM generate_series(1, 2) AS n;
CREATE TABLE constant AS SELECT at(30, 5) AS id, n AS payload FROM generate_series(1, 50) AS n;
CREATE TABLE grown (id randflake);
CREATE INDEX ON grown (id);
INSERT INTO grown SELECT at(n, n % 10) FROM generate_series(10, 60, 10) AS n;
CREATE INDEX ON many (id, payload);
CREATE INDEX ON many (id DESC) WHERE payload > 7;
CREATE UNIQUE INDEX ON few (id);
CREATE INDEX ON few (least(id, id));
CREATE STATISTICS many_mcv (mcv, ndistinct, dependencies) ON id, payload FROM many;
CREATE TABLE part (id randflake, payload integer) PARTITION BY RANGE (id);
CREATE TABLE part_1 PARTITION OF part FOR VALUES FROM (MINVALUE) TO (at(40, 3));
CREATE TABLE part_2 PARTITION OF part FOR VALUES FROM (at(40, 3)) TO (at(40, 7));
CREATE TABLE part_3 PARTITION OF part FOR VALUES FROM (at(40, 7)) TO (MAXVALUE);
INSERT INTO part SELECT at(n % 80, n % 10), n FROM generate_series(1, 800) AS n;
-- Ranges of blocks with more values of one second than a summary can hold
CREATE TABLE summed (id randflake, padding text);
INSERT INTO summed SELECT at(n / 152, 2 * (n % 20)), repeat('x', 400) FROM generate_series(0, 1519) AS n;
CREATE INDEX ON summed USING brin (id randflake_minmax_multi_ops (values_per_range = 8)) WITH (pages_per_range = 8);
-- An index that can be skipped through, since PostgreSQL 18
CREATE TABLE skipped AS SELECT at(n / 10, n % 10) AS id, payload
FROM generate_series(0, 19) AS n, generate_series(1, 1000) AS payload;
CREATE INDEX ON skipped (id, payload);
ANALYZE many, few, two, constant, grown, part, summed, skipped;
VACUUM skipped, many;
INSERT INTO grown VALUES (at(2, 6)), (at(95, 4));
SQL
}

my @conditions = map {
    my $condition = $_;
    map { my $constant = $_; $condition =~ s/\bV\b/$constant/gr } map { ("at($_, 0)", "at($_, 6)") }
      0, 3, 30, 40, 51, 60, 93, 240
  } 'id < V', 'id <= V', 'id > V', 'id >= V', 'V < id', 'V >= id', 'id = V', 'id <> V', 'id IN (V, at(51, 3))',
  'id < ANY (ARRAY[V, at(20, 9)])', 'id > ALL (ARRAY[V, at(20, 9)])', 'id BETWEEN at(20, 3) AND V',
  'id >= V AND id < at(99, 7)', 'NOT id < V', 'least(id, id) < V', 'id < V OR id > at(60, 8)';
my @queries = (
    (map { my $table = $_; map { "SELECT * FROM $table WHERE $_" } @conditions } qw(many few two constant grown part)),
    # As in the attack, with all digits
    (map {
            my $table = $_;
            map { "SELECT FROM $table, $large WHERE ($_) OR a < b - b" }
              grep { /^[idV <>=]+at\(\d+, 6\)$/ } @conditions
        } qw(many few two grown)),
    (map {
            my $join = $_;
            map { "$_ SELECT * FROM $join WHERE a.id < at(51, 4)" } '',
              'SET enable_hashjoin = off; SET enable_nestloop = off;',
              'SET enable_hashjoin = off; SET enable_mergejoin = off;'
        } 'many AS a JOIN few AS b ON a.id = b.id', 'many AS a JOIN few AS b USING (id)',
        'few AS a JOIN many AS b ON a.id = b.id', 'grown AS a JOIN many AS b ON a.id = b.id',
        'grown AS a JOIN few AS b ON a.id = b.id', 'few AS a JOIN grown AS b ON a.id = b.id',
        'few AS a JOIN two AS b ON a.id = b.id', 'two AS a JOIN few AS b ON a.id = b.id',
        'grown AS a LEFT JOIN two AS b ON a.id = b.id', 'many AS a JOIN constant AS b ON a.id = b.id',
        'many AS a JOIN constant AS b ON a.id <> b.id', 'few AS a JOIN grown AS b ON a.id < b.id',
        'grown AS a JOIN few AS b ON a.id >= b.id', 'part AS a JOIN few AS b ON a.id = b.id'),
    'SELECT * FROM few AS a WHERE EXISTS (SELECT FROM grown AS b WHERE a.id = b.id)',
    'SELECT * FROM few AS a WHERE NOT EXISTS (SELECT FROM grown AS b WHERE a.id > b.id)',
    'SELECT min(id), max(id) FROM many', 'SELECT min(id) FROM part WHERE id > at(40, 4)',
    'SELECT id, count(*) FROM many GROUP BY id', 'SELECT DISTINCT id FROM many ORDER BY id LIMIT 3',
    'SELECT * FROM many WHERE id > at(100, 4) AND payload = 9', 'SELECT * FROM many WHERE id > at(100, 4) ORDER BY id LIMIT 5',
    'SELECT * FROM many WHERE id = at(51, 4) AND payload < 30',
    'PREPARE p (randflake) AS SELECT * FROM many WHERE id < $1; SET plan_cache_mode = force_generic_plan; EXECUTE p (at(60, 3))',
    'PREPARE p (randflake) AS SELECT * FROM many WHERE id < $1; SET plan_cache_mode = force_custom_plan; EXECUTE p (at(60, 3))',
    (map { "SET enable_seqscan = off; ANALYZE SELECT * FROM summed WHERE id = at(3, $_)" } 0 .. 39),
    (map { "SET enable_seqscan = off; ANALYZE SELECT id FROM skipped WHERE payload = $_" } 1, 500, 1000),
    "SET enable_seqscan = off; ANALYZE SELECT id FROM skipped WHERE id > at(0, 3) AND payload = 500");

# Plans with everything that EXPLAIN tells, without the identifiers themselves
sub plans {
    my ($prefix, @statements) = @_;
    my $sql = $prefix . join '', map {
        my ($before, $statement) = /^(.*; )?(.*)$/;
        "BEGIN;\n" . ($before // '') . "\n\\qecho === $_\nEXPLAIN "
          . ($statement =~ s/^ANALYZE // ? '(ANALYZE, TIMING OFF, SUMMARY OFF, BUFFERS OFF) ' : '')
          . "$statement;\nROLLBACK;\nDEALLOCATE ALL;\n"
    } @statements;
    return map { s/'\{?[0-9a-v,]+\}?'(?=::randflake)/identifier/gr } grep { $_ ne '' } split /^=== /m, query($sql);
}

my @one = plans("SET search_path = one, public;\n", @queries);
my @other = plans("SET search_path = other, public;\n", @queries);
is(scalar @one, scalar @queries, scalar @queries . ' plans');
my @differing = grep { $one[$_] ne $other[$_] } 0 .. $#queries;
is(scalar @differing, 0, 'all are the same for other node ids and sequence numbers')
  or diag(map { "$one[$_]$other[$_]" } @differing[ 0 .. ($#differing < 3 ? $#differing : 3) ]);
like("@one", qr/$_/, "  among them: $_")
  for 'Merge Join', 'Hash Join', 'Nested Loop', 'Bitmap Heap Scan', 'Index Only Scan', 'Rows Removed by Index Recheck',
  $version >= 180000 ? 'Index Searches: \d\d' : ();

# --- estimates of comparisons know the second alone ---------------------------------------------

my @groups = map {
    my $start_of = "SELECT FROM $_ WHERE ";
    map {
        my $condition = $_;
        map { my $second = $_; [ map { $start_of . $condition =~ s/\bV\b/at($second, $_)/r } 0, 4, 5, 9 ] }
          2, 10, 30, 40, 51, 60, 95
    } 'id < V', 'id <= V', 'id > V', 'V <= id', 'id < ANY (ARRAY[V])', 'id BETWEEN V AND at(99, 9)',
      'id >= V AND id < at(60, 3)'
} qw(many few two constant grown);
my @estimates = plans("SET search_path = one, public;\n", map { @$_ } @groups);
my $different = '';
while (my @group = splice @estimates, 0, 4) {
    my %rows = map { /(rows=\d+)/ ? ($1 => 1) : () } @group;
    $different .= "@group" if keys %rows != 1;
}
is($different, '', 'estimates are the same for all constants of a second');

# --- and are good --------------------------------------------------------------------------------

# A column of numbers in the same order is estimated by the server.
query(<<'SQL');
CREATE TABLE log (id randflake, twin bigint);
CREATE INDEX ON log (id);
CREATE INDEX ON log (twin);
CREATE FUNCTION fill(first integer, count integer) RETURNS void LANGUAGE sql AS $$
    INSERT INTO log SELECT randflake_encode(t, n % 5, n)::randflake,
        ((extract(epoch FROM t)::bigint - 1730000000) << 34) + ((n % 5) << 17) + n
    FROM generate_series(0, count - 1) AS n,
        date_trunc('second', '2026-01-01Z'::timestamptz + make_interval(secs => first + 3600 * (n::float8 / count) ^ 2)) AS t $$;
CREATE FUNCTION twin(t timestamptz) RETURNS bigint LANGUAGE sql IMMUTABLE
    AS $$ SELECT (extract(epoch FROM t)::bigint - 1730000000) << 34 $$;
SELECT fill(3600 * n, 4000) FROM generate_series(0, 5) AS n;
ANALYZE log;
CREATE FUNCTION estimate(condition text, OUT expected bigint, OUT twin bigint, OUT there bigint) LANGUAGE plpgsql AS $$
DECLARE
    other text := replace(replace(condition, 'id', 'twin'), 'randflake_lower', 'twin');
    plan json;
BEGIN
    EXECUTE 'EXPLAIN (FORMAT JSON) SELECT FROM log WHERE ' || condition INTO plan;
    expected := plan #>> '{0,Plan,Plan Rows}';
    EXECUTE 'EXPLAIN (FORMAT JSON) SELECT FROM log WHERE ' || other INTO plan;
    twin := plan #>> '{0,Plan,Plan Rows}';
    EXECUTE 'SELECT count(*) FROM log WHERE ' || condition INTO there;
END $$;
SQL

# Within a factor of those of the column of numbers, and of what is found if that is asked for
sub estimates_are_good {
    my ($name, $compare_with_found, @ranges) = @_;
    my $bad = '';
    for my $range (@ranges) {
        my $condition = $range =~ s/([\d:]{8})/randflake_lower('2026-01-01 $1Z')/gr;
        my ($expected, $twin, $found) = split /\|/, query("SELECT * FROM estimate(\$\$$condition\$\$)");
        note("$range: expected $expected, as bigint $twin, found $found");
        for my $good ($twin, $compare_with_found ? $found : ()) {
            $bad .= "$range: expected $expected, as bigint $twin, found $found\n"
              unless abs($expected - $good) <= 0.25 * $good + 50;
        }
    }
    is($bad, '', $name);
}

my @ranges = (
    'id >= 05:00:00', 'id >= 05:45:00', 'id >= 05:59:30', 'id > 03:10:00', 'id < 00:00:30', 'id <= 04:00:00',
    'id >= 01:00:00 AND id < 02:00:00', 'id >= 02:10:00 AND id < 02:20:00', 'id BETWEEN 00:00:05 AND 05:30:00',
    'id < 03:30:00 AND id > 03:29:00', 'id >= 05:30:00 AND id < 23:00:00', 'id < 00:00:00', 'id >= 06:00:00');
estimates_are_good('estimates of times are as good as those of numbers', 1, @ranges);
query('SELECT fill(6 * 3600, 40)');
estimates_are_good('  also soon after inserts', 0, @ranges, 'id >= 06:30:00');
query('SELECT fill(7 * 3600, 4000)');
estimates_are_good('  and long after', 0, @ranges, 'id >= 07:30:00', 'id < 07:00:00', 'id > 07:59:59');

$node->stop;
done_testing();
