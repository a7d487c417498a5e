# Tests snowflake_generate() and its settings.
use Randflake;
use Time::HiRes qw(time);

my $node = start_server('main', init => [ allows_streaming => 1 ], settings => { node_id => 7 });

# --- no secret ---------------------------------------------------------------------------------
ok($node->sql('SELECT snowflake_generate() > 0'), 'without a secret: generates');
error_is($node, 'SELECT randflake_generate()', '55000', { message => qr/no secret/ },
    'without a secret: Randflake does not');

# --- layouts -----------------------------------------------------------------------------------
# Makes identifiers after a restart with this layout. Checks that they are positive and distinct,
# and that they contain the current time and the server's node ids.
sub generates($layout, %settings) {
    configure($node, node_id => 7, snowflake_layout => $layout, %settings);
    $node->restart;
    my $before = time;
    $node->sql('DROP TABLE IF EXISTS made; SET randflake.max_wait = 120000;'
          . 'CREATE TABLE made AS SELECT snowflake_generate() AS id FROM generate_series(1, 1000);'
          . 'INSERT INTO made VALUES (snowflake_generate())');
    my $fields = fields_of($node, 'SELECT id FROM made', "snowflake_decode(id, '$layout')");
    is("$fields->{count} $fields->{distinct}", '1001 1001', "$layout: identifiers, none twice");
    is($node->sql('SELECT count(*) FROM made WHERE id <= 0'), 0, "$layout: all are positive");
    like($fields->{nodes}, qr/^7( 8)?$/, "$layout: node ids");
    is( $node->sql('SELECT bool_and(snowflake_decode(id)::text = snowflake_decode(id, '
              . "'$layout')::text) FROM made"), 't', "$layout: it is the server's");
    # Allows a time one second before the call, because the unit of time may begin before the call.
    cmp_ok($fields->{first_second}, '>=', int($before) - 1, "$layout: no time before");
    cmp_ok($fields->{last_second}, '<=', time, "$layout: no time after");
}

generates('twitter');
generates('sonyflake', node_count => 2);
generates('node=10, time=41:1ms, sequence=12, epoch=2020-01-01 00:00:00.123');
generates('time=32:1s, node=8, sequence=13, epoch=2024-01-01');
is($node->sql('SELECT count(*) FROM made WHERE id > 9007199254740991'), 0, 'all are exact as numbers of JSON');
generates('time=32:250ms, node=17, sequence=13, epoch=2024-01-01 00:00:01.500');
is($node->sql('SELECT name IS NULL, description FROM snowflake_layouts() WHERE in_use'),
    't|time=32:250ms, node=17, sequence=13, epoch=2024-01-01 00:00:01.500', 'the list shows a described layout');
configure($node, node_id => 7);
$node->restart;
is( $node->sql("SELECT string_agg(name, ' ') FILTER (WHERE in_use), count(*) FROM snowflake_layouts()"),
    'twitter|5', 'the list marks the default');

# --- node ids -------------------------------------------------------------------------------------
configure($node, node_id => 1020, node_count => 5);
$node->restart;
error_is($node, 'SELECT snowflake_generate()', '55000',
    { message => qr/node ids 1020 to 1024 do not fit in layout "twitter"/,
      detail => qr/10 bits for node ids, which are from 0 to 1023/,
      hint => qr/"instagram" up to 8191, "sonyflake" up to 65535, "baidu" up to 4194303/ },
    'node ids that do not fit: the error says which do');
configure($node, node_id => 131071, snowflake_layout => 'time=41:1ms,node=4,sequence=4,epoch=0');
$node->restart;
error_is($node, 'SELECT snowflake_generate()', '55000', { detail => qr/from 0 to 15\b/,
    hint => qr/hold them: "baidu" up to 4194303/ }, 'node ids that do not fit: another layout');

# --- times -------------------------------------------------------------------------------------
configure($node, node_id => 7, snowflake_layout => 'baidu');
$node->restart;
error_is($node, q{SET timezone = 'UTC'; SELECT snowflake_generate()}, '22008',
    { message => qr/clock is after the last time of layout "baidu"/,
      detail => qr/times through 2024-11-20 13:24:15\+00/, hint => qr/"randflake\.snowflake_layout"/ },
    'baidu has ended');
is( $node->sql(q{SET timezone = 'UTC'; SELECT snowflake_decode(1234567890123456789)}),
    '("2017-07-09 12:44:14+00",2355020,277)', 'but decodes');
configure($node, node_id => 7, snowflake_layout => 'time=41:1ms,node=10,sequence=12,epoch=9999-01-01');
$node->restart;
error_is($node, q{SET timezone = 'UTC'; SELECT snowflake_generate()}, '22008',
    { message => qr/clock is before the first time/, detail => qr/times from 9999-01-01 00:00:00\+00/ },
    'a layout that begins later');

