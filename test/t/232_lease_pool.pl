# Checks a coordinator's grants: the bounds on fragmentation under the worst histories, the answers
# after any history, and how many rows a grant reads. Then the test changes one rule at a time, and
# a check must find each change. RANDFLAKE_ROUNDS sets the number of histories. With
# more than one, the pool in which a test counts reads is the largest.
use Randflake;

my $rounds = $ENV{RANDFLAKE_ROUNDS} // 1;
my $node = PostgreSQL::Test::Cluster->new('coordinator');
$node->init;
$node->append_conf('postgresql.conf', "log_statement = none\nlog_min_messages = error\nautovacuum = off\nfsync = off\n");
$node->start;
$node->sql(<<'SQL');
CREATE EXTENSION randflake_coordinator;
CREATE TABLE clock (now bigint NOT NULL);
INSERT INTO clock VALUES (1750000000);
CREATE OR REPLACE FUNCTION randflake_lease_clock(own randflake_lease_internal) RETURNS bigint LANGUAGE sql VOLATILE
AS $$ SELECT now FROM public.clock $$;
CREATE TABLE own_nodes (nodes int4range NOT NULL);
INSERT INTO own_nodes VALUES ('empty');
CREATE OR REPLACE FUNCTION randflake_lease_static_nodes(own randflake_lease_internal) RETURNS int4range LANGUAGE sql STABLE
AS $$ SELECT nodes FROM public.own_nodes $$;
SELECT setval('randflake_lease_takeover', 1740000000::bigint << 31 | randflake_lease_identity_hash(NULL, randflake_lease_identity(NULL)), false);
CREATE OR REPLACE FUNCTION randflake_lease_started(own randflake_lease_internal) RETURNS bigint LANGUAGE sql STABLE AS 'SELECT 0::bigint';

-- Holds leases that were deleted from the table. No grant of their node ids may begin earlier.
CREATE TABLE gone (nodes int4range, span int8range, former boolean DEFAULT false);
CREATE INDEX ON gone USING gist (nodes);
CREATE FUNCTION remember() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN INSERT INTO public.gone VALUES (OLD.nodes, OLD.span); RETURN NULL; END $$;
CREATE TRIGGER remember AFTER DELETE ON randflake_lease FOR EACH ROW EXECUTE FUNCTION remember();

-- Makes a pool without leases.
CREATE FUNCTION fresh(first integer, count integer) RETURNS void LANGUAGE sql AS $$
    DELETE FROM randflake_lease;
    DELETE FROM gone;
    SELECT randflake_lease_configure(first, count, 86400, 0);
    DELETE FROM randflake_lease_hold;
    UPDATE randflake_lease_pool SET high_water = 0;
$$;
-- Returns a lease, or null if the coordinator refuses.
CREATE FUNCTION ask(nodes integer) RETURNS bigint LANGUAGE plpgsql AS $$
BEGIN
    RETURN lease_id FROM randflake_lease_acquire('x', '00000000-0000-0000-0000-000000000000', nodes, 86400, '0123456789abcdef');
EXCEPTION WHEN configuration_limit_exceeded THEN
    RETURN NULL;
END $$;
-- Takes this number of leases, each in its own transaction.
CREATE PROCEDURE ask_often(nodes integer, times integer) LANGUAGE plpgsql AS $$
BEGIN
    FOR i IN 1 .. times LOOP
        PERFORM ask(nodes);
        COMMIT;
    END LOOP;
END $$;
-- Ends these leases now, and moves the clock a second ahead.
CREATE FUNCTION give_back(leases bigint[]) RETURNS void LANGUAGE sql AS $$
    SELECT randflake_lease_release(id, '00000000-0000-0000-0000-000000000000', NULL) FROM unnest(leases) AS id;
    UPDATE clock SET now = now + 1;
$$;
CREATE FUNCTION in_use() RETURNS integer LANGUAGE sql AS $$
    SELECT coalesce(sum(upper(nodes) - lower(nodes)), 0)::integer FROM randflake_lease WHERE upper(span) > (SELECT now FROM clock)
$$;

