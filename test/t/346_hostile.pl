# Calls every function of the extensions with absurd arguments, in unusual places of statements, and
# in sessions that the test cancels or that time out. Checks that the server survives, that its
# memory does not grow, and that no output contains the secret. RANDFLAKE_ROUNDS sets how many calls
# of a function the test picks.
use Randflake;

my $calls = $ENV{RANDFLAKE_ROUNDS} // 3;
my $secret = random_secret();
my $node = start_server('main', extensions => [qw(randflake_type randflake_coordinator)],
    settings => { node_id => 1, node_count => 64, secret => $secret, max_wait => '1s' },
    conf => "log_error_verbosity = verbose\nmax_prepared_transactions = 10\n");
my $postmaster = postmaster_of($node);
my $everything = '';    # all output to any role

$node->sql(<<'SQL' . hostile_schema());
CREATE ROLE ordinary LOGIN;
CREATE ROLE granted LOGIN IN ROLE pg_monitor;
GRANT CREATE ON DATABASE postgres TO ordinary, granted;
GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA public TO granted;
GRANT SELECT ON ALL TABLES IN SCHEMA public TO granted;
SQL
my @users = qw(ordinary granted);
my @functions = split /\n/, $node->sql('SELECT oid::regprocedure FROM hostile.functions ORDER BY 1');
cmp_ok(scalar @functions, '>', 20, scalar @functions . ' functions');

# Runs statements as a user. Returns the output with the errors. An error does not end the session.
sub seen_by($user, $sql, $database = undef) {
    my ($status, $out, $err) = $node->psql($database // 'postgres', $sql, on_error_stop => 0,
        timeout => $PostgreSQL::Test::Utils::timeout_default,
        extra_params => [ '-U', $user, '-v', 'VERBOSITY=verbose' ]);
    is($status, 0, "$user keeps the connection") or diag(substr "$sql\n$err", 0, 3000);
    $everything .= "$out\n$err\n";
    return ($out, $err);
}

# --- arguments and places ------------------------------------------------------------------------
for my $user (@users) {
    my ($out, $err) = seen_by($user, "SELECT * FROM hostile.call_all($calls)");
    note("$user: SQLSTATE and number of calls\n$out");
    unlike($out, qr/^XX/m, "$user: no internal error");
    like($out, qr/^ok\|/m, "$user: some calls succeed");
    like($out, qr/^42501\|/m, "$user: some are denied");    # the coordinator's internal functions
    ($out, $err) = seen_by($user, "SELECT * FROM hostile.define_all($calls)");
    note("$user: what may be made of functions\n$out");
    unlike($out, qr/^\w+\|XX/m, "$user: definitions that use functions");
    ($out, $err) = seen_by($user, "SELECT * FROM hostile.messages WHERE length(message) > 1000");
    is($out, '', "$user: no message is long");
    seen_by($user, 'SELECT * FROM hostile.messages; DROP TABLE hostile.messages');
}

my ($none, $refusal) = seen_by('ordinary', q{SELECT randflake_from_text(repeat('0', 1 << 28))});
like($refusal, qr/ERROR:\s+22P02: .{1,200}$/m, 'a text of 256 MB is refused in few words');

# No role can pass an argument of the type "internal". The errors depend on PostgreSQL's version.
my @internal = map { my $function = $_; map { "SELECT $function($_)" } '', 'NULL', "''", 'NULL::internal', "'1'::internal", "'1'::cstring", '0', '1::oid' }
  split /\n/, $node->sql(q{SELECT proname FROM hostile.functions WHERE pronargs = 1 AND proargtypes[0] = 'internal'::regtype});
for my $user (@users, 'postgres') {
    my ($out, $err) = seen_by($user, join ";\n", @internal);
    is(() = $err =~ /ERROR: +(?:42883|42846|0A000|42501):/g, scalar @internal, "$user: functions that PostgreSQL calls") or diag($err);
}
my ($out, $err) = seen_by('ordinary', join ";\n", map {
    my $count = $_;
    map { "EXPLAIN SELECT * FROM $_($count)" } 'randflake_generate', 'randflake_shard_ranges'
} '-2147483648', '2147483647', 'NULL', '(SELECT 1)', 'random()::integer', "(NULL::text)::integer");
unlike($err, qr/ERROR/, 'row estimates');

