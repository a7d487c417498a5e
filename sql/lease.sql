-- The coordinator: leases of node ids. Its clock is a table here, so nothing depends on the real
-- one; times are shown in seconds since 1750000000.
\a
\t
SET timezone = 'UTC';
SET datestyle = ISO;
SET intervalstyle = postgres;
CREATE TABLE coordinator_clock (now bigint NOT NULL);
INSERT INTO coordinator_clock VALUES (1750000000);
GRANT SELECT ON coordinator_clock TO PUBLIC;
CREATE OR REPLACE FUNCTION randflake_lease_clock(own randflake_lease_internal) RETURNS bigint LANGUAGE sql VOLATILE
AS $$ SELECT now FROM public.coordinator_clock $$;

-- When the extension was made, by that clock: long enough ago that a predecessor's leases have ended
SELECT setval('randflake_lease_takeover',
              1749990000::bigint << 31 | randflake_lease_identity_hash(NULL, randflake_lease_identity(NULL)), false)
       >> 31 AS made;

CREATE FUNCTION clock_shows(second bigint) RETURNS void LANGUAGE sql
AS $$ UPDATE coordinator_clock SET now = 1750000000 + second $$;

-- One holder's incarnation: the same digit all over
CREATE FUNCTION run(digit integer) RETURNS uuid LANGUAGE sql IMMUTABLE
AS $$ SELECT repeat(digit::text, 32)::uuid $$;

CREATE FUNCTION acquire(digit integer, nodes integer DEFAULT 1, duration integer DEFAULT 60,
                        OUT lease_id bigint, OUT first_node_id integer, OUT node_count integer,
                        OUT starts bigint, OUT ends bigint) LANGUAGE sql
AS $$
    SELECT lease_id, first_node_id, node_count, lease_start - 1750000000, lease_end - 1750000000
    FROM randflake_lease_acquire('holder ' || digit, run(digit), nodes, duration, '0123456789abcdef')
$$;
-- The secrets that a lease's holder named last
CREATE FUNCTION named_last(lease bigint) RETURNS text LANGUAGE sql SECURITY DEFINER
AS $$ SELECT coalesce((SELECT secrets FROM randflake_lease WHERE lease_id = lease), '0123456789abcdef') $$;
CREATE FUNCTION renew(lease_id bigint, digit integer, expected_end bigint,
                      duration integer DEFAULT 60) RETURNS bigint LANGUAGE sql
AS $$
    SELECT lease_end - 1750000000
    FROM randflake_lease_renew(lease_id, run(digit), 1750000000 + expected_end, duration, named_last(lease_id))
$$;
CREATE FUNCTION release(lease_id bigint, digit integer, last_used bigint) RETURNS void LANGUAGE sql
AS $$ SELECT randflake_lease_release(lease_id, run(digit), 1750000000 + last_used) $$;