-- Plays an adversary that never has more node ids than `most`. For each class, it leases all that
-- it may, and then keeps one lease in the middle of each chunk. Returns the number of refusals.
CREATE PROCEDURE worst(classes integer[], most integer, INOUT refused integer DEFAULT 0) LANGUAGE plpgsql AS $$
DECLARE
    class integer;
    mine bigint[];
BEGIN
    FOREACH class IN ARRAY classes LOOP
        mine := '{}';
        FOR i IN 1 .. (most - in_use()) / class LOOP
            mine := mine || ask(class);
            COMMIT;
        END LOOP;
        refused := refused + cardinality(array_positions(mine, NULL));
        PERFORM give_back(ARRAY(SELECT lease_id FROM (SELECT lease_id, row_number() OVER (PARTITION BY lower(nodes) / 64 ORDER BY abs(lower(nodes) % 64 - 31)) AS n
                                                      FROM randflake_lease WHERE lease_id = ANY (mine)) AS l WHERE n > 1));
        COMMIT;
    END LOOP;
END $$;

-- Plays a random history: requests of these sizes up to a share of the pool, clocks that step,
-- leases that are renewed after their end, and transactions that roll back. Returns what is wrong.
CREATE FUNCTION history(seed float8, sizes integer[], steps integer) RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE
    pool int4range := (SELECT nodes FROM randflake_lease_pool);
    own int4range := (SELECT nodes FROM own_nodes);
    size integer; id bigint; granted int4range; gap integer; dice float8; second bigint;
BEGIN
    PERFORM setseed(seed);
    FOR step IN 1 .. steps LOOP
        dice := random();
        second := (SELECT now FROM clock);
        IF dice < 0.6 THEN
            size := sizes[1 + floor(random() * cardinality(sizes))];
            SELECT max(upper(r) - lower(r)) INTO gap FROM unnest(int4multirange(pool) - int4multirange(own)
                - coalesce((SELECT range_agg(nodes) FROM randflake_lease WHERE upper(span) > second), '{}')) AS r;
            UPDATE gone SET former = true WHERE NOT former;
            BEGIN
                id := ask(size);
                SELECT nodes INTO granted FROM randflake_lease WHERE lease_id = id;
                IF id IS NULL AND gap >= size OR id IS NOT NULL AND gap < size THEN
                    RETURN NEXT format('step %s: %s of %s node ids, %s', step, size, gap, coalesce(granted::text, 'refused'));
                ELSIF NOT granted <@ pool OR granted && own OR upper(granted) - lower(granted) <> size THEN
                    RETURN NEXT format('step %s: %s is no %s', step, granted, size);
                ELSIF EXISTS (SELECT FROM gone WHERE nodes && granted AND upper(span) > second OR NOT nodes <@ granted AND NOT former)
                    OR EXISTS (SELECT FROM randflake_lease WHERE nodes <@ granted AND lease_id <> id) THEN
                    RETURN NEXT format('step %s: what %s had before', step, granted);
                END IF;
                IF dice < 0.05 THEN
                    RAISE SQLSTATE 'RBACK';
                END IF;
            EXCEPTION WHEN SQLSTATE 'RBACK' THEN NULL;
            END;
        ELSIF dice < 0.9 THEN
            PERFORM give_back(ARRAY(SELECT lease_id FROM randflake_lease WHERE released_at IS NULL ORDER BY random() LIMIT 1 + floor(random() * 3)));
        ELSIF dice < 0.94 THEN -- that it has ended is not so, says its holder
            BEGIN
                PERFORM randflake_lease_renew(lease_id, incarnation, second + 1, 100, '0123456789abcdef')
                FROM (SELECT * FROM randflake_lease WHERE released_at IS NULL AND upper(span) <= second LIMIT 1) AS l;
            EXCEPTION WHEN object_not_in_prerequisite_state THEN NULL;
            END;
        ELSIF dice < 0.96 THEN
            UPDATE randflake_lease SET span = int8range(lower(span), second + 1) WHERE lease_id % 3 = 0 AND upper(span) > second + 1 AND lower(span) <= second;
        ELSIF dice < 0.97 THEN
            UPDATE clock SET now = now + CASE WHEN random() < 0.5 THEN -3 ELSE 30 END;
        ELSIF dice < 0.985 THEN -- chunks are hints
            UPDATE randflake_lease_chunk SET free = ~free WHERE class > 0 AND random() < 0.3;
        ELSIF dice < 0.988 THEN
            PERFORM randflake_lease_purge('0');
            DELETE FROM randflake_lease_hold;
            UPDATE randflake_lease_pool SET high_water = 0;
            DELETE FROM gone;
        ELSE
            UPDATE clock SET now = now + 1;
        END IF;
    END LOOP;
