# Checks that a standby with its primary's configuration decodes identifiers, but issues none.
use Randflake;

my $primary = start_server('primary', init => [ allows_streaming => 1 ]);
$primary->sql('CREATE TABLE made (id bigint PRIMARY KEY DEFAULT randflake_generate());'
      . ' INSERT INTO made SELECT FROM generate_series(1, 1000)');

my $standby = standby_of($primary, 'standby');
$primary->wait_for_catchup($standby, 'replay', $primary->lsn('insert'));

for my $max_wait (0, '1h') {
    for my $sql (
        'SELECT randflake_generate()',
        'SELECT randflake_generate_text()',
        'SELECT * FROM randflake_generate(10)',
        'SELECT randflake_generate() FROM made') {
        error_is($standby, "SET randflake.max_wait = '$max_wait'; $sql", '25006',
            { message => qr/during recovery/, hint => qr/primary/ },
            "standby, max_wait $max_wait: $sql fails", problem => 1);
    }
}
error_is($standby, 'SELECT randflake_acknowledge_copy()', '25006',
    { message => qr/^cannot acknowledge a copy during recovery$/, hint => qr/promoted/ }, 'standby: no copy is acknowledged');
is(error_of($standby, 'INSERT INTO made DEFAULT VALUES')->{sqlstate}, '25006', 'standby: INSERT with a default fails');

my $decoded = q{SELECT md5(string_agg(concat_ws(' ', id, extract(epoch FROM generated_at), node_id,
                sequence, randflake_encode(generated_at, node_id, sequence) = id), ',' ORDER BY id))
                FROM made, randflake_decode(id)};
is($standby->sql($decoded), $primary->sql($decoded), 'standby: decodes as the primary does');
is( $standby->sql('SELECT count(*) FROM made WHERE randflake_from_text(randflake_to_text(id)) = id'
          . ' AND randflake_shard(id, 1) = 0'),
    1000, 'standby: text and shards work');

my $session = start_session($standby,
    q{SET randflake.max_wait = '1h'},
    q{DO $$ BEGIN
        LOOP
            BEGIN
                PERFORM randflake_generate();
                EXIT;
            EXCEPTION WHEN read_only_sql_transaction THEN PERFORM pg_sleep(0.1);
            END;
        END LOOP;
      END $$},
    'INSERT INTO made DEFAULT VALUES');
$standby->poll_query_until('postgres',
    q{SELECT count(*) = 1 FROM pg_stat_activity WHERE query ~ '^DO' AND wait_event = 'PgSleep'});
$primary->stop;
$standby->promote;
is((finish_session($session))[1], '', 'promoted: a session that was refused goes on');
$standby->sql(q{SET randflake.max_wait = '1h'; INSERT INTO made SELECT FROM generate_series(1, 1000)});
all_distinct($standby, 'SELECT id FROM made', 2001, 'promoted: generates, and nothing twice');
$standby->stop;
done_testing();