-- The error of a statement, with times masked
CREATE FUNCTION error_of(statement text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    message text; detail text; hint text;
BEGIN
    EXECUTE statement;
    RETURN 'no error';
EXCEPTION WHEN OTHERS THEN
    GET STACKED DIAGNOSTICS message = MESSAGE_TEXT, detail = PG_EXCEPTION_DETAIL, hint = PG_EXCEPTION_HINT;
    RETURN regexp_replace(concat_ws(' | ', SQLSTATE, message, nullif(detail, ''), nullif(hint, '')),
                          '\d{4}-\d\d-\d\d \d\d:\d\d:\d\d[-+:0-9]*', '<time>', 'g');
END $$;

CREATE VIEW leases AS
SELECT lease_id, nodes, lower(span) - 1750000000 AS starts, upper(span) - 1750000000 AS ends,
       renewed_at IS NOT NULL AS renewed, released_at IS NOT NULL AS released
FROM randflake_lease;

-- Three holders, then the one row that the first lease made. Of many node ids, each takes one from another place.
SELECT * FROM acquire(1);
BEGIN;
SELECT * FROM acquire(2, 4);
SELECT * FROM acquire(3, 33);
SELECT * FROM acquire(4, 5);
ROLLBACK;
SELECT setval('randflake_lease_lease_id_seq', 1);
SELECT randflake_lease_configure(0, 16);
SELECT * FROM acquire(2, 4);
SELECT * FROM acquire(3, 1, 10);
SELECT nodes, max_duration, max_clock_skew, high_water, secrets,
       starts_with(coordinator, randflake_coordinator_identity(NULL) || '/') AS this_one
FROM randflake_lease_pool;
SELECT holder, first_node_id, node_count, starts_at, ends_at, state,
       granted_at IS NOT NULL AS granted, renewed_at, released_at
FROM randflake_leases ORDER BY lease_id;

-- Nonsense
SELECT error_of(format('SELECT randflake_lease_acquire(%s)', arguments))
FROM unnest(ARRAY[
    $$NULL, run(1), 1, 60, '0123456789abcdef'$$,
    $$'x', NULL, 1, 60, '0123456789abcdef'$$,
    $$'x', run(1), NULL, 60, '0123456789abcdef'$$,
    $$'x', run(1), 1, NULL, '0123456789abcdef'$$,
    $$'x', run(1), 1, 60, NULL$$,
    $$'x', run(1), 0, 60, '0123456789abcdef'$$,
    $$'x', run(1), -1, 60, '0123456789abcdef'$$,
    $$'x', run(1), 131073, 60, '0123456789abcdef'$$,
    $$'x', run(1), 1, 0, '0123456789abcdef'$$,
    $$'x', run(1), 1, -2147483648, '0123456789abcdef'$$,
    $$'x', run(1), 1, 60, '0123456789ABCDEF'$$,
    $$'x', run(1), 1, 60, '0123456789abcde'$$,
    $$'x', run(1), 1, 60, ''$$]) AS arguments;
SELECT error_of('SELECT renew(1, 1, 59, 0)');

-- Another secret
SELECT error_of($$SELECT randflake_lease_acquire('x', run(4), 1, 60, 'fedcba9876543210')$$);

-- Null gives null, and does nothing
SELECT renew(NULL, 1, 59), renew(1, NULL, 59), renew(1, 1, NULL), renew(1, 1, 59, NULL),
       randflake_lease_purge(NULL);

-- Renewal: at most max_duration from now, never a step back, and the end that the holder knows
SELECT clock_shows(30);
SELECT renew(1, 1, 59);
SELECT renew(1, 1, 89, 10) AS shorter, renew(1, 1, 89, 2147483647) AS longer;
SELECT renew(1, 1, 59) AS missed_the_answer;
SELECT error_of('SELECT renew(1, 2, 89)') AS other_incarnation;
SELECT error_of('SELECT renew(99, 1, 89)') AS no_such_lease;
SELECT error_of('SELECT renew(3, 3, 9)') AS ended;
SELECT error_of('SELECT renew(1, 1, 29)') AS ended_as_far_as_the_holder_knows;
SELECT error_of('SELECT renew(1, 1, 152)') AS never_had_that_end;
SELECT error_of('SELECT renew(1, 1, 7223372036854775807)') AS far_off;
SELECT * FROM leases ORDER BY lease_id;

-- Node ids unused for longest: never used ones first, then by the end of their lease
SELECT randflake_lease_configure(0, 6);
SELECT * FROM acquire(5);
SELECT error_of('SELECT acquire(6)') AS one_too_many;
SELECT error_of('SELECT acquire(6, 6)') AS six_too_many;
SELECT error_of('SELECT acquire(6, 7)') AS more_than_there_are;
SELECT clock_shows(70);
SELECT * FROM acquire(7, 2);
SELECT * FROM acquire(8);
SELECT clock_shows(95);
SELECT * FROM acquire(9, 1, 10);
SELECT clock_shows(105);
SELECT first_node_id AS unused_for_longer_than_the_last FROM acquire(9);

-- A clock that steps back grants nothing again, and takes nothing away
SELECT clock_shows(-3600);
SELECT error_of('SELECT acquire(1)') AS all_are_later;
SELECT error_of('SELECT renew(8, 7, 129)') AS all_began_later;
SELECT randflake_lease_configure(node_count => 7);
SELECT clock_shows(-3597);
SELECT * FROM acquire(1);
SELECT clock_shows(105);
SELECT * FROM leases WHERE lease_id >= 4 ORDER BY lease_id;

-- Release: early, never before what was used; unused leaves a second; the first word counts
SELECT release(8, 7, 110);
SELECT * FROM leases WHERE lease_id = 8;
SELECT release(8, 7, 80);
SELECT release(8, 7, NULL);
SELECT * FROM leases WHERE lease_id = 8;
SELECT error_of('SELECT renew(8, 7, 110)') AS renewed_after_release;
SELECT release(9, 8, 9999999);
SELECT * FROM leases WHERE lease_id = 9;
SELECT release(11, 9, 104);
SELECT count(*) FROM leases WHERE lease_id = 11;
SELECT error_of('SELECT release(11, 9, 104)') AS released_before;
SELECT release(13, 1, NULL);
SELECT count(*) FROM leases WHERE lease_id = 13;
SELECT error_of('SELECT release(10, 1, 104)') AS other_incarnation;
SELECT error_of('SELECT release(NULL, 1, 104)') AS no_lease;
SELECT error_of('SELECT release(10, NULL, 104)') AS no_holder;
SELECT randflake_lease_configure(1, 2);
SELECT clock_shows(110);
SELECT error_of('SELECT acquire(1, 2)') AS still_used;
SELECT clock_shows(111);
SELECT * FROM acquire(1, 2);
SELECT randflake_lease_configure(0, 7);
SELECT lease_id, state FROM randflake_leases ORDER BY lease_id;

-- Purge forgets, and lets nothing start before what it forgot
SELECT clock_shows(300);
SELECT error_of($$SELECT randflake_lease_purge(interval '-1 second')$$);
SELECT randflake_lease_purge();
SELECT randflake_lease_purge(interval '170 seconds');
SELECT high_water - 1750000000 AS high_water FROM randflake_lease_pool;
SELECT * FROM leases ORDER BY lease_id;
SELECT randflake_lease_purge(interval '0');
SELECT high_water - 1750000000 AS high_water FROM randflake_lease_pool;
SELECT clock_shows(170);
SELECT error_of('SELECT acquire(1)') AS a_second_early;
SELECT clock_shows(171);
SELECT starts, ends FROM acquire(1, 1, 5);
SELECT clock_shows(-3600);
SELECT error_of('SELECT acquire(1)') AS before_the_mark;
-- a lease that began while the clock was ahead is renewed no more
SELECT error_of(format('SELECT renew(%s, 1, 175)', lease_id)) FROM leases ORDER BY lease_id LIMIT 1;
-- and goes when its node ids are leased again
SELECT clock_shows(100000);
SELECT starts, ends FROM acquire(1, 7, 5);
SELECT count(*) FROM leases;
SELECT high_water - 1750000000 AS high_water FROM randflake_lease_pool;

-- The pool: limits, and leases that are no longer in it
SELECT error_of(format('SELECT randflake_lease_configure(%s)', arguments))
FROM unnest(ARRAY['-1', '131072', '0, 0', '1, 131072', '10, -5', 'max_duration => 0',
                  'max_duration => 86401', 'max_clock_skew => -1', 'max_clock_skew => 3601'])
    AS arguments;
SELECT randflake_lease_configure(200, 100, 20, 5);
SELECT nodes, max_duration, max_clock_skew FROM randflake_lease_pool;
SELECT error_of(format('SELECT renew(%s, 1, 100004)', lease_id)) FROM leases;
SELECT error_of('SELECT acquire(1)') AS added_a_moment_ago;
SELECT clock_shows(100006);
SELECT first_node_id, ends - starts + 1 AS seconds FROM acquire(1);
SELECT randflake_lease_configure();
SELECT randflake_lease_configure(first_node_id => 250);
SELECT nodes, max_duration, max_clock_skew FROM randflake_lease_pool;
SELECT first_node_id, node_count FROM acquire(2, 50);
SELECT randflake_lease_configure(0, 131072, 60, 2, forget_key => true);
SELECT clock_shows(100012); -- by the former difference of clocks, too
SELECT first_node_id FROM randflake_lease_acquire('x', run(3), 1, 60, 'fedcba9876543210');
SELECT error_of('SELECT acquire(1)') AS now_the_former_secret;
SELECT first_node_id FROM randflake_lease_acquire('x', run(3), 131072 - 1100, 60, 'fedcba9876543210');
SELECT randflake_lease_configure(forget_key => true);

-- A lease's state is told by the real clock
SELECT count(*) FROM randflake_lease_purge(interval '0');
DELETE FROM randflake_lease;
INSERT INTO randflake_lease (holder, incarnation, secrets, nodes, span, released_at)
SELECT holder, run(1), '0123456789abcdef', int4range(1, 2), int8range(now + first, now + last), released_at
FROM (SELECT extract(epoch FROM clock_timestamp())::bigint) AS clock (now),
     (VALUES ('past', -7200, -3600, NULL), ('present', -3600, 3600, NULL),
             ('future', 3600, 7200, NULL), ('gone', -10800, -7200, clock_timestamp()))
         AS v (holder, first, last, released_at);
SELECT holder, state FROM randflake_leases ORDER BY starts_at;

-- Another coordinator granted last: what it granted may be missing here. The lease that this one
-- knows is renewed; new ones wait for the last possible end.
DELETE FROM randflake_lease;
UPDATE randflake_lease_pool SET high_water = 0;
SELECT clock_shows(200000);
SELECT lease_id AS known, starts, ends FROM acquire(1) \gset
SELECT lease_id AS short FROM acquire(2, 1, 3) \gset
UPDATE randflake_lease SET granted_at = to_timestamp(1750200000);
UPDATE randflake_lease_pool SET coordinator = 'another';
SELECT clock_shows(200001);
SELECT state, extract(epoch FROM grants_from)::bigint - 200001 - 1750000000 AS if_asked_now FROM randflake_pool;
SELECT error_of('SELECT acquire(3)') AS too_early;
-- the refused call was rolled back, but the hold-off counts from it on
SELECT coordinator FROM randflake_lease_pool;
SELECT clock_shows(200003);
SELECT error_of('SELECT acquire(3)') AS too_early;
SELECT error_of('SELECT renew(' || :short || ', 2, 200002)') AS ended_a_moment_ago;
SELECT renew(:known, 1, 200059) AS renewed;
SELECT state, extract(epoch FROM grants_from)::bigint - 200001 - 1750000000 AS grants_from FROM randflake_pool;
SELECT renew(:known, 1, 200064) AS renewed_before_by_the_other;
SELECT error_of('SELECT renew(' || :known || ', 1, 200065)') AS later_than_it_could_have_been;
SELECT clock_shows(200005);
-- longer leases than was known then
SELECT randflake_lease_configure(max_duration => 100, max_clock_skew => 12);
SELECT high_water - 200001 - 1750000000 AS high_water FROM randflake_lease_pool;
SELECT error_of('SELECT acquire(4)') AS later_now;
SELECT randflake_lease_configure(max_duration => 60, max_clock_skew => 2);
SELECT clock_shows(200001 + 124);
SELECT error_of('SELECT acquire(3)') AS a_second_early;
SELECT clock_shows(200001 + 125);
SELECT starts - 200001 AS starts, ends - 200001 AS ends FROM acquire(3);
SELECT clock_shows(200001 + 126);
SELECT starts - 200001 AS starts, ends - 200001 AS ends FROM acquire(4);

-- The end of a lease too near to be sure of, right after a takeover: another coordinator's clock may
-- have been past it
SELECT lease_id AS close, ends FROM acquire(5, 1, 10) \gset
SELECT clock_shows(200001 + 126 + 8);
UPDATE randflake_lease SET granted_at = to_timestamp(1750200000), renewed_at = NULL;
UPDATE randflake_lease_pool SET coordinator = 'yet another';
SELECT setval('randflake_lease_takeover', 0);
SELECT error_of(format('SELECT renew(%s, 5, %s)', :close, :ends)) AS in_doubt;
SELECT clock_shows(200001 + 126 + 7);
SELECT error_of(format('SELECT renew(%s, 5, %s)', :close, :ends)) AS beyond_doubt;

-- The other one's clock was ahead: its last grant tells
UPDATE randflake_lease SET renewed_at = to_timestamp(1750201000);
UPDATE randflake_lease_pool SET coordinator = 'ahead';
SELECT setval('randflake_lease_takeover', 0);
SELECT error_of('SELECT acquire(6)') AS far_ahead;
SELECT (last_value >> 31) - 1750000000 AS taken_over FROM randflake_lease_takeover;

-- Nothing was granted as far as this coordinator knows, but it is not where the extension was made:
-- the first lease may be missing here. A call that fails leaves it at that.
DELETE FROM randflake_lease;
DELETE FROM randflake_lease_pool;
SELECT setval('randflake_lease_takeover', 0);
SELECT error_of('SELECT acquire(6)') AS not_the_first;
SELECT error_of('SELECT acquire(6)') AS not_the_first;
-- Made here a moment ago: somebody may have leased before
CREATE FUNCTION made_here() RETURNS void LANGUAGE sql AS $$
    DELETE FROM randflake_lease;
    DELETE FROM randflake_lease_pool;
    SELECT setval('randflake_lease_lease_id_seq', last_value + is_called::integer, false)
    FROM randflake_lease_lease_id_seq;
    SELECT setval('randflake_lease_takeover', randflake_lease_clock(NULL) << 31
                  | randflake_lease_identity_hash(NULL, randflake_lease_identity(NULL)), false);
$$;
SELECT clock_shows(250000), made_here();
SELECT error_of('SELECT acquire(6)') AS somebody_may_have_leased;
SELECT state, grants_from, first_node_id, node_count, own_first_node_id, own_node_count, max_duration,
       max_clock_skew, secrets FROM randflake_pool;
SELECT clock_shows(250030);
SELECT randflake_lease_configure(max_duration => 60) AS all_are_leased;
SELECT randflake_lease_configure(first_node_id => 10) AS may_be_leased;
SELECT randflake_lease_configure(first_node_id => 10, never_leased => true) AS never_leased;
SELECT state FROM randflake_pool;
SELECT starts - 250000 AS starts, first_node_id FROM acquire(6);
SELECT error_of('SELECT randflake_lease_configure(never_leased => true)') AS but_it_did;
SELECT clock_shows(251000);
SELECT randflake_lease_purge(interval '0');
SELECT error_of('SELECT randflake_lease_configure(never_leased => true)') AS purged_but_it_did;
-- servers may have used node ids by their configuration until a moment ago
SELECT clock_shows(260000), made_here();
SELECT randflake_lease_configure(never_leased => true);
SELECT error_of('SELECT acquire(6)') AS used_by_configuration;
SELECT clock_shows(260003);
SELECT starts - 260000 AS starts FROM acquire(6);
-- and so it is with node ids that come into the pool
SELECT randflake_lease_configure(first_node_id => 100) AS free_at;
SELECT clock_shows(260100);
SELECT randflake_lease_configure(first_node_id => 50);
SELECT error_of('SELECT acquire(6)') AS added_a_moment_ago;
SELECT clock_shows(260103);
SELECT starts - 260000 AS starts, first_node_id FROM acquire(6);

-- Closed: nothing is granted or renewed, what is known ends, and may be given back
SELECT lease_id AS mine, ends FROM acquire(7) \gset
SELECT lease_id AS other FROM acquire(8) \gset
SELECT randflake_lease_configure(closed => true) AS free_at;
SELECT state FROM randflake_pool;
SELECT holder, in_pool FROM randflake_leases WHERE lease_id IN (:mine, :other) ORDER BY 1;
SELECT error_of('SELECT acquire(9)') AS grant;
SELECT error_of(format('SELECT renew(%s, 7, %s)', :mine, :ends)) AS renewal;
SELECT release(:other, 8, 260103);
SELECT randflake_lease_configure(closed => false) IS NOT NULL AS open_again;
SELECT state FROM randflake_pool;
SELECT renew(:mine, 7, :ends) - 260000 AS renewed;
SELECT error_of('SELECT acquire(9)') AS another_may_have_leased;
SELECT clock_shows(260103 + 65);
SELECT starts - 260000 AS starts FROM acquire(9);

-- The holder's name is for people, and not long
SELECT error_of($$SELECT randflake_lease_acquire(repeat('x', 257), run(1), 1, 60, '0123456789abcdef')$$);
SELECT lease_id IS NOT NULL AS granted
FROM randflake_lease_acquire(repeat('x', 256), run(1), 1, 60, '0123456789abcdef');

-- Nobody else writes a longer one either
SELECT split_part(error_of($$INSERT INTO randflake_lease (holder, incarnation, secrets, nodes, span)
VALUES (repeat('x', 257), run(1), '0123456789abcdef', '[9,10)', '[9,10)')$$), ' | ', 2) AS too_long;

-- The owner may say which secret the holders have, rather than the first of them
SELECT randflake_lease_configure(secrets => 'fedcba9876543210');
SELECT secrets FROM randflake_pool;
SELECT error_of('SELECT acquire(6)') AS other_secret;
SELECT error_of($$SELECT randflake_lease_configure(secrets => 'FEDCBA9876543210')$$);
SELECT error_of($$SELECT randflake_lease_configure(forget_key => true, secrets => 'fedcba9876543210')$$);
SELECT randflake_lease_configure(secrets => '0123456789abcdef');
SELECT lease_id IS NOT NULL AS granted FROM acquire(6);

-- Node ids of one role at a time
DELETE FROM randflake_lease;
SELECT randflake_lease_configure(max_nodes_per_role => 3);
SELECT max_nodes_per_role FROM randflake_pool;
SELECT lease_id AS mine FROM acquire(1, 2) \gset
SELECT replace(error_of('SELECT acquire(2, 2)'), SESSION_USER, '<role>') AS too_many;
SELECT node_count FROM acquire(2, 1, 10);
SELECT replace(error_of('SELECT acquire(3)'), SESSION_USER, '<role>') AS one_too_many;
SELECT release(:mine, 1, NULL);
SELECT replace(error_of('SELECT acquire(3, 2)'), SESSION_USER, '<role>') AS in_the_same_second;
SELECT clock_shows(260103 + 66);
SELECT node_count FROM acquire(3, 2);
SELECT clock_shows(260103 + 75);
SELECT node_count FROM acquire(2, 1, 10);
SELECT replace(error_of('SELECT acquire(3)'), SESSION_USER, '<role>') AS as_before;
SELECT error_of(format('SELECT randflake_lease_configure(max_nodes_per_role => %s)', most))
FROM unnest(ARRAY[0, -1, 131073]) AS most;
SELECT randflake_lease_configure(max_nodes_per_role => 131072);
SELECT node_count FROM acquire(3);
-- and grants to one role in a minute; those that were rolled back do not count
DELETE FROM randflake_lease_role;
SELECT randflake_lease_configure(max_grants_per_role => 2);
SELECT max_grants_per_role FROM randflake_pool;
SELECT node_count FROM acquire(3);
BEGIN;
SELECT node_count FROM acquire(3);
ROLLBACK;
SELECT node_count FROM acquire(3);
SELECT replace(error_of('SELECT acquire(3)'), SESSION_USER, '<role>') AS one_too_many;
SELECT error_of(format('SELECT randflake_lease_configure(max_grants_per_role => %s)', most))
FROM unnest(ARRAY[0, 60001]) AS most;
SELECT clock_shows(260103 + 137); -- the next minute
SELECT node_count FROM acquire(3);
SELECT randflake_lease_configure(max_grants_per_role => 60000);

-- Made here, and restored from a dump with what another one granted
SELECT clock_shows(270000);
UPDATE randflake_lease SET granted_at = to_timestamp(1750200000), renewed_at = NULL;
UPDATE randflake_lease_pool SET coordinator = 'dumped';
SELECT error_of('SELECT acquire(7)') AS dumped;
SELECT made_here();
DROP FUNCTION made_here();
SELECT randflake_lease_configure(never_leased => true);

-- The node ids of a renewal got another holder: the constraint has the last word
SELECT clock_shows(300000);
SELECT lease_id AS mine, first_node_id AS node FROM acquire(6, 1, 30) \gset
INSERT INTO randflake_lease (holder, incarnation, secrets, nodes, span)
VALUES ('rival', run(7), '0123456789abcdef', int4range(:node, :node + 1), int8range(1750300030, 1750300060));
SELECT error_of(format('SELECT renew(%s, 6, 300029)', :mine)) AS taken;
SELECT error_of(format($$INSERT INTO randflake_lease (holder, incarnation, secrets, nodes, span)
VALUES ('rival', run(7), '0123456789abcdef', int4range(%s, %s), int8range(1750300000, 1750300001))$$, :node, :node + 1))
    LIKE '23P01 |%' AS refused_by_the_constraint;

-- Secrets that follow each other: a holder gets no lease beyond the time of one that it does not name,
-- or that the pool does not know. $1 stands for the first secret, $2 and $3 for those that follow.
DELETE FROM randflake_lease;
UPDATE randflake_lease_pool SET high_water = 0;
SELECT clock_shows(400000);
SELECT randflake_lease_configure(0, 10, 60, 2, forget_key => true) IS NOT NULL AS configured;
SELECT clock_shows(400003);
CREATE FUNCTION secrets(text) RETURNS text LANGUAGE sql IMMUTABLE
AS $$
    SELECT string_agg(CASE WHEN entry ~ '@' THEN repeat(left(entry, 1), 16) || '@' || 1750000000 + substr(entry, 3)::bigint
                           ELSE repeat(entry, 16) END, ' ' ORDER BY place)
    FROM string_to_table($1, ' ') WITH ORDINALITY AS e (entry, place)
$$;
CREATE FUNCTION at(second bigint) RETURNS timestamptz LANGUAGE sql IMMUTABLE
AS $$ SELECT to_timestamp(1750000000 + second) $$;
CREATE FUNCTION take(digit integer, named text, duration integer DEFAULT 60, OUT lease_id bigint, OUT starts bigint, OUT ends bigint)
LANGUAGE sql
AS $$
    SELECT lease_id, lease_start - 1750000000, lease_end - 1750000000
    FROM randflake_lease_acquire('holder ' || digit, run(digit), 1, duration, secrets(named))
$$;
CREATE FUNCTION name_and_renew(lease_id bigint, digit integer, expected_end bigint, named text) RETURNS bigint LANGUAGE sql
AS $$ SELECT lease_end - 1750000000 FROM randflake_lease_renew(lease_id, run(digit), 1750000000 + expected_end, 60, secrets(named)) $$;
CREATE VIEW stops AS
SELECT holder, left(split_part(secrets, ' ', -1), 1) AS last, extract(epoch FROM stops_at) - 1750000000 AS stops, stops_at IS NULL AS agrees
FROM randflake_leases;

-- What names secrets
SELECT n, split_part(error_of(format('SELECT randflake_lease_acquire(''x'', run(1), 1, 60, %L)', named)), ' | ', 2) AS error,
       error_of(format('SELECT randflake_lease_renew(1, run(1), 1, 60, %L)', named)) LIKE '22023 |%' AS nor_in_a_renewal,
       error_of(format('SELECT randflake_lease_configure(secrets => %L)', named)) LIKE '22023 |%' AS nor_from_the_owner
FROM unnest(ARRAY[secrets('a b'), secrets('a@500 b@600'), secrets('a b@500 '), secrets('a b@500') || 'x', ' ' || secrets('a'),
                  secrets('a') || E'\n', repeat('a', 15) || ' ' || secrets('b@500'), secrets('a') || '  ' || secrets('b@500'),
                  secrets('a b@500 c@500'), secrets('a b@500 c@499'), secrets('a') || ' bbbbbbbbbbbbbbbb@175000050',
                  secrets('a') || ' bbbbbbbbbbbbbbbb@01750000500', secrets('a b@1 c@2 d@3 e@4 f@5 0@6 1@7 2@8 3@9 4@10 5@11 6@12 7@13 8@14 9@15 a@16'), secrets('a b@-20000000'),
                  secrets('a b@1053741824')]) WITH ORDINALITY AS malformed (named, n);
SELECT error_of($$SELECT randflake_lease_acquire('x', run(1), 1, 60, secrets('a b'))$$);
SELECT error_of($$SELECT randflake_lease_acquire('x', run(1), 1, 60, secrets('a c@2 b@1'))$$);
SELECT name_and_renew(NULL, 1, 1, 'a'), name_and_renew(1, 1, 1, NULL);

-- The first holder says what all must have, unless the owner did
SELECT error_of($$SELECT randflake_lease_add_secret(repeat('b', 16), at(500000))$$) AS none_yet;
SELECT ends FROM take(1, 'a b@401000');
SELECT secrets = secrets('a b@401000') AS taken_over FROM randflake_pool;
DELETE FROM randflake_lease;
SELECT randflake_lease_configure(secrets => secrets('a'));
SELECT secrets FROM randflake_pool;

-- A further one, by the owner, in one call
SELECT statement, error_of('SELECT randflake_lease_add_secret(' || statement || ')')
FROM unnest(ARRAY[
    $$'bbbb', at(401000)$$, $$repeat('B', 16), at(401000)$$, $$repeat('b', 16), at(401000) + interval '1 ms'$$,
    $$repeat('b', 16), 'infinity'$$, $$repeat('b', 16), '-infinity'$$, $$repeat('b', 16), '2059-01-01Z'$$,
    $$repeat('b', 16), '2024-01-01Z'$$, $$repeat('a', 16), at(401000)$$, $$repeat('b', 16), at(400067)$$]) AS statement;
SELECT randflake_lease_add_secret(NULL, at(401000)), randflake_lease_add_secret(repeat('b', 16), NULL);
SELECT lease_id AS old, ends FROM take(1, 'a') \gset
SELECT lease_id AS new FROM take(2, 'a') \gset
-- longest lease, twice the difference of clocks, and one
SELECT randflake_lease_add_secret(repeat('b', 16), at(400068));
SELECT secrets = secrets('a b@400068') AS added FROM randflake_pool;
SELECT randflake_lease_add_secret(repeat('b', 16), at(400068)) AS again;
SELECT secrets = secrets('a b@400068') AS once FROM randflake_pool;
SELECT error_of($$SELECT randflake_lease_add_secret(repeat('b', 16), at(400069))$$) AS another_time;
SELECT error_of($$SELECT randflake_lease_add_secret(repeat('c', 16), at(400068))$$) AS not_later;
SELECT * FROM stops ORDER BY holder;
-- Who does not name it stops there, and the others do not
SELECT clock_shows(400040);
SELECT renew(:old, 1, :ends) AS renewed_up_to_it;
SELECT name_and_renew(:new, 2, :ends, 'a b@400068') AS renewed_beyond_it;
SELECT error_of(format('SELECT renew(%s, 1, 400067)', :old)) AS no_further;
SELECT ends FROM take(3, 'a');
SELECT clock_shows(400067);
SELECT ends FROM take(4, 'a');
SELECT error_of($$SELECT take(5, 'a b@400067')$$) AS same_secret_another_time;
SELECT ends FROM take(5, 'a b@400068');
SELECT renew(:new, 2, 400099) AS those_named_last;
SELECT clock_shows(400068);
SELECT error_of($$SELECT take(6, 'a')$$) AS too_late;
SELECT error_of($$SELECT take(6, 'a c@400068')$$) AS another_one_instead;
SELECT error_of($$SELECT take(6, 'a b@400068 c@400068')$$) AS not_increasing;
SELECT ends FROM take(6, 'a b@400068 c@400100');
SELECT * FROM stops ORDER BY holder;
-- whoever comes with it then, goes on
SELECT error_of(format('SELECT name_and_renew(%s, 1, 400067, %L)', :old, 'a b@400068')) AS has_ended;
SELECT ends FROM take(1, 'a b@400068');
-- One that the pool does not know stops its holder, and nobody else
SELECT clock_shows(400099);
SELECT error_of('SELECT renew(' || lease_id || ', 6, 400099)') AS no_further FROM randflake_leases WHERE holder = 'holder 6';
SELECT error_of($$SELECT take(7, 'a b@400068 c@400099')$$) AS unknown;
SELECT ends FROM take(7, 'a b@400068');

-- The last one can be withdrawn while no lease can have reached it
SELECT error_of('SELECT randflake_lease_remove_secret(repeat(' || quote_literal(digit) || ', 16))') FROM unnest(ARRAY['a', 'c', 'b']) AS digit;
SELECT randflake_lease_add_secret(repeat('c', 16), at(401000));
SELECT randflake_lease_remove_secret(NULL);
SELECT error_of($$SELECT randflake_lease_remove_secret(repeat('b', 16))$$) AS not_the_last;
SELECT randflake_lease_remove_secret(repeat('c', 16));
SELECT secrets = secrets('a b@400068') AS withdrawn FROM randflake_pool;
SELECT randflake_lease_add_secret(repeat('c', 16), at(400164));
SELECT clock_shows(400100);
SELECT error_of($$SELECT randflake_lease_remove_secret(repeat('c', 16))$$) AS too_late;
SELECT clock_shows(400099);
SELECT randflake_lease_remove_secret(repeat('c', 16));
-- Not if one that is known, or may be missing, ends later
INSERT INTO randflake_lease (holder, incarnation, secrets, nodes, span)
VALUES ('late', run(8), secrets('a'), '[9,10)', int8range(1750401000, 1750402000));
SELECT error_of($$SELECT randflake_lease_add_secret(repeat('c', 16), at(401999))$$) AS a_lease_is_longer;
SELECT randflake_lease_add_secret(repeat('c', 16), at(402000));
UPDATE randflake_lease_pool SET high_water = 1750402001;
SELECT error_of($$SELECT randflake_lease_remove_secret(repeat('c', 16))$$) AS one_may_be;
UPDATE randflake_lease_pool SET high_water = 0;
DELETE FROM randflake_lease WHERE holder = 'late';
SELECT randflake_lease_add_secret(repeat(substr('1234567890def', digit, 1), 16), at(403000 + digit)) FROM generate_series(1, 13) AS digit;
SELECT error_of($$SELECT randflake_lease_add_secret('0123456789abcdef', at(404000))$$) AS sixteen_are_enough;
SELECT ends FROM take(9, 'a b@400068 c@402000 1@403001 2@403002 3@403003 4@403004 5@403005 6@403006 7@403007 8@403008 9@403009 0@403010 d@403011 e@403012 f@403013');

-- What was promised stays: the owner says otherwise, and nothing is taken back
SELECT lease_id AS mine FROM randflake_leases WHERE holder = 'holder 9' \gset
SELECT randflake_lease_configure(secrets => secrets('a b@400110'));
SELECT error_of(format('SELECT renew(%s, 9, 400158)', :mine)) AS no_further;
SELECT ends FROM leases WHERE lease_id = :mine;
-- a holder that knows of a later end keeps it, but no more is promised
UPDATE randflake_lease SET span = int8range(lower(span), 1750400105), secrets = secrets('a') WHERE lease_id = :mine;
SELECT renew(:mine, 9, 400158) AS up_to_it;
SELECT lease_id AS before, ends FROM leases ORDER BY lease_id DESC LIMIT 1 \gset
-- Another first secret, by the owner: no renewal, and none is granted until all have it
SELECT randflake_lease_configure(secrets => secrets('d'));
UPDATE randflake_lease SET secrets = secrets('a b@400110');
SELECT DISTINCT last, stops, agrees FROM stops;
SELECT error_of(format('SELECT renew(%s, 9, %s)', :before, :ends - 1)) AS another_secret;
SELECT error_of($$SELECT take(1, 'a')$$) AS another_secret;
-- Forgotten: those that are there go on, and the next one says what counts
SELECT randflake_lease_configure(forget_key => true) IS NOT NULL AS forgotten;
SELECT DISTINCT last, stops, agrees FROM stops;
SELECT renew(:before, 9, :ends - 1) >= :ends - 1 AS renewed;
SELECT secrets FROM randflake_pool;
SELECT ends FROM take(1, 'd e@400111');
SELECT secrets = secrets('d e@400111') AS taken_over FROM randflake_pool;
SELECT left(error_of(format('SELECT renew(%s, 9, %s)', :before, :ends - 1)), 40) AS another_secret;
DROP VIEW stops;
DROP FUNCTION name_and_renew(bigint, integer, bigint, text), take(integer, text, integer), secrets(text), at(bigint);
SELECT randflake_lease_configure(0, 131072, secrets => '0123456789abcdef') IS NOT NULL AS configured;

-- A clock outside of what identifiers can hold
SELECT randflake_lease_purge(interval '0') IS NOT NULL AS purged;
DELETE FROM randflake_lease;
UPDATE randflake_lease_pool SET high_water = 0;
SELECT error_of('SELECT acquire(1)')
FROM (VALUES (0), (1729999999), (1730000000)) AS v (unix), clock_shows(v.unix - 1750000000);
SELECT clock_shows(1730000001 - 1750000000);
SELECT starts + 1750000000 AS starts, ends + 1750000000 AS ends FROM acquire(1);
SELECT clock_shows(1730000000 + (1::bigint << 30) - 2 - 1750000000);
SELECT lease_id AS last, starts + 1750000000 - 1730000000 - (1::bigint << 30) AS starts,
       ends + 1750000000 - 1730000000 - (1::bigint << 30) AS ends FROM acquire(1);
SELECT renew(max(lease_id), 1, max(ends) - 1) + 1750000000 - 1730000000 - (1::bigint << 30) AS ends
FROM leases;
SELECT clock_shows(1730000000 + (1::bigint << 30) - 1750000000);
SELECT error_of('SELECT acquire(1)');

-- Under another isolation level than READ COMMITTED no answer could be right.
BEGIN ISOLATION LEVEL REPEATABLE READ;
SELECT error_of(statement) FROM unnest(ARRAY['SELECT acquire(1)', 'SELECT renew(1, 1, 59)', 'SELECT release(1, 1, 59)',
    'SELECT randflake_lease_purge()', 'SELECT randflake_lease_configure()', $$SELECT randflake_lease_add_secret(repeat('c', 16), to_timestamp(2500000000))$$,
    $$SELECT randflake_lease_remove_secret(repeat('c', 16))$$]) AS statement;
COMMIT;
SET default_transaction_isolation = serializable;
SELECT error_of('SELECT randflake_lease_configure()');
RESET default_transaction_isolation;

-- Whom it may concern
DELETE FROM randflake_lease;
UPDATE randflake_lease_pool SET high_water = 0;
SELECT clock_shows(0);
CREATE ROLE regress_randflake_app;
SET ROLE regress_randflake_app;
SELECT error_of(statement) FROM unnest(ARRAY[
    'SELECT acquire(1)', 'SELECT renew(1, 1, 59)', 'SELECT release(1, 1, 59)',
    'SELECT randflake_lease_purge()', 'SELECT randflake_lease_configure()',
    'SELECT randflake_lease_lock_pool(NULL)', 'SELECT randflake_lease_share_pool(NULL)',
    'SELECT randflake_lease_find(NULL, 1, 1, NULL, 1)', 'SELECT * FROM randflake_lease_role', 'SELECT * FROM randflake_lease_block FOR UPDATE',
    'LOCK TABLE randflake_lease_pool IN ROW SHARE MODE', 'LOCK TABLE randflake_leases, randflake_pool', $$SELECT randflake_lease_taken_over(NULL, 'x', 'y')$$,
    'SELECT randflake_lease_clock(NULL)', 'SELECT randflake_lease_epoch(NULL)',
    'SELECT randflake_lease_identity(NULL)', $$SELECT randflake_lease_identity_hash(NULL, 'x')$$,
    'SELECT randflake_lease_horizon(NULL)', 'SELECT randflake_coordinator_identity(NULL)',
    'SELECT * FROM randflake_leases', 'SELECT * FROM randflake_pool', 'SELECT * FROM randflake_lease',
    'SELECT randflake_lease_static_nodes(NULL)', 'SELECT randflake_coordinator_static_nodes(NULL)',
    'SELECT randflake_lease_pool_state()', $$SELECT randflake_lease_forget(NULL, '0')$$,
    'SELECT randflake_lease_require_open(NULL, NULL)',
    $$SELECT randflake_lease_renew(1, run(1), 1, 60, '0123456789abcdef')$$,
    $$SELECT randflake_lease_add_secret('0123456789abcdef', now())$$,
    $$SELECT randflake_lease_remove_secret('0123456789abcdef')$$, 'SELECT randflake_lease_untouched(NULL, NULL)',
    $$SELECT randflake_lease_require_fingerprints(NULL, 'x')$$,
    $$SELECT randflake_lease_require_secrets(NULL, 'x', 'y', 0, '55000')$$,
    'SELECT * FROM randflake_lease_pool', 'SELECT last_value FROM randflake_lease_takeover',
    $$SELECT setval('randflake_lease_takeover', 0)$$,
    'INSERT INTO randflake_lease_pool DEFAULT VALUES', 'DELETE FROM randflake_lease',
    'UPDATE randflake_lease_pool SET high_water = 0']) AS statement;
RESET ROLE;
GRANT EXECUTE ON FUNCTION
    randflake_lease_acquire(text, uuid, integer, integer, text),
    randflake_lease_renew(bigint, uuid, bigint, integer, text),
    randflake_lease_release(bigint, uuid, bigint) TO regress_randflake_app;
SET ROLE regress_randflake_app;
SELECT lease_id AS granted, first_node_id, starts, ends FROM acquire(1);
SELECT lease_id AS granted FROM acquire(1) \gset
-- a lease belongs to the role that logged in, not to the one that it has set
RESET ROLE;
SET SESSION AUTHORIZATION regress_randflake_app;
SELECT error_of('SELECT renew(' || :granted || ', 1, 59)') AS another_role;
SELECT error_of('SELECT release(' || :granted || ', 1, 10)') AS another_role;
RESET SESSION AUTHORIZATION;
SET ROLE regress_randflake_app;
SELECT renew(:granted, 1, 59);
-- it may name another secret
SELECT lease_end - 1750000000 AS renewed, differs_from,
       clock_ms BETWEEN floor(1000 * extract(epoch FROM now())) AND 1000 * extract(epoch FROM clock_timestamp()) AS its_clock
FROM randflake_lease_renew(:granted, run(1), 1750000059, 60, '0123456789abcdef fedcba9876543210@1750000070');
SELECT release(:granted, 1, 10);
SELECT error_of(statement) FROM unnest(ARRAY[
    'SELECT randflake_lease_configure()', 'SELECT * FROM randflake_lease',
    $$SELECT randflake_lease_add_secret('0123456789abcdef', now())$$,
    'SELECT randflake_lease_lock_pool(NULL)']) AS statement;
RESET ROLE;
GRANT pg_monitor TO regress_randflake_app;
SET ROLE regress_randflake_app;
SELECT holder, first_node_id, state FROM randflake_leases ORDER BY lease_id;
SELECT error_of('SELECT * FROM randflake_lease');

-- What a session prefers does not weaken a grant; what others put into its search path does not
-- lead it astray
RESET ROLE;
GRANT CREATE ON DATABASE :"DBNAME" TO regress_randflake_app;
SET ROLE regress_randflake_app;
CREATE SCHEMA regress_astray;
CREATE FUNCTION regress_astray.lower(int4range) RETURNS integer LANGUAGE sql AS 'SELECT 7';
CREATE TABLE regress_astray.randflake_lease (lease_id bigint);
CREATE TEMP TABLE randflake_lease_pool (coordinator text);
SET search_path = regress_astray, pg_temp, pg_catalog, public;
SET synchronous_commit = off;
SET client_min_messages = error;
BEGIN;
SELECT public.acquire(2) IS NOT NULL AS granted;
SHOW synchronous_commit;
SHOW client_min_messages;
SET LOCAL synchronous_commit = local;
SELECT public.acquire(2) IS NOT NULL AS granted;
SHOW synchronous_commit;
COMMIT;
SHOW synchronous_commit;
SHOW client_min_messages;
SET synchronous_commit = local;
BEGIN;
SELECT public.acquire(2) IS NOT NULL AS granted;
SHOW synchronous_commit;
ROLLBACK;
RESET synchronous_commit;
RESET client_min_messages;
RESET search_path;
DROP SCHEMA regress_astray CASCADE;
DROP TABLE pg_temp.randflake_lease_pool;
RESET ROLE;
REVOKE CREATE ON DATABASE :"DBNAME" FROM regress_randflake_app;

-- With a fresh extension, for the tests that follow
DROP VIEW leases;
DROP FUNCTION clock_shows(bigint), acquire(integer, integer, integer),
    renew(bigint, integer, bigint, integer), named_last(bigint), release(bigint, integer, bigint), run(integer),
    error_of(text);
DROP EXTENSION randflake_coordinator;
DROP TABLE coordinator_clock;
DROP ROLE regress_randflake_app;
CREATE EXTENSION randflake_coordinator;