$node->sql(q{CREATE DATABASE bytes ENCODING SQL_ASCII TEMPLATE template0 LOCALE 'C'});
$node->safe_psql('bytes', 'CREATE EXTENSION randflake');
($out, $err) = seen_by('ordinary', <<'SQL', 'bytes');
SET client_encoding = SQL_ASCII;
SELECT randflake_from_text(E'\xe2\x82');
SELECT randflake_from_text(E'\xff');
SELECT randflake_from_text(E'0\xf0');
SELECT randflake_from_text(repeat(E'\xf0', 10000));
SQL
is(() = $err =~ /ERROR:\s+22P02/g, 4, 'bytes that are no characters are refused');

# --- settings ------------------------------------------------------------------------------------
my $may_set = $node->sql(
    q{SELECT string_agg(name, ' ' ORDER BY name) FROM pg_settings WHERE name ~ '^randflake\.' AND context = 'user'});
for my $user (@users) {
    ($out, $err) = seen_by($user, 'SELECT * FROM hostile.set_all()');
    is($out, $may_set, "$user: may set $may_set alone");
    ($out, $err) = seen_by($user, q{SET randflake.anything = 1; SET randflake = 1; ALTER SYSTEM SET randflake.max_wait = 0});
    is(() = $err =~ /ERROR/g, 3, "$user: nor invent or save settings");
    for my $wait ('0', '1', '2147483647ms') {
        ($out, $err) = seen_by($user, "SET randflake.max_wait = '$wait'; SELECT count(*) FROM randflake_generate(1000)");
        like($out . $err, qr/^1000$|ERROR:\s+(?:53400|55000)/, "$user: max_wait = $wait");
    }
}

# --- cursors and subtransactions -----------------------------------------------------------------
for my $user (@users) {
    ($out, $err) = seen_by($user, statements_of_a_session());
    unlike($err, qr/ERROR:\s+(?:XX|57P)/, "$user: cursors, subtransactions, prepared statements");
    is(() = $out =~ /^done$/mg, 1, "  all of them");
}

# --- cancellation and timeouts -------------------------------------------------------------------
my $endless = 'SET statement_timeout = 300; SET randflake.max_wait = 2147483647';
for my $sql ('SELECT count(*) FROM randflake_generate(2147483647)',
    'SELECT count(*) FROM (SELECT randflake_generate(2147483647)) AS ids',
    'SELECT count(*) FROM randflake_shard_ranges(2147483647)',
    'SELECT count(*) FROM (SELECT randflake_shard_ranges(2147483647)) AS ranges',
    'SELECT count(randflake_generate()) FROM (SELECT generate_series(1, 2000000000)) AS n',
    'DO $$ BEGIN LOOP BEGIN PERFORM randflake_generate(); EXCEPTION WHEN raise_exception THEN END; END LOOP; END $$') {
    ($out, $err) = seen_by('ordinary', "$endless; $sql");
    like($err, qr/ERROR:\s+57014/, "times out: $sql");
}

my @sessions = map {
    start_session($node, '\set ON_ERROR_STOP 0', 'SET ROLE ' . $users[ $_ % 2 ],
        "SET statement_timeout = '" . (0, 700)[ $_ / 2 ] . "'", 'SET randflake.max_wait = 500',
        ("SELECT * FROM hostile.call_all(2)", 'SELECT count(*) FROM randflake_generate(400000)') x 3)
} 0 .. 3;
my $cancelled = 0;
while (grep { $_->{handle}->pumpable } @sessions) {
    $_->{handle}->pump_nb for grep { $_->{handle}->pumpable } @sessions;
    $cancelled += $node->sql(<<'SQL');
SELECT count(pg_cancel_backend(pid)) FROM pg_stat_activity
WHERE pid <> pg_backend_pid() AND state = 'active' AND query ~ 'hostile|randflake' AND random() < 0.1
SQL
}
for my $session (@sessions) {
    ($out, $err) = finish_session($session);
    unlike($err, qr/ERROR:\s+(?:XX|57P)/, 'a session among others, cancelled and timed out');
    $everything .= "$out\n$err\n";
}
note("$cancelled cancels");
cmp_ok($cancelled, '>', 0, 'some were cancelled');