END $$;

-- Plays a holder beside others: it takes short leases, renews some after their end, and rolls back
-- a third of its transactions.
CREATE PROCEDURE bustle(seed float8) LANGUAGE plpgsql AS $$
DECLARE
    mine record;
BEGIN
    PERFORM setseed(seed);
    FOR step IN 1 .. 150 LOOP
        BEGIN
            IF random() < 0.6 THEN
                PERFORM randflake_lease_acquire('x', md5('')::uuid, (ARRAY[1, 1, 2, 4, 16])[1 + step % 5], 1 + step % 4, '0123456789abcdef');
            ELSE
                SELECT *, now INTO mine FROM randflake_lease, clock WHERE role = SESSION_USER AND released_at IS NULL ORDER BY random() LIMIT 1;
                IF random() < 0.3 THEN
                    PERFORM randflake_lease_release(mine.lease_id, mine.incarnation, NULL);
                ELSE
                    PERFORM randflake_lease_renew(mine.lease_id, mine.incarnation, mine.now + 1, 3, '0123456789abcdef');
                END IF;
            END IF;
        EXCEPTION WHEN object_not_in_prerequisite_state OR configuration_limit_exceeded OR null_value_not_allowed THEN NULL;
            WHEN lock_not_available THEN IF SQLERRM !~ '^lease' THEN RAISE; END IF;
        END;
        PERFORM pg_sleep(0.01 * random() * (step % 3));
        IF random() < 0.3 THEN ROLLBACK; ELSE COMMIT; END IF;
    END LOOP;
END $$;
CREATE PROCEDURE change_pool() LANGUAGE plpgsql AS $$
BEGIN
    FOR step IN 1 .. 20 LOOP
        PERFORM randflake_lease_purge('3 s') WHERE step % 4 = 0;
        PERFORM randflake_lease_configure() WHERE step % 7 = 0;
        UPDATE clock SET now = now + 1;
        COMMIT;
        PERFORM pg_sleep(0.03);
    END LOOP;
END $$;
SELECT format('CREATE ROLE holder%s LOGIN SUPERUSER', i) FROM generate_series(0, 4) AS i \gexec
SQL
my $session = $node->background_psql('postgres', on_error_stop => 0);
$session->set_query_timer_restart;

sub told {
    my $answer = $session->query($_[0]);
    my $error = $session->{stderr};
    $session->{stderr} = '';
    return $answer . ($error =~ /^.*?(ERROR: .*)$/m ? $1 : '');
}
told(q{SELECT randflake_lease_configure(secrets => '0123456789abcdef')});

# --- the bounds ----------------------------------------------------------------------------------
# With c classes, 16 chunks suffice while fewer than (16 - c + 1) * 64 / c node ids are in use.
my %classes = (up => '1,2,4,8,16,32,64', down => '64,32,16,8,4,2,1', two => '1,1,1,64', again => '1,64,1,64,2,64,2,64,4,64,4,64,8,64');
my %most = (up => 91, down => 91, two => 479, again => 153);
sub bounds {
    my @wrong;
    for my $name (@_) {
        told('SELECT fresh(0, 1024)');
        my $refused = told("CALL worst('{$classes{$name}}', $most{$name})");
        push @wrong, "classes $name: $refused" if $refused ne 0;
    }
    return join '; ', @wrong;
}
is(bounds(sort keys %classes), '', 'while no more is in use than the bound, the worst histories are refused nothing');

