# Checks which slot the type's values come from, and that no other call gets the same numbers.
use Randflake;

my $per_node = 131072;

# --- one session -----------------------------------------------------------------------------
my $node = start_server('main', own_clock => 1, extensions => ['randflake_type'],
    settings => { node_id => 500, node_count => 3, secret => random_secret(), max_wait => 0 });
$node->sql(q{SET randflake.max_wait = '1h'; SELECT randflake_next()});
# Stops the clock one second ahead, still within the server's window.
clock_stands_at($node, time + 1);
$node->sql("SET randflake.max_wait = '1h'; CREATE TABLE made AS SELECT n AS place, randflake_next() AS id"
      . " FROM generate_series(1, 2 * $per_node + 1000) AS n");
my $made = fields_of($node,
    'SELECT id::bigint FROM made WHERE id >= (SELECT randflake_lower(randflake_timestamp(max(id))) FROM made)');
is("$made->{count} $made->{nodes} $made->{last_second}", 2 * $per_node + 1000 . " 500 501 502 $made->{first_second}",
    'a node id after the other, each used up to its last number');
is($node->sql('SELECT count(*) FROM (SELECT id > lag(id) OVER (ORDER BY place) AS up FROM made) AS m WHERE NOT up'),
    0, '  and each value greater than the one before');
is($node->sql('SELECT string_agg(n::text, $$ $$ ORDER BY node) FROM'
          . ' (SELECT randflake_node_id(id) AS node, count(*) AS n FROM made GROUP BY 1) AS m'),
    "$per_node $per_node 1000", '  with nothing left out');

my $left = $per_node - 1000;
$node->sql("SET randflake.max_wait = '1h'; INSERT INTO made SELECT 0, randflake_generate()"
      . " FROM generate_series(1, $left)");
all_distinct($node, 'SELECT id FROM made', 3 * $per_node, 'bigint gets what is left, and nothing twice');
error_is($node, 'SELECT randflake_next()', '53400',
    { message => qr/every identifier of this second is used/, hint => qr/node_count/ }, 'then there is no more');
error_is($node, 'SELECT randflake_generate()', '53400', {}, '  for bigint either');
clock_runs_from($node, time + 5);
$node->stop;

# --- sessions together -----------------------------------------------------------------------
$node = start_server('together', extensions => ['randflake_type'],
    settings => { node_id => 700, node_count => 64, secret => random_secret(), max_wait => '1h' });
$node->sql('CREATE TABLE made (place bigserial, id randflake PRIMARY KEY DEFAULT randflake_next())');
my $insert = q{DO $$ BEGIN FOR i IN 1..2000 LOOP INSERT INTO made DEFAULT VALUES; COMMIT; END LOOP; END $$};
my @sessions = map { start_session($node, $insert) } 1 .. 5;
my @errors = map { (finish_session($_))[1] } @sessions;
is("@errors", '    ', 'five sessions insert');
$made = fields_of($node, 'SELECT id::bigint FROM made');
is("$made->{count} $made->{nodes}", '10000 700', '  in one slot');

$node->stop;
configure($node, node_id => 900, node_count => 1, secret => random_secret(), max_wait => '1h');
$node->start;
$node->sql('DROP EXTENSION randflake CASCADE; DROP TABLE made; CREATE EXTENSION randflake_type CASCADE');
$node->sql('CREATE TABLE made (id randflake)');
my $next = 'INSERT INTO made SELECT randflake_next() FROM generate_series(1, 60000)';
my $generate = 'INSERT INTO made SELECT randflake_generate() FROM generate_series(1, 60000)';
@sessions = map { start_session($node, $_, $_) } ($next, $next, $generate, $generate);
@errors = map { (finish_session($_))[1] } @sessions;
is("@errors", '   ', 'sessions that mix both kinds');
all_distinct($node, 'SELECT id FROM made', 480000, '  get nothing twice');

my $parallel = 'SET max_parallel_workers_per_gather = 4; SET max_parallel_workers = 8;'
  . ' SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0; SET min_parallel_table_scan_size = 0;';
like($node->sql("$parallel EXPLAIN SELECT randflake_next() FROM made"),
    qr/Workers Planned: [2-4]/, 'parallel workers make values');
all_distinct($node,
    'SELECT x FROM (SELECT randflake_next() AS x FROM made UNION ALL SELECT id FROM made) AS old_and_new',
    960000, '  nothing twice');
is($node->sql("$parallel SELECT count(DISTINCT id::text) FROM made"), 480000, '  and show them');

# --- in and out ------------------------------------------------------------------------------
my $file = tempdir() . '/made';
for my $format ('text', 'csv', 'binary') {
    is($node->sql(<<"SQL"), 0, "COPY in format $format loses nothing");
CREATE TABLE copied (LIKE made);
COPY made TO '$file.$format' (FORMAT $format);
COPY copied FROM '$file.$format' (FORMAT $format);
SELECT count(*) FROM (SELECT id FROM made EXCEPT SELECT id FROM copied) AS missing;
DROP TABLE copied;
SQL
}

# Sends binary input. Drivers that do not know the type may send the text form as binary input.
sub copy_binary($bytes) {
    my $copy = "PGCOPY\n\xff\r\n\0" . pack('NN n N', 0, 0, 1, length $bytes) . $bytes . pack('n', 0xffff);
    append_to_file("$file.bytes", $copy);
    my ($status, $out, $errors) = $node->psql('postgres',
        "BEGIN; CREATE TABLE copied (id randflake); COPY copied FROM '$file.bytes' (FORMAT binary);"
          . ' SELECT id::bigint FROM copied; ROLLBACK',
        on_error_stop => 1, extra_params => [ '-v', 'VERBOSITY=verbose' ]);
    unlink "$file.bytes";
    return $out . $errors;
}
is(copy_binary(pack('q>', -42)), '-42', 'eight bytes are an identifier');
for my $bytes ('', '8i49d3u', '8i49d3ue35kq7', 'x' x 100) {
    my $length = length $bytes;
    like(copy_binary($bytes),
        qr/22P03: invalid binary form of an identifier\n.*DETAIL:  It has $length bytes instead of 8\.\nHINT:  Send the text form as text/,
        "  and $length bytes are an error that says what to send");
}

SKIP: {
    skip 'errors of input functions are not soft before PostgreSQL 16', 3 if $node->pg_version->major < 16;
    is($node->sql(q{SELECT pg_input_is_valid('8i49d3ue35kq7', 'randflake'), pg_input_is_valid('x', 'randflake'),}
              . q{ pg_input_is_valid('', 'randflake')}), 't|f|f', 'valid input is told from other');
    is($node->sql(q{SELECT sql_error_code, detail FROM pg_input_error_info('g000000000000', 'randflake')}),
        '22P02|It exceeds 64 bits.', '  with the reason');
    is($node->sql(q{SELECT detail, hint FROM pg_input_error_info('42', 'randflake')}),
        q{It is a decimal number; the text form is base 32.|Cast a number through bigint: '42'::bigint::randflake.},
        '  and the cast that works');
}

# --- only reading ----------------------------------------------------------------------------
my $secret = slurp_file($node->data_dir . '/randflake.conf') =~ /secret = '(\w+)'/ ? $1 : die;
configure($node, secret => $secret);
$node->restart;
error_is($node, 'SELECT randflake_next()', '55000',
    { message => qr/no node id is configured/, hint => qr/randflake\.node_id/ }, 'without a node id no value is made');
is($node->sql('SELECT count(id::text::randflake) FROM made'), 480000, '  but values are shown and read');
$node->stop;
done_testing();