# --- memory --------------------------------------------------------------------------------------
($out, $err) = seen_by('postgres', memory_of_loops());
note("bytes left in memory contexts and in the process; calls, function, call\n$out$err");
my @grown = grep { /^(-?\d+)\|(-?\d+)\|/ && ($1 > 100_000 || $2 > 1 << 17) } split /\n/, $out;
is_deeply(\@grown, [], 'memory stays flat');
my %measured = map { (split /\|/)[3] => 1 } split /\n/, $out;
my ($triggers) = $node->sql(q{SELECT count(*) FROM hostile.functions WHERE prorettype = 'trigger'::regtype});
is(keys(%measured) + $triggers, scalar @functions, '  for every function');

# --- afterwards ----------------------------------------------------------------------------------
is(postmaster_of($node), $postmaster, 'the server has stayed up');
all_distinct($node, 'SELECT randflake_generate() FROM generate_series(1, 10000)', 10000, '  and makes identifiers');
$node->stop;
my $log = slurp_file($node->logfile);
is(join("\n", $log =~ /.*(?:terminated by signal|PANIC|TRAP|Sanitizer|reinitializing).*/g), '',
    '  no process has crashed');
no_secret_in($everything, $secret, 'no role saw the secret');
no_secret_in($log, $secret, '  nor has the log');
done_testing();