# Short leases fill a chunk. Then transactions that collect them roll back, in all ways, before
# another grant takes one node id. If the rollback hid the ended leases, each round would open
# another chunk.
sub rolled_back($move) {
    told('SELECT fresh(0, 1024)');
    for (1 .. 4) {
        told("CALL ask_often(1, 64)");
        told('SELECT give_back(ARRAY(SELECT lease_id FROM randflake_lease WHERE upper(span) > (SELECT now FROM clock) AND lower(nodes) % 64 <> 31))');
        told($move);
    }
    told('CALL ask_often(1, 1)');
    return told('SELECT count(*) FROM randflake_lease_chunk WHERE class > 0');
}
my %moves = (none => 'SELECT', transaction => 'BEGIN; SELECT ask(64), ask(64); ROLLBACK', savepoint => 'BEGIN; SAVEPOINT s; SELECT ask(64); ROLLBACK TO s; SELECT ask(64); ROLLBACK',
    cancel => q{SET statement_timeout = '300ms'; SELECT ask(64), pg_sleep(60); RESET statement_timeout},
    'a part' => 'BEGIN; SAVEPOINT s; SELECT ask(64), ask(64), ask(64); ROLLBACK TO s; COMMIT');
my $opens = rolled_back($moves{none});
cmp_ok(rolled_back($moves{$_}), '<=', $opens, "rolled back, $_: no chunk more than without ($opens)") for grep { $_ ne 'none' } sort keys %moves;

# A grant opens a chunk only if all chunks of its class are full. A chunk without leases is empty.
sub opened {
    told('SELECT fresh(0, 1024)');
    told("CALL ask_often($_, 1 + 64 / $_)") for 1, 4, 16;
    my $classes = q{SELECT string_agg(class || ': ' || count, ', ' ORDER BY class) FROM (SELECT class, count(*) FROM randflake_lease_chunk GROUP BY 1) AS c};
    my $opened = told($classes);
    told('SELECT give_back(array_agg(lease_id)) FROM randflake_lease');
    told('CALL ask_often(64, 3)');
    return $opened . ' and ' . told($classes);
}
my $opened = '0: 10, 1: 2, 4: 2, 16: 2 and 0: 13, 64: 3';
is(opened(), $opened, 'a chunk is opened where all of its class are full, and empty when its leases have ended');

# Leases all node ids one by one. Gives back all but one in each chunk, and all in the last chunk.
told('SELECT fresh(0, 1024)');
told('CALL ask_often(1, 1024)');
told('SELECT give_back(ARRAY(SELECT lease_id FROM randflake_lease WHERE lower(nodes) % 64 <> 13 OR lower(nodes) = 973))');
is(told('SELECT count(*) FROM randflake_lease WHERE upper(span) > (SELECT now FROM clock)'), 15, 'one lease less than chunks');
is(told('SELECT ask(64) IS NOT NULL'), 't', '  and 64 node ids are granted');
is(told('SELECT ask(64) IS NULL'), 't', '  but not with one more');

told('SELECT fresh(0, 8192)');
told('CALL ask_often(1, 512)');
is(told('SELECT count(ask(nodes)) FROM unnest(ARRAY[16, 32, 64, 1000, 3000]) AS nodes'), 5, 'requests of any size find their place');

# --- reads ---------------------------------------------------------------------------------------
my $pool = $rounds > 1 ? 131072 : 32768;
my %rows = (few => 'SELECT i, 1 FROM generate_series(0, 99) AS i',
    'side by side' => "SELECT i, 1 FROM generate_series(0, $pool / 64 * 15) AS i",
    spread => "SELECT i * 4, 1 FROM generate_series(0, $pool / 64 * 15) AS i",
    mixed => "SELECT i * 64, (ARRAY[1, 3, 5, 16, 33, 64])[1 + i % 6] FROM generate_series(0, $pool / 69) AS i",
    'nearly everywhere' => "SELECT i, 1 FROM generate_series(0, $pool / 64 * 61) AS i");
