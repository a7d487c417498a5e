# Sets randflake.sort_loads. Checks that one statement gets its identifiers in ascending runs, that
# nothing of a run reaches another statement, that runs obey work_mem and leave numbers to other
# sessions, and that no identifier repeats after a crash, a cancel or a change of the secret.
#
# RANDFLAKE_ROUNDS sets the number of rounds of crashes (6 make about 10 million identifiers).
use Randflake;
use RandflakeHistory;
use Time::HiRes qw(sleep time);

my $secret = random_secret();
my $node = start_server('main', settings => { node_id => 1, node_count => 64, secret => $secret, max_wait => '1h' });
my $rows = $node->basedir . '/rows';
append_to_file($rows, join '', map { "$_\n" } 1 .. 20_000);

# Returns the options of a session that sorts loads.
sub options { return '-c randflake.sort_loads=on -c work_mem=1MB ' . ($_[0] // '') }

sub query($sql, $options = undef) {
    local $ENV{PGOPTIONS} = $options // options();
    return $node->sql($sql);
}

# steps_down() counts the rows whose key is below that of the row before, in the order of storage,
# by more than a group of a long run spans.
# held() returns the bytes of a run.
$node->sql(<<'SQL');
CREATE FUNCTION steps_down(made regclass) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    down bigint;
BEGIN
    EXECUTE format('SELECT count(*) FROM (SELECT lag(id) OVER (ORDER BY ctid)::float8 - id AS down,
                        max(id) OVER ()::float8 - min(id) OVER () AS range FROM %s) AS steps
                    WHERE down > range / 16', made) INTO down;
    RETURN down;
END $$;
CREATE FUNCTION held() RETURNS bigint LANGUAGE sql VOLATILE AS
$$ SELECT sum(total_bytes) FROM pg_backend_memory_contexts WHERE name = 'randflake load' $$;
SQL

# --- one statement -----------------------------------------------------------------------------
# Each case has a name, the statements, and the statement that makes identifiers.
for my $family ('randflake_generate', 'randflake53_generate') {
    my $table = "CREATE TABLE made (n integer, id bigint DEFAULT $family() PRIMARY KEY);";
    my $values = join ', ', map { "($_)" } 1 .. 20_000;
    for my $case ([ 'INSERT ... SELECT', "INSERT INTO made SELECT generate_series(1, 20000)", $table ],
        [ 'COPY', "COPY made (n) FROM '$rows'", $table ],
        [ 'VALUES', "INSERT INTO made VALUES $values", $table ],
        [ 'a call for many', "CREATE TABLE made AS SELECT id FROM $family(20000) AS id", '' ],
        [ 'a call for many in the select list', "CREATE TABLE made AS SELECT $family(20000) AS id", '' ],
        [ 'ADD COLUMN', "ALTER TABLE made ADD COLUMN id bigint DEFAULT $family()",
            'CREATE TABLE made AS SELECT n FROM generate_series(1, 20000) AS n;' ],
        [ 'a loop of a block', "DO 'BEGIN FOR n IN 1 .. 20000 LOOP INSERT INTO made VALUES (n); END LOOP; END'", $table ])
    {
        my ($name, $load, $before) = @$case;
        my %down;
        for my $setting ('on', 'off') {
            query("DROP TABLE IF EXISTS made; $before $load", $setting eq 'on' ? options() : '');
            all_distinct($node, 'SELECT id FROM made', 20_000, "$family, $name, $setting");
            $down{$setting} = query("SELECT steps_down('made')");
        }
        # Within batches of up to 64, every second step goes down.
        cmp_ok($down{on}, '<', 300, '  on: in ascending runs');
        cmp_ok($down{off}, '>', 8000, '  off: in no order');
    }
}

query('DROP TABLE made; CREATE TABLE made (id bigint DEFAULT randflake_generate(), n integer)');
query(join ';', ('INSERT INTO made DEFAULT VALUES') x 1000);
cmp_ok(query("SELECT steps_down('made')"), '>', 350, 'statements of one row: in no order');

query(<<"SQL");
TRUNCATE made;
CREATE TABLE log (LIKE made INCLUDING DEFAULTS, own bigint);
CREATE FUNCTION log() RETURNS trigger LANGUAGE plpgsql AS
\$\$ BEGIN INSERT INTO log (n, own) VALUES (NEW.n, randflake53_generate()); RETURN NULL; END \$\$;
CREATE TRIGGER log AFTER INSERT ON made FOR EACH ROW EXECUTE FUNCTION log();
INSERT INTO made (n) SELECT generate_series(1, 20000);
COPY made (n) FROM '$rows';
SQL
all_distinct($node, 'SELECT id FROM made UNION ALL SELECT id FROM log UNION ALL SELECT own FROM log', 120_000,
    'triggers make identifiers too, of two families');
cmp_ok(query("SELECT steps_down('made')"), '<', 600, '  in ascending runs');

query(<<'SQL', options('-c parallel_setup_cost=0 -c parallel_tuple_cost=0 -c min_parallel_table_scan_size=0'));
DROP TABLE made, log;
CREATE TABLE numbers AS SELECT generate_series(1, 100000) AS n;
ANALYZE numbers;
CREATE TABLE made AS SELECT randflake_generate() AS id FROM numbers;
SQL
all_distinct($node, 'SELECT id FROM made', 100_000, 'parallel workers');

# A load of 260,000 rows has runs of 64 to 2,048, of 28,672, and of 229,376; doubled runs were 12.
query('CREATE TABLE many AS SELECT randflake_generate() AS id FROM generate_series(1, 260000)', options('-c work_mem=32MB'));
my $stretches = query("SELECT count(*) FROM (SELECT n, lag(id) OVER (ORDER BY n)::float8 - id > 2 ^ 60 AS down FROM (SELECT id, row_number() OVER (ORDER BY ctid) AS n FROM many) AS rows) AS s WHERE down AND n > 128");
cmp_ok($stretches, '<=', 9, "a load has few runs: $stretches");

# --- memory ------------------------------------------------------------------------------------
# The statement ends early in a run, so identifiers are left.
my $most = query('SELECT max(CASE WHEN n % 20000 = 0 THEN held() END), count(randflake_generate()) > 0,'
      . ' count(randflake53_generate()) > 0 FROM generate_series(1, 300000) AS n');
cmp_ok($most =~ s/\|.*//r, '<=', 1024 * 1024, "a run takes at most work_mem: $most");
cmp_ok($most =~ s/\|.*//r, '>', 900_000, '  and nearly all of it');
is(query("SELECT max(CASE WHEN n % 20000 = 0 THEN held() END) FROM generate_series(1, 60000) AS n,"
      . ' LATERAL (SELECT n + randflake_generate()) AS made', ''), '', 'off: no memory');

# --- what a statement leaves -------------------------------------------------------------------
# After each case, checks that no memory is left, and that the session's next identifiers do not all
# ascend, as those of a run would.
my $load = 'SELECT count(randflake_generate()) FROM generate_series(1, 1000)';
my %ends = ('a statement' => $load,
    'an error' => "DO \$\$ BEGIN PERFORM randflake_generate(1000); RAISE EXCEPTION ''; END \$\$",
    'a cancel' => "SET statement_timeout = '200ms'; $load, pg_sleep(10); SET statement_timeout = 0",
    'a cursor' => "BEGIN; DECLARE one CURSOR FOR SELECT randflake_generate(), repeat('x', 9) FROM generate_series(1, 100000);"
      . " DECLARE two CURSOR FOR SELECT randflake_generate() FROM generate_series(1, 100000);"
      . ' FETCH 1000 FROM one; FETCH 1000 FROM two; FETCH 1000 FROM one',
    'a utility' => "CREATE TEMPORARY TABLE t AS $load");
for my $name (sort keys %ends) {
    local $ENV{PGOPTIONS} = options();
    my ($status, $out) = $node->psql('postgres', join(";\n", $ends{$name}, "SELECT 'left', held()",
        ("SELECT 'next', randflake_generate()") x 30), on_error_stop => 0);
    like($out, qr/^left\|$/m, "after $name: no memory is left");
    my @next = $out =~ /^next\|(-?\d+)$/mg;
    is(scalar @next, 30, '  the session goes on');
    cmp_ok(scalar(grep { $next[$_] < $next[ $_ - 1 ] } 1 .. $#next), '>', 3, '  in no order');
}

# In one statement, a function generates in several situations. Each part of its result has a name.
query(<<'SQL');
CREATE FUNCTION make(name text, many integer, INOUT made text[]) LANGUAGE plpgsql AS $$
BEGIN
    FOR i IN 1 .. many LOOP
        made := made || format('%s %s', name, randflake_generate());
    END LOOP;
END $$;
CREATE FUNCTION parts() RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE
    made text[];
BEGIN
    made := make('sorted', 1000, made);
    BEGIN
        made := make('subtransaction', 100, made);
        RAISE EXCEPTION '';
    EXCEPTION WHEN raise_exception THEN
        made := made || format('held_after_error %s', coalesce(held(), 0));
    END;
    made := make('after_error', 60, made);
    made := make('sorted_again', 2500, made);    -- leaves more than 1,000 of a run
    PERFORM set_config('randflake.sort_loads', 'off', false);
    made := make('rest', 64, made);
    made := make('off', 500, made);
    RETURN QUERY SELECT unnest(made);
END $$;
SQL
my %part;
for (split /\n/, query('SELECT parts()')) {
    my ($name, $id) = split / /;
    push @{ $part{$name} }, $id;
}
my $down = sub { my @ids = @{ $part{ $_[0] } }; scalar grep { $ids[$_] < $ids[ $_ - 1 ] } 1 .. $#ids };
cmp_ok($down->('sorted'), '<', 150, 'in one statement: in ascending runs');
is($part{held_after_error}[0], 0, '  a caught error frees the run');
cmp_ok($down->('after_error'), '>', 5, '    and the statement starts again with short batches');
cmp_ok($down->('sorted_again'), '<', 150, '    and then with ascending runs');
cmp_ok($down->('off'), '>', 150, '  SET turns it off at once');
my @all = map { @{ $part{$_} } } qw(sorted after_error sorted_again rest off);
is(scalar(keys %{ { map { $_ => 1 } @all } }), scalar @all, '  none twice');

# --- other sessions ----------------------------------------------------------------------------
# Eight loads use up what long runs may take of the server's only node id. Sessions that never wait
# still get numbers.
configure($node, node_id => 1, secret => $secret, max_wait => '1h');
$node->restart;
# The window opens in the next second.
$node->sql('SELECT randflake_generate(); SELECT randflake_status_reset()');
my @loads = do {
    local $ENV{PGOPTIONS} = '-c randflake.sort_loads=on -c work_mem=32MB';
    map { start_session($node, 'SELECT count(randflake_generate()) FROM (SELECT generate_series(1, 100000000)) AS n') } 1 .. 8;
};
my $waits = "SELECT waits FROM randflake_status";
await($node, "SELECT ($waits) >= 8", 'no load waits');
my ($got, $began) = (0, time);
my $single = join ';', ('SELECT randflake_generate()') x 20;
while (time - $began < 3) {
    $got += () = query($single, '-c randflake.max_wait=0') =~ /^-?\d+$/mg;
}
cmp_ok($got, '>=', 20, "while 8 loads wait for numbers, single rows get theirs: $got");
cmp_ok($node->sql($waits), '>=', 16, '  the loads waited meanwhile');
query("SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE query LIKE '%100000000%' AND pid <> pg_backend_pid()");
like((finish_session($_))[1], qr/57014/, '  a load that waits can be cancelled') for @loads;

# --- crashes and cancels -----------------------------------------------------------------------
my $history = RandflakeHistory->new($secret);
configure($node, node_id => 1, node_count => 64, secret => $secret, max_wait => '1h');
$node->append_conf('postgresql.conf', "restart_after_crash = on\n");
$node->restart;
$node->sql('DROP TABLE IF EXISTS numbers; CREATE TABLE numbers AS SELECT generate_series(1, 5000) AS n');
my @kinds = qw(stream stream copy rollback);
my %ways = (cancel => sub {
        $node->sql("SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE application_name = 'client'");
        end_clients($node, @_);
    },
    crash => sub { crash_backend($node, (client_backends($node))[0]); finish_clients(@_) },
    'crash of the server' => sub { crash_server($node); finish_clients(@_) });
my $rounds = $ENV{RANDFLAKE_ROUNDS} // 1;
for my $round (1 .. $rounds) {
    for my $way (sort keys %ways) {
        local $ENV{PGOPTIONS} = '-c randflake.sort_loads=on';
        my @clients = $history->start_clients($node, @kinds);
        wait_until_received(@clients);
        $history->add_era($ways{$way}->(@clients));
    }
}
$history->no_duplicates('cancels and crashes in runs');
$node->stop;

# --- time --------------------------------------------------------------------------------------
# A statement makes a run, pauses while the clock or the secret changes, and goes on.
configure($node, node_id => 1, secret => $secret, max_wait => '1h', max_clock_skew => 0);
start_under_clock($node);
$node->sql(<<'SQL');
CREATE FUNCTION pauses(many integer, more integer) RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE
    made text[];
BEGIN
    made := make('before', many, made);
    PERFORM pg_advisory_xact_lock(1);
    RETURN QUERY SELECT unnest(make('after', more, made));
END $$;
SQL
# Runs the function, and `meanwhile` when it waits for the lock. Returns the identifiers.
sub paused($many, $more, $meanwhile) {
    my $holder = $node->background_psql('postgres');
    $holder->query_safe('BEGIN; SELECT pg_advisory_xact_lock(1)');
    my $session = do {
        local $ENV{PGOPTIONS} = options();
        start_session($node, "SELECT pauses($many, $more)");
    };
    $node->poll_query_until('postgres',
        "SELECT count(*) = 1 FROM pg_stat_activity WHERE wait_event = 'advisory'") or die 'no pause';
    $meanwhile->();
    sleep 0.1;
    $holder->quit;
    my ($out, $error) = finish_session($session);
    is($error, '', 'a statement pauses and goes on');
    my @ids = $out =~ /^\w+ (-?\d+)$/mg;
    die 'it made ' . @ids if @ids != $many + $more;
    return @ids;
}

my $ahead = 0;
for my $case ([ 50, 1 ], [ 70, 0 ], [ -3, 0 ]) {
    my ($seconds, $same) = @$case;
    my ($before, $after) = (paused(2000, 1, sub { clock_offset($node, $ahead += $seconds) }))[ -2, -1 ];
    my $apart = $node->sql(
        "SELECT extract(epoch FROM randflake_generated_at($after) - randflake_generated_at($before))::integer");
    is($apart < 5 && $after > $before ? 1 : 0, $same,
        "  $seconds s later: " . ($same ? 'the run goes on' : 'a new run') . " ($apart s)");
}

# The server gets a second secret while a statement has a run, which outlasts the first secret.
$node->stop;
write_secrets($node, $secret);
configure($node, node_id => 1, secret_file => secret_path($node), max_wait => '1h', max_clock_skew => 0);
start_under_clock($node);
my $from = int(time) + $ahead + 40;
my $ids = join ',', paused(3000, 9000, sub {
        is(reload_secrets($node, $secret, $from => random_secret()), 2, 'a second secret is added');
        clock_offset($node, $ahead + 45);
    });
is( $node->sql(<<"SQL"), '12000|12000|t|t', '  all decode, to numbers before and after it');
SELECT count(*), count(DISTINCT (generated_at, node_id, sequence)) FILTER (WHERE abs(second - $from) < 300),
       count(*) FILTER (WHERE second < $from) > 3000, count(*) FILTER (WHERE second >= $from) > 3000
FROM unnest('{$ids}'::bigint[]) AS id, randflake_decode(id), extract(epoch FROM generated_at) AS second
SQL
$node->stop;
done_testing();