# --- the SQL of the hostile user, who finds all functions in the catalog --------------------------
sub hostile_schema {
    return <<'SQL';
CREATE SCHEMA hostile;
GRANT ALL ON SCHEMA hostile TO PUBLIC;

CREATE VIEW hostile.functions AS
SELECT p.* FROM pg_depend d JOIN pg_proc p ON p.oid = d.objid
WHERE d.refclassid = 'pg_extension'::regclass AND d.classid = 'pg_proc'::regclass
  AND d.refobjid IN (SELECT oid FROM pg_extension WHERE extname LIKE 'randflake%')
  AND p.proname <> 'randflake_lease_broken';    -- does nothing but raise an internal error
GRANT SELECT ON hostile.functions TO PUBLIC;

CREATE FUNCTION hostile.values_of(type regtype) RETURNS text[] LANGUAGE sql AS $$
SELECT array_agg(value || '::' || type) FROM unnest(ARRAY['NULL'] || CASE type::text
    WHEN 'bigint' THEN ARRAY['0', '1', '(-1)', '9223372036854775807', '(-9223372036854775808)']
    WHEN 'integer' THEN ARRAY['0', '1', '(-1)', '2147483647', '(-2147483648)', '131071', '131072']
    WHEN 'boolean' THEN ARRAY['true', 'false']
    WHEN 'uuid' THEN ARRAY['''00000000-0000-0000-0000-000000000000''', 'gen_random_uuid()']
    WHEN 'interval' THEN ARRAY['''0''', '''-1 microsecond''', '''178000000 years''', '''-178000000 years''']
    WHEN 'timestamp with time zone' THEN ARRAY['''infinity''', '''-infinity''', 'now()',
        '''4714-11-24 00:00:00+00 BC''', '''294276-12-31 23:59:59.999999+00''',
        '''2024-10-27 03:33:19.999999+00''', '''2058-11-05 17:10:23.999999+00''']
    ELSE ARRAY['''''', '''0''', '''0123456789abcdef''', 'repeat(''v'', 13)', 'repeat(''0'', 1000000)',
        'chr(1114111)', 'repeat(chr(8364), 10000)', 'E''\x01\x7f''', '''%s%n%100000d''',
        '''"; SELECT 1; --''', '''{1,NULL,"''', '''(,)''', '''[1,2)''']
    END) AS value
$$;

-- Calls of a function: every combination of values, or this many that were picked at random.
-- Many rows are asked for only where they are not computed all.
CREATE FUNCTION hostile.calls(oid, wanted integer, huge boolean, argument text DEFAULT '%s') RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE
    f CONSTANT hostile.functions := (SELECT v FROM hostile.functions v WHERE v.oid = $1);
    lists text[] := ARRAY[''];
    type oid;
BEGIN
    FOREACH type IN ARRAY f.proargtypes::oid[] LOOP
        lists := ARRAY(SELECT list || ', ' || format(argument, value) FROM unnest(lists) AS list,
                              unnest(hostile.values_of(type)) AS value
                       WHERE huge OR NOT f.proretset OR value !~ '^(2147483647|13107.)'
                       ORDER BY random() LIMIT wanted);
    END LOOP;
    RETURN QUERY SELECT f.oid::regproc || '(' || substr(list, 3) || ')' FROM unnest(lists) AS list;
END $$;

-- Runs a statement; its SQLSTATE, or ok. Messages are kept.
CREATE FUNCTION hostile.try(statement text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    message text; detail text; hint text;
BEGIN
    EXECUTE statement;
    RETURN 'ok';
EXCEPTION WHEN OTHERS THEN
    GET STACKED DIAGNOSTICS message = MESSAGE_TEXT, detail = PG_EXCEPTION_DETAIL, hint = PG_EXCEPTION_HINT;
    INSERT INTO messages SELECT left(message || detail || hint, 2000) ON CONFLICT DO NOTHING;
    RETURN SQLSTATE;
END $$;

CREATE FUNCTION hostile.remember() RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    CREATE TEMP TABLE IF NOT EXISTS messages (message text PRIMARY KEY);
    CREATE TEMP TABLE IF NOT EXISTS scratch (id bigint, value text);
    DELETE FROM scratch;
    INSERT INTO scratch VALUES (1, '1'), (2, '2');
END $$;

-- Every function at every place; how often it ended how.
CREATE FUNCTION hostile.call_all(wanted integer) RETURNS TABLE (sqlstate text, count bigint) LANGUAGE plpgsql AS $$
BEGIN
    PERFORM hostile.remember();
    RETURN QUERY
    SELECT hostile.try(replace(place, '@', call)), count(*)
    FROM hostile.functions f,
         (VALUES (true, 'SELECT @ LIMIT 3'), (true, 'SELECT @, @ FROM generate_series(1, 2) LIMIT 3'),
                 (false, 'SELECT * FROM @ AS f LIMIT 3'),
                 (false, 'SELECT * FROM ROWS FROM (@, @) WITH ORDINALITY AS f'),
                 (false, 'SELECT * FROM generate_series(1, 2) AS g, LATERAL @ AS f'),
                 (false, 'SELECT CASE WHEN random() < 2 THEN @ END'), (false, 'SELECT coalesce(@::text, '''')'),
                 (false, 'SELECT * FROM scratch WHERE @ IS NOT NULL'), (false, 'SELECT 1 LIMIT @'),
                 (false, 'SELECT id FROM scratch ORDER BY @, id'), (false, 'SELECT count(*) FROM scratch GROUP BY @'),
                 (false, 'SELECT max((@)::text) FILTER (WHERE id > 1) FROM scratch'),
                 (false, 'SELECT @ OVER () FROM scratch'), (false, 'CALL @'), (false, 'VALUES (@), (@)'),
                 (false, 'SELECT (SELECT @), EXISTS (SELECT @), ARRAY(SELECT @), ROW(@) = ROW(@)'),
                 (false, 'WITH RECURSIVE r AS (SELECT 1 AS n, (@)::text AS v UNION ALL SELECT n + 1, (@)::text FROM r WHERE n < 3) SELECT * FROM r'),
                 (false, 'UPDATE scratch SET value = (@)::text RETURNING (@)::text'),
                 (false, 'DO $do$ BEGIN PERFORM @; PERFORM * FROM @ AS f; RAISE raise_exception; EXCEPTION WHEN raise_exception THEN PERFORM @; END $do$')
         ) AS v (huge, place),
         LATERAL hostile.calls(f.oid, wanted, v.huge) AS call
    GROUP BY 1 ORDER BY 1;
END $$;

-- Every function as part of every kind of object that takes one, and the object in use; which
-- kinds were refused, and with which SQLSTATE.
CREATE FUNCTION hostile.define_all(wanted integer) RETURNS TABLE (kind text, sqlstate text, count bigint) LANGUAGE plpgsql AS $$
BEGIN
    PERFORM hostile.remember();
    RETURN QUERY
    SELECT split_part(statement, ' ', 2),
           hostile.try(replace(replace(replace(statement, '#call', call), '#name', f.oid::regproc::text),
                               '#arguments', coalesce((SELECT string_agg(t::regtype::text, ', ') FROM unnest(f.proargtypes) AS t), ''))),
           count(*)
    FROM hostile.functions f,
         LATERAL hostile.calls(f.oid, wanted, false) AS call,
         unnest(ARRAY[
             'CREATE TRIGGER t BEFORE INSERT ON scratch FOR EACH ROW EXECUTE FUNCTION #name(); INSERT INTO scratch VALUES (3)',
             'CREATE EVENT TRIGGER t ON ddl_command_start EXECUTE FUNCTION #name()',
             'CREATE TEMP TABLE made (id bigint, g text GENERATED ALWAYS AS ((#call)::text) STORED); INSERT INTO made VALUES (1); DROP TABLE made',
             'CREATE TEMP TABLE made (id bigint, g text DEFAULT (#call)::text); INSERT INTO made VALUES (1); DROP TABLE made',
             'CREATE TEMP TABLE made (id bigint, CHECK ((#call) IS NOT NULL)); INSERT INTO made VALUES (1); DROP TABLE made',
             'CREATE TEMP TABLE made AS SELECT #call AS c; DROP TABLE made',
             'CREATE INDEX made ON scratch (((#call)::text)); DROP INDEX made',
             'CREATE TEMP TABLE made (id bigint) PARTITION BY RANGE (((#call)::text)); DROP TABLE made',
             'CREATE TEMP VIEW made AS SELECT *, #call AS c FROM scratch; TABLE made; DROP VIEW made',
             'CREATE RULE made AS ON INSERT TO scratch DO ALSO SELECT #call; INSERT INTO scratch VALUES (4); DROP RULE made ON scratch',
             'CREATE POLICY made ON scratch USING ((#call) IS NULL); DROP POLICY made ON scratch',
             'CREATE DOMAIN hostile.made AS text CHECK ((#call) IS NOT NULL); SELECT ''x''::hostile.made; DROP DOMAIN hostile.made',
             'CREATE AGGREGATE hostile.made (#arguments) (SFUNC = #name, STYPE = bigint); DROP AGGREGATE hostile.made (#arguments)',
             'CREATE AGGREGATE hostile.made (bigint) (SFUNC = int8pl, STYPE = bigint, INITCOND = 0, FINALFUNC = #name); SELECT hostile.made(id) FROM scratch; DROP AGGREGATE hostile.made (bigint)',
             'CREATE OPERATOR hostile.@#@ (LEFTARG = bigint, RIGHTARG = integer, FUNCTION = #name); SELECT 1::bigint OPERATOR(hostile.@#@) 0; DROP OPERATOR hostile.@#@ (bigint, integer)',
             'CREATE OPERATOR hostile.@#@ (RIGHTARG = bigint, FUNCTION = #name); SELECT OPERATOR(hostile.@#@) id FROM scratch; DROP OPERATOR hostile.@#@ (none, bigint)',
             'CREATE CAST (bigint AS text) WITH FUNCTION #name(#arguments)',
             'CREATE TYPE hostile.made AS RANGE (SUBTYPE = bigint, SUBTYPE_DIFF = #name)',
             'CREATE CONVERSION hostile.made FOR ''UTF8'' TO ''LATIN1'' FROM #name',
             'CREATE FUNCTION hostile.made() RETURNS void LANGUAGE plpgsql SUPPORT #name AS ''BEGIN END''',
             'CREATE OR REPLACE FUNCTION #name(#arguments) RETURNS text LANGUAGE sql AS ''SELECT 1''',
             'CREATE FUNCTION hostile.made(#arguments) RETURNS bigint LANGUAGE c AS ''$libdir/randflake'', ''#name''']) AS statement
    GROUP BY 1, 2 ORDER BY 1, 2;
END $$;

-- Sets every setting to impossible and to extreme values; which ones took any.
CREATE FUNCTION hostile.set_all() RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    taken text;
BEGIN
    PERFORM hostile.remember();
    SELECT string_agg(DISTINCT name, ' ' ORDER BY name) INTO taken
    FROM pg_settings,
         unnest(ARRAY['', '-1', '0', '1', '2147483647', '2147483648', '-2147483648', '9e99', 'NaN', 'on', '0x7fffffff',
                      '24d', '25d', '1 s', E'\n', repeat('x', 1000000), '%s%n', '''; SELECT 1']) AS value,
         unnest(ARRAY['SELECT set_config(%1$L, %2$L, true)', 'SET %1$s = %2$L', 'ALTER ROLE CURRENT_USER SET %1$s = %2$L',
                      'CREATE FUNCTION hostile.made() RETURNS integer LANGUAGE sql SET %1$s = %2$L AS ''SELECT 1''; SELECT hostile.made(); DROP FUNCTION hostile.made()'
                     ]) AS statement
    WHERE name ~ '^randflake\.' AND hostile.try(format(statement, name, value)) = 'ok';
    ALTER ROLE CURRENT_USER RESET ALL;
    RETURN taken;
END $$;
SQL
}

# Returns SQL with cursors, subtransactions, prepared statements and two-phase commit.
sub statements_of_a_session {
    my $sql = "SET statement_timeout = '60s';\n";
    my @calls = ('randflake_generate()', 'randflake_generate(2147483647)', 'randflake_generate_text()',
        'randflake_shard_ranges(2147483647)', 'randflake_decode(-1)', 'randflake_slots()', 'randflake_status()',
        'randflake_from_text(repeat(chr(8364), 1000000))');
    for my $call (@calls) {
        $sql .= <<"SQL";
BEGIN;
DECLARE early CURSOR FOR SELECT $call;
FETCH 5 FROM early; CLOSE early;
ROLLBACK;
BEGIN;
DECLARE backwards SCROLL CURSOR FOR SELECT $call LIMIT 100;
FETCH 5 FROM backwards; FETCH BACKWARD 3 FROM backwards; FETCH ABSOLUTE -1 FROM backwards;
SAVEPOINT a;
DECLARE inner_one CURSOR FOR SELECT $call, $call;
FETCH 2 FROM inner_one;
ROLLBACK TO a;
FETCH 2 FROM backwards;
SAVEPOINT b; SELECT $call LIMIT 1; RELEASE b;
COMMIT;
BEGIN;
DECLARE held CURSOR WITH HOLD FOR SELECT $call LIMIT 100;
COMMIT;
FETCH 3 FROM held; CLOSE held;
BEGIN;
DECLARE left_open CURSOR FOR SELECT $call;
FETCH 1 FROM left_open;
COMMIT;
PREPARE statement AS SELECT $call LIMIT 3;
EXECUTE statement; EXECUTE statement;
BEGIN; EXECUTE statement; PREPARE TRANSACTION 'hostile'; ROLLBACK PREPARED 'hostile';
DEALLOCATE statement;
SQL
    }
    for my $mode ('force_generic_plan', 'force_custom_plan') {
        $sql .= <<"SQL";
SET plan_cache_mode = $mode;
PREPARE many(integer) AS SELECT * FROM randflake_generate(\$1) LIMIT 2;
PREPARE ranges(integer) AS SELECT * FROM randflake_shard_ranges(\$1) LIMIT 2;
PREPARE parse(text) AS SELECT randflake_from_text(\$1);
EXECUTE many(NULL); EXECUTE many(-1); EXECUTE many(0); EXECUTE many(70000);
EXECUTE ranges(NULL); EXECUTE ranges(-1); EXECUTE ranges(0); EXECUTE ranges(70000);
EXECUTE parse(NULL); EXECUTE parse(''); EXECUTE parse('1'); EXECUTE parse(repeat('0', 1000000));
DEALLOCATE ALL;
SQL
    }
    return $sql . "SELECT 'done';\n";
}

# Returns SQL that a superuser must run. After a warm-up, it calls each function in a loop of 5000
# calls, in which a leak of one allocation exceeds the limits. It reports the growth of memory
# contexts and of the process in bytes. Arguments depend on the loop's counter, so that PostgreSQL
# computes no call in advance. The SQL makes only 50 calls of a function in a language other than C,
# because there the language manages the memory. PostgreSQL may rebuild its caches during a loop, so
# the SQL repeats a loop that grew, at most twice: a leak grows in each.
sub memory_of_loops {
    return <<'SQL';
SET client_min_messages = error;
SET randflake.max_wait = '1min';
SET plan_cache_mode = force_generic_plan;
SELECT FROM hostile.remember();
CREATE FUNCTION hostile.repeat(call text, times integer, fails boolean) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    EXECUTE format('DO $do$ BEGIN FOR i IN 1..%s LOOP %s; END LOOP; END $do$', times,
        format(CASE WHEN fails THEN 'BEGIN PERFORM %s; EXCEPTION WHEN OTHERS THEN END' ELSE 'PERFORM %s' END, call));
EXCEPTION WHEN OTHERS THEN
    IF fails THEN RAISE; END IF;
    PERFORM hostile.repeat(call, times, true);  -- other calls have changed the state, so it fails now
END $$;
CREATE FUNCTION hostile.process_bytes() RETURNS bigint LANGUAGE sql AS $$
    SELECT (split_part(statm, ' ', 2)::bigint - split_part(statm, ' ', 3)::bigint) * 4096
    FROM pg_read_file('/proc/self/statm') AS statm
$$;
CREATE FUNCTION hostile.context_bytes() RETURNS bigint LANGUAGE sql AS $$
    SELECT sum(used_bytes)::bigint FROM pg_backend_memory_contexts
$$;
CREATE TABLE hostile.measured (contexts bigint, process bigint, calls integer, function text, call text);
CREATE PROCEDURE hostile.measure() LANGUAGE plpgsql AS $$
DECLARE
    f record;
    contexts bigint;
    process bigint;
    times integer;
BEGIN
    FOR f IN SELECT DISTINCT ON (v.oid, c.result <> 'ok')
                    v.oid, l.lanname, c.call, c.result <> 'ok' AS fails
             FROM hostile.functions v JOIN pg_language l ON l.oid = prolang
                      -- PostgreSQL 15.20 keeps 4 kB of each refused call of a trigger function.
                      AND v.prorettype <> 'trigger'::regtype,
                  LATERAL (SELECT call, hostile.try(format('SELECT %s FROM generate_series(1, 1) AS i', call)) AS result
                           FROM hostile.calls(v.oid, 200, false, 'CASE WHEN i > 0 THEN %s END') AS call WHERE call !~ 'repeat|13107') AS c
             ORDER BY 1, 4, c.call ~ 'NULL' LOOP
        times := CASE WHEN f.lanname <> 'c' THEN 50 ELSE 5000 END;
        PERFORM hostile.repeat(f.call, times / 10, f.fails);
        FOR attempt IN 1 .. 3 LOOP
            COMMIT;
            contexts := hostile.context_bytes();
            process := hostile.process_bytes();
            PERFORM hostile.repeat(f.call, times, f.fails);
            COMMIT;
            contexts := hostile.context_bytes() - contexts;
            process := hostile.process_bytes() - process;
            EXIT WHEN contexts < 100000 AND process < 1 << 17;
        END LOOP;
        INSERT INTO hostile.measured VALUES (contexts, process, times, f.oid::regprocedure, f.call);
    END LOOP;
END $$;
CALL hostile.measure();
SELECT contexts, process, calls, function, regexp_replace(call, 'CASE.*?THEN (.*?) END', '\1', 'g') FROM hostile.measured ORDER BY function, calls;
SQL
}