# --- malformed settings ------------------------------------------------------------------------
$node->stop;
refuses_to_start($node, { node_id => 7, snowflake_layout => $_->[0] },
    qr/FATAL:  invalid value for parameter "randflake\.snowflake_layout".*DETAIL:  $_->[1]/s,
    "refuses to start: \"$_->[0]\"") for [ '', qr/It is empty\./ ],
  [ 'twiter', qr/It is neither the name/ ],
  [ 'time=41:1ms, node=10, sequence=13, epoch=0', qr/.* at most 63 bits together\./ ],
  [ 'time=41:1ms, node=10, sequence=12, epoch=tomorrow', qr/The epoch is .*, not "epoch=tomorrow"\./ ];

# --- exhaustion --------------------------------------------------------------------------------
# The clock stands still until two sessions have used all 4096 numbers per node id and are waiting.
for my $count (1, 3) {
    my $full = new_server("full$count", settings => { node_id => 7, node_count => $count, max_wait => '1h' });
    my $now = int time;
    clock_runs_from($full, $now);
    start_under_clock($full);
    $full->sql('CREATE EXTENSION randflake; SELECT snowflake_generate()');
    clock_stands_at($full, $now + 30.25);
    my $each = 4096 * $count + 100;    # so that both must wait
    my @sessions = map {
        start_session($full,
            "CREATE TABLE made_$_ AS SELECT snowflake_generate() AS id FROM generate_series(1, $each)")
    } 1 .. 2;
    wait_until_waiting($full, 2);
    clock_runs_from($full, $now + 31);
    is((finish_session($_))[1], '', "$count node ids: a session makes $each") for @sessions;
    is($full->sql(<<'SQL'), join('|', 2 * $each, 2 * $each), "$count node ids: nothing twice");
CREATE TABLE made AS SELECT id, d.* FROM (TABLE made_1 UNION ALL TABLE made_2) AS m, snowflake_decode(id) AS d;
SELECT count(*), count(DISTINCT id) FROM made
SQL
    # A server discards the rest of a batch when a statement or the layout's unit of time ends.
    is($full->sql("SELECT ids_issued >= 2 * $each, slots_exhausted >= $count FROM randflake_status"),
        't|t', "$count node ids: each was used up");
    is($full->sql(<<"SQL"), join(' ', 7 .. 6 + $count), "$count node ids: all to the last");
SELECT string_agg(DISTINCT node_id::text, ' ' ORDER BY node_id::text) FROM made
WHERE extract(epoch FROM generated_at) = $now + 30.25 AND sequence > 4096 - 300
SQL
    is($full->sql(<<"SQL"), 7, "$count node ids: then later, from the lowest on");
SELECT min(node_id) FROM made WHERE extract(epoch FROM generated_at) > $now + 30.251
SQL
    $full->stop;
}

configure($node, node_id => 7, snowflake_layout => 'time=32:500ms, node=10, sequence=1, epoch=2024-01-01');
$node->start;
error_is($node, q{SET randflake.max_wait = '20s'; SELECT count(snowflake_generate()) FROM generate_series(1, 2);
SET randflake.max_wait = '10ms'; SELECT count(snowflake_generate()) FROM generate_series(1, 8)},
    '53400',
    {
        message => qr/every identifier of this unit of time is used/,
        detail => qr/1 node id gives 2 identifiers in 500 ms\. The call waited 10 ms/,
        hint => qr/"randflake\.node_count"/ }, 'used up: fails after max_wait');
error_is($node, q{SET randflake.max_wait = '1h'; SET statement_timeout = '500ms';
SELECT count(snowflake_generate()) FROM generate_series(1, 1000)}, '57014', {}, 'used up: the wait can be cancelled');
configure($node, node_id => 7, snowflake_layout => 'time=42:1ms, node=10, sequence=1, epoch=2024-01-01');
$node->restart;
error_is($node, q{SET randflake.max_wait = '1h'; SET statement_timeout = '2s';
SELECT count(snowflake_generate()) FROM (SELECT generate_series(1, 100000000)) AS n}, '57014', {},
    'waits of a millisecond can be cancelled');
$node->stop;