sub fill($where, $ends) {
    told("SELECT fresh(0, $pool)");
    told(<<"SQL");
INSERT INTO randflake_lease (holder, incarnation, secrets, nodes, span)
SELECT 'x', lpad('', 32, '0')::uuid, '0123456789abcdef', int4range(first, first + count), int8range(now - 5000, now + $ends)
FROM clock, ($where) AS place (first, count)
SQL
    told('SELECT randflake_lease_configure()');
}
# Runs ten grants. Returns the largest number of leases that one grant read, and the largest number
# of chunks. Avoids lease ids that are multiples of 64, whose grants examine 64 more node ids.
sub reads {
    told(q{SELECT setval('randflake_lease_lease_id_seq', (nextval('randflake_lease_lease_id_seq') / 64 + 1) * 64)});
    my @most = (0, 0);
    for (1 .. 10) {
        my @read = split /\|/, told(<<'SQL');
SELECT pg_stat_force_next_flush() \g /dev/null
BEGIN;
SELECT ask(1) IS NULL AS refused \gset
SELECT string_agg((seq_tup_read + idx_tup_fetch)::text, '|' ORDER BY relname) FROM pg_stat_xact_user_tables WHERE relname ~ '^randflake_lease(_chunk)?$';
COMMIT;
SQL
        $read[$_] > $most[$_] and $most[$_] = $read[$_] for 0, 1;
    }
    return "$most[0] and $most[1]";
}
for my $name (sort { length $a <=> length $b } keys %rows) {
    fill($rows{$name}, 5000);
    like(reads(), qr/^[0-2] and [1-3]$/, "leases lie $name: a grant reads at most 5 leases and chunks");
}

# Leases lie nearly everywhere. The chunk table's hints contradict them, but a grant must not read
# every chunk.
told(q{UPDATE randflake_lease_chunk SET class = 0, free = B'1' WHERE size = 64});
like(reads(), qr/^\d+ and [1-4]?\d$/, 'where each chunk claims to be free: a grant tries a bounded number');

# Each grant collects two ended leases, frees their node ids, and replaces one of the leases.
fill($rows{'side by side'}, 5000);
told('UPDATE randflake_lease SET span = int8range(lower(span), (SELECT now - 1 FROM clock)) WHERE lease_id % 100 = 0');
told(q{UPDATE randflake_lease_chunk SET class = 1, free = repeat('0', 64)::varbit});
like(reads(), qr/^([4-9]|1[0-2]) and [4-7]$/, 'where leases have ended: some more');

# --- any history ---------------------------------------------------------------------------------
told('SELECT fresh(0, 64)');
told('VACUUM randflake_lease, gone, randflake_lease_chunk'); # a history would read the dead rows in each step
my @histories = (
    # An entry has the pool's first node id and size, the server's own node ids, and request sizes.
    [ 0, 1024, 'empty', '1,4,16,64' ], [ 37, 1200, 'empty', '1,2,3,5,17,64' ], [ 0, 2048, '[100,300)', '1,4,16,64,100' ],
    [ 0, 64, 'empty', '1,2,5' ], [ 5, 7, '[6,8)', '1,2,3' ], [ 1000, 1500, '[990,1010)', '1,1,1,64,200' ]);
sub history($number, $seed) {
    my ($first, $count, $own, $sizes) = @{ $histories[$number] };
    told("SELECT fresh($first, $count)");
    told("UPDATE own_nodes SET nodes = '$own'");    # by a restart with other settings
    my $wrong = told("SELECT history($seed, '{$sizes}', 400) LIMIT 3");
    told(q{UPDATE own_nodes SET nodes = 'empty'});
    return $wrong;
}
for my $number (0 .. $#histories) {
    is(join("\n", grep { $_ } map { history($number, $_ / 100) } 1 .. $rounds), '',
        "history $number: what is refused is not there, and what is granted is free");
}