# --- moving from another generator ----------------------------------------------
# pgEdge's extension runs under nodes 3 and 900. So far it has made 700 numbers a millisecond, from
# count 0. The function makes its numbers: sql/snowflake.sql compares its layouts with real numbers.
my $moved = new_server('moved', settings => { node_id => 0, max_wait => '1h' });
my ($page, $now) = (slurp_file('docs/snowflake.md'), int time);
my %layout_of = reverse $page =~ /\('(1\.0 and 1\.1|since 1\.2)', '(time=[^']+)'\)/g;
%layout_of = map { $layout_of{$_} => $_ } keys %layout_of;
my ($find, $used) = $page =~ /^   ```sql\n(   SELECT release.*?)```.*^   ```sql\n(   SELECT node_id.*?)```/ms;
clock_runs_from($moved, $now);
start_under_clock($moved);
$moved->sql(<<'SQL');
CREATE EXTENSION randflake;
CREATE FUNCTION pgedge(ms bigint, node bigint, count bigint, release text) RETURNS bigint LANGUAGE sql
RETURN ms - 1672531200000 << 22 | CASE release WHEN 'since 1.2' THEN node << 12 | count ELSE count << 10 | node END;
SQL
for my $release (sort keys %layout_of) {
    my $layout = $layout_of{$release};
    $moved->sql(<<"SQL");
DROP TABLE IF EXISTS event;
CREATE TABLE event (id bigint PRIMARY KEY, name text);
INSERT INTO event SELECT pgedge($now * 1000::bigint - ms, node, count, '$release')
FROM generate_series(1, 20) AS ms, unnest(ARRAY[3, 900]) AS node, generate_series(0, 699) AS count;
SQL
    like($moved->sql($find), $release =~ /since/ ? qr/1\|[1-9]\d*\n.*\|0$/ : qr/1\|0\n.*\|[1-9]/,
        "$release: the page's query finds the order");
    my %used = map { /^(\d+)/ => 1 } split /\n/, $moved->sql($used =~ s/twitter/$layout/r);
    is(join(' ', sort keys %used), '3 900', "$release: the page's query lists the node ids");
    my ($free) = grep { !$used{$_} } reverse 0 .. 1023;
    $moved->stop;
    configure($moved, node_id => $free, max_wait => '1h', snowflake_layout => $layout);
    clock_runs_from($moved, $now += 60);
    start_under_clock($moved);
    $moved->sql($page =~ /^   (ALTER TABLE event .*)$/m);
    $moved->sql('SELECT snowflake_generate()');
    clock_stands_at($moved, $now + 30.25);
    my $session = start_session($moved, 
        "INSERT INTO event (name) /* snowflake_generate() */ SELECT 'ours' FROM generate_series(1, 5000)");
    wait_until_waiting($moved, 1);
    clock_runs_from($moved, $now += 31);
    is((finish_session($session))[1], '', "$release: the server makes all numbers of a millisecond");
    is($moved->sql(<<"SQL"), 't', "$release: both generators fill the same milliseconds, none twice");
WITH theirs AS (INSERT INTO event SELECT DISTINCT pgedge((id >> 22) + 1672531200000, node, count, '$release')
    FROM event, unnest(ARRAY[3, 900]) AS node, generate_series(0, 4095) AS count WHERE name = 'ours'
    ON CONFLICT DO NOTHING RETURNING id)
SELECT (SELECT count(*) FROM theirs) = 2 * 4096 * count(DISTINCT id >> 22) AND count(DISTINCT id >> 22) > 1
FROM event WHERE name = 'ours'
SQL
}
$moved->stop;

# --- order -------------------------------------------------------------------------------------
configure($node, node_id => 7, node_count => 64, max_wait => '60s');
$node->start;
my @statements = map { 'INSERT INTO ordered (id) VALUES (snowflake_generate())' } 1 .. 500;
$node->sql('CREATE TABLE ordered (id bigint, inserted bigserial)');
is((finish_session(start_session($node, @statements)))[1], '', 'single inserts');
is($node->sql(<<'SQL'), '500|0', 'single inserts: each is larger than the one before');
SELECT count(*), count(*) FILTER (WHERE id <= before)
FROM (SELECT id, lag(id) OVER (ORDER BY inserted) AS before FROM ordered) AS pairs
SQL
is($node->sql('SELECT ids_issued FROM randflake_status'), 500, 'single inserts: each takes one number');
$node->stop;

# A node id has two numbers a millisecond. A session cannot use up all node ids in a millisecond. So
# when a millisecond begins, the session usually searches for a node id with numbers left.
configure($node, node_id => 7, node_count => 16384,
    snowflake_layout => 'time=42:1ms, node=15, sequence=1, epoch=2024-01-01');
$node->start;
is($node->sql(<<'SQL'), 't|0', 'over many node ids: each is larger than the one before');
SET randflake.max_wait = '60s';
CREATE TABLE many AS SELECT n, snowflake_generate() AS id FROM generate_series(1, 500000) AS n;
SELECT max((snowflake_decode(id)).node_id) > 107, count(*) FILTER (WHERE id <= before)
FROM (SELECT id, lag(id) OVER (ORDER BY n) AS before FROM many) AS pairs
SQL
$node->stop;

# --- recovery ----------------------------------------------------------------------------------
$node->set_standby_mode;
$node->start;
error_is($node, 'SELECT snowflake_generate()', '25006', { message => qr/during recovery/ },
    'a standby does not generate');
is($node->sql('SELECT count(*) FROM many, snowflake_decode(id)'), 500_000, 'but decodes');
$node->stop;
done_testing();