# Sessions lease node ids of the same chunks, while others purge leases, change the pool and roll
# back. No session may wait for another session's open transaction, get another session's node id,
# or lose its own node ids.
sub beside {
    told('SELECT fresh(0, 1024)');
    my $open = $node->background_psql('postgres', extra_params => [ '-U', 'holder0' ]);
    $open->query_safe('BEGIN; SELECT ask(n) FROM unnest(ARRAY[1, 4, 16]) AS n');
    my $wrong = told(q{SET lock_timeout = '10s'; SELECT count(ask(n)) FROM unnest(ARRAY[1, 4, 16]) AS n; RESET lock_timeout}) =~ s/^3$//r;
    $open->query_safe('ROLLBACK');
    $open->quit;
    my @sessions = (start_session($node, 'CALL change_pool()'),
        map { start_session($node, "SET SESSION AUTHORIZATION holder$_", "CALL bustle(0.$_)") } 1 .. 4);
    $wrong .= join '', map { (finish_session($_))[1] } @sessions;
    $wrong .= told(<<'SQL');
WITH ever AS (SELECT nodes, span, row_number() OVER () AS n FROM (SELECT nodes, span FROM randflake_lease UNION ALL SELECT nodes, span FROM gone) AS l)
SELECT DISTINCT 'twice: ' || a.nodes * b.nodes FROM ever AS a JOIN ever AS b ON a.nodes && b.nodes AND a.span && b.span AND a.n < b.n
SQL
    told('UPDATE clock SET now = now + 90000');
    told('CALL ask_often(1, 1024)');
    return $wrong . told(q{SELECT 'lost' WHERE (SELECT range_agg(nodes) FROM randflake_lease) <> '{[0,1024)}'});
}
is(beside(), '', 'sessions that grant in the same chunks');

sub whole {
    told(q{UPDATE own_nodes SET nodes = '[100,110)'});
    told('SELECT fresh(37, 1200)');
    my $error = told('CALL ask_often(1, 1210)');
    told(q{UPDATE own_nodes SET nodes = 'empty'});
    return $error . told('SELECT range_agg(nodes) FROM randflake_lease');
}
is(whole(), '{[37,100),[110,1237)}', 'every node id of the pool is granted, and no other');
is(told('SELECT bool_and(randflake_lease_class(NULL, i) = least(64, 2 ^ ceil(log(2, i)))) FROM generate_series(1, 1000) AS i'),
    't', 'classes');

# --- changed rules -------------------------------------------------------------------------------
my @changes = (
    # An entry has a function, a piece of its code, a replacement, a check, and the correct result.
    [ 'find_cell', 'c.class = cell AND', 'c.class > 99 AND', \&opened, $opened ],
    [ 'find', 'candidate.size <= upper(r)', 'candidate.size < upper(r)',
        sub { told('SELECT fresh(0, 64)'); told('SELECT ask(64)') eq '' ? 'refused' : '' } ],
    [ 'take', 'chosen AND upper(l.span) <= now FOR UPDATE', 'chosen FOR UPDATE', sub { map { history(0, $_ / 100) } 1 .. 3 } ],
    [ 'take', 'chosen && public.randflake_lease_static_nodes(own)', 'false', sub { history(2, 0.01) } ],
    [ 'take', 'DELETE FROM public.randflake_lease l WHERE l.ctid = ANY (places);', '', sub { history(0, 0.01) } ],
    [ 'take', 'WHERE l.nodes && chosen AND l.nodes <@ chosen AND', 'WHERE l.nodes && chosen AND', sub { history(0, 0.01) } ],
    [ 'take', 'l.ctid <> ALL (places || wider)', 'false', \&beside ],
    [ 'find_cell', 'LIMIT 1 FOR UPDATE SKIP LOCKED', 'LIMIT 1', \&beside ],
    [ 'scan', '(l.span && int8range(now, NULL) OR', '(true OR', \&opened, $opened ],
    [ 'scan', 'IF chunk.size = 64 AND', 'IF false AND', \&opened, $opened ],
    [ 'collect', 'node_ids > most', 'true', \&opened, $opened ],
    [ 'chunks', 'upper(pool) - 1), size)', 'upper(pool) - 2), size)', \&whole, '{[37,100),[110,1237)}' ]);
for my $change (@changes) {
    my ($function, $piece, $replacement, $found, $right) = @$change;
    my $definition = $session->query("SELECT pg_get_functiondef('randflake_lease_$function'::regproc)");
    my $pattern = join '\s+', map { quotemeta } split / /, $piece; # a piece may go over lines
    my $changed = $definition =~ s/$pattern/$replacement/r;
    die "randflake_lease_$function has not: $piece" if $changed eq $definition or told("$changed;");
    my $told = join '', $found->();
    isnt($told, $right // '', "found: $function: $piece -> $replacement");
    note($told);
    told("$definition;");
}

$session->quit;
$node->stop;
done_testing();
