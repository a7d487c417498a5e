\set ECHO none
-- Tests the coordinator's answers, views and privileges. test/t/230_lease_model.pl tests its rules.
-- A table replaces the clock. Times are in seconds since the Unix time 1750000000.
\getenv source PG_ABS_SRCDIR
\i :source/test/sql_test.sql
CREATE TABLE coordinator_clock (now bigint NOT NULL);
INSERT INTO coordinator_clock VALUES (1750000000);
GRANT SELECT ON coordinator_clock TO PUBLIC;
CREATE OR REPLACE FUNCTION randflake_lease_clock(own randflake_lease_internal) RETURNS bigint LANGUAGE sql VOLATILE
AS $$ SELECT now FROM public.coordinator_clock $$;

CREATE OR REPLACE FUNCTION randflake_lease_started(own randflake_lease_internal) RETURNS bigint LANGUAGE sql STABLE
AS $$ SELECT 1740000000::bigint $$;

CREATE PROCEDURE made_at(second bigint) LANGUAGE sql AS $$
    SELECT setval('randflake_lease_takeover',
                  (1750000000 + second) << 31
                  | randflake_lease_identity_hash(NULL, randflake_lease_identity(NULL)), false)
$$;
CREATE PROCEDURE clock_shows(second bigint) LANGUAGE sql
AS $$ UPDATE coordinator_clock SET now = 1750000000 + second $$;

-- Repeats a digit to make a holder's incarnation. secrets() repeats digits to make fingerprints.
CREATE FUNCTION run(digit integer) RETURNS uuid LANGUAGE sql IMMUTABLE AS $$ SELECT repeat(digit::text, 32)::uuid $$;
CREATE FUNCTION secrets(text) RETURNS text LANGUAGE sql IMMUTABLE
AS $$
    SELECT string_agg(repeat(left(entry, 1), 16) || CASE WHEN entry ~ '@' THEN '@' || 1750000000 + substr(entry, 3)::bigint ELSE '' END,
                      ' ' ORDER BY place)
    FROM string_to_table($1, ' ') WITH ORDINALITY AS e (entry, place)
$$;
CREATE FUNCTION at(second bigint) RETURNS timestamptz LANGUAGE sql IMMUTABLE
AS $$ SELECT to_timestamp(1750000000 + second) $$;

CREATE FUNCTION acquire(digit integer, nodes integer DEFAULT 1, duration integer DEFAULT 60, named text DEFAULT 'a',
                        OUT lease_id bigint, OUT first_node_id integer, OUT node_count integer,
                        OUT starts bigint, OUT ends bigint) LANGUAGE sql
AS $$
    SELECT lease_id, first_node_id, node_count, lease_start - 1750000000, lease_end - 1750000000
    FROM randflake_lease_acquire('holder ' || digit, run(digit), nodes, duration, secrets(named))
$$;
CREATE FUNCTION renew(lease_id bigint, digit integer, expected_end bigint, duration integer DEFAULT 60, named text DEFAULT 'a')
RETURNS bigint LANGUAGE sql
AS $$
    SELECT lease_end - 1750000000
    FROM randflake_lease_renew(lease_id, run(digit), 1750000000 + expected_end, duration, secrets(named))
$$;
CREATE FUNCTION release(lease_id bigint, digit integer, last_used bigint) RETURNS void LANGUAGE sql
AS $$ SELECT randflake_lease_release(lease_id, run(digit), 1750000000 + last_used) $$;

-- Returns a statement's error, with times and the user's name masked.
CREATE FUNCTION error_of(statement text) RETURNS text LANGUAGE sql AS $$
    SELECT regexp_replace(replace(pg_temp.error_of(statement), SESSION_USER, '<role>'), '\d{4}-\d\d-\d\d \d\d:\d\d:\d\d[-+:0-9]*', '<time>', 'g')
$$;

\echo '-- An unused pool'
CALL made_at(0);
SELECT state, grants_from, first_node_id, node_count, own_first_node_id, own_node_count, max_duration, secrets FROM randflake_pool;
SELECT error_of('SELECT acquire(1)');
SELECT error_of($$SELECT randflake_lease_add_secret(secrets('b'), at(500000))$$);
CALL made_at(-10000);
SELECT state, grants_from FROM randflake_pool;

\echo '-- The views after its use: the real clock decides a lease''s state'
SELECT * FROM acquire(1);
SELECT * FROM acquire(2, 4, 10);
SELECT renew(1, 1, 59);
SELECT state, grants_from, first_node_id, node_count, own_first_node_id, own_node_count, max_duration,
       max_clock_skew, max_nodes_per_role, max_grants_per_role, secrets FROM randflake_pool;
INSERT INTO randflake_lease (holder, incarnation, secrets, nodes, span, released_at)
SELECT holder, run(9), secrets('a'), int4range(300, 301), int8range(now + first, now + last), released_at
FROM (SELECT extract(epoch FROM clock_timestamp())::bigint) AS clock (now),
     (VALUES ('present', -3600, 3600, NULL), ('future', 3600, 7200, NULL), ('gone', -10800, -7200, clock_timestamp()))
         AS v (holder, first, last, released_at);
SELECT holder, role = SESSION_USER AS role, first_node_id, node_count, state, in_pool, stops_at, granted_at IS NOT NULL AS granted,
       renewed_at IS NOT NULL AS renewed, released_at IS NOT NULL AS released
FROM randflake_leases ORDER BY lease_id;
SELECT starts_at, ends_at, secrets FROM randflake_leases WHERE lease_id = 2;
\echo '-- A hand-written row has the same limits; the constraint enforces them.'
SELECT split_part(error_of(format($$INSERT INTO randflake_lease (holder, incarnation, secrets, nodes, span)
VALUES (repeat('x', %s), run(9), secrets('a'), '[%s,302)', '[%s,1750000060)')$$, length, nodes, start)), ' | ', 2)
FROM (VALUES (256, 301, 1750000059), (257, 301, 1750000050), (1, 302, 1750000050), (1, 301, 1750000060), (1, 301, 1750000000))
    AS v (length, nodes, start);
DELETE FROM randflake_lease WHERE incarnation = run(9);
CALL made_at(-10000); -- as if no row had been lost

\echo '-- Arguments'
SELECT error_of(format('SELECT randflake_lease_%s', call)) COLLATE "C" AS error, count(*)
FROM unnest(ARRAY[
    $$acquire(NULL, run(1), 1, 60, secrets('a'))$$, $$acquire('x', NULL, 1, 60, secrets('a'))$$,
    $$acquire('x', run(1), NULL, 60, secrets('a'))$$, $$acquire('x', run(1), 1, NULL, secrets('a'))$$,
    $$acquire('x', run(1), 1, 60, NULL)$$, $$acquire('x', run(1), 0, 60, secrets('a'))$$,
    $$acquire('x', run(1), 131073, 60, secrets('a'))$$, $$acquire('x', run(1), 1, -2147483648, secrets('a'))$$,
    $$acquire(repeat('x', 257), run(1), 1, 60, secrets('a'))$$, $$acquire(repeat('x', 256), run(1), 1, 60, secrets('a'))$$,
    $$renew(1, run(1), 1, 0, secrets('a'))$$, $$renew(1, run(1), 9223372036854775807, 60, secrets('a'))$$, $$renew(1, run(1), -9223372036854775807, 60, secrets('a'))$$,
    'release(NULL, run(1), 1)', 'release(1, NULL, 1)', $$purge(interval '-1 second')$$,
    'configure(-1)', 'configure(-2147483648)', 'configure(131072)', 'configure(0, 0)', 'configure(1, 131072)', 'configure(10, -5)',
    'configure(max_duration => 0)', 'configure(max_duration => 86401)', 'configure(max_clock_skew => 3601)',
    'configure(max_clock_skew => -1)', 'configure(max_nodes_per_role => 0)', 'configure(max_nodes_per_role => 131073)',
    'configure(max_grants_per_role => 0)', 'configure(max_grants_per_role => 60001)',
    $$configure(forget_key => true, secrets => secrets('a'))$$, 'configure(never_leased => true)',
    $$add_secret('bbbb', at(401000))$$, $$add_secret(repeat('B', 16), at(401000))$$,
    $$add_secret(secrets('b'), at(401000) + interval '1 ms')$$, $$add_secret(secrets('b'), 'infinity')$$,
    $$add_secret(secrets('b'), '-infinity')$$, $$add_secret(secrets('b'), '2059-01-01Z')$$,
    $$add_secret(secrets('b'), '2024-01-01Z')$$, $$add_secret(secrets('a'), at(401000))$$,
    $$add_secret(secrets('b'), at(64))$$, $$remove_secret(secrets('a'))$$]) AS call
GROUP BY 1 ORDER BY 1;
\echo '-- Null gives null, and does nothing'
SELECT renew(NULL, 1, 59), renew(1, NULL, 59), renew(1, 1, NULL), renew(1, 1, 59, NULL), renew(1, 1, 59, 60, NULL),
       randflake_lease_purge(NULL), randflake_lease_add_secret(NULL, at(401000)), randflake_lease_add_secret(secrets('b'), NULL),
       randflake_lease_remove_secret(NULL);
\echo '-- Names of secrets'
SELECT split_part(error_of(format('SELECT randflake_lease_acquire(''x'', run(1), 1, 60, %L)', named)), ' | ', 2) AS error,
       bool_and(error_of(format('SELECT randflake_lease_renew(1, run(1), 1750000059, 60, %L)', named)) LIKE '22023 |%') AS nor_in_a_renewal,
       bool_and(error_of(format('SELECT randflake_lease_configure(secrets => %L)', named)) LIKE '22023 |%') AS nor_from_the_owner,
       array_agg(n ORDER BY n)
FROM unnest(ARRAY['', secrets('A'), repeat('a', 15), secrets('a b'), secrets('a@500 b@600'), secrets('a b@500 '), secrets('a b@500') || 'x',
                  ' ' || secrets('a'), secrets('a') || E'\n', repeat('a', 15) || ' ' || secrets('b@500'),
                  secrets('a') || '  ' || secrets('b@500'), secrets('a b@500 c@500'), secrets('a b@500 c@499'),
                  secrets('a') || ' bbbbbbbbbbbbbbbb@175000050', secrets('a') || ' bbbbbbbbbbbbbbbb@01750000500',
                  secrets('a b@1 c@2 d@3 e@4 f@5 0@6 1@7 2@8 3@9 4@10 5@11 6@12 7@13 8@14 9@15 a@16'), secrets('a b@-20000000'),
                  secrets('a b@1053741824')]) WITH ORDINALITY AS malformed (named, n)
GROUP BY 1 ORDER BY 1;
SELECT error_of($$SELECT acquire(1, 1, 60, 'a b')$$);
SELECT error_of($$SELECT acquire(1, 1, 60, 'a c@2 b@1')$$);

\echo '-- Refusals of a lease'
SELECT randflake_lease_configure(192, 6);
SELECT error_of(statement) FROM unnest(ARRAY['SELECT acquire(3, 7)', 'SELECT acquire(3, 6)', $$SELECT acquire(3, 1, 60, 'd')$$]) AS statement;
SELECT * FROM acquire(3, 5);
SELECT error_of('SELECT acquire(3)');
SELECT randflake_lease_configure(0, 206);
CALL clock_shows(3);
SELECT error_of(statement || '; SELECT acquire(3, ' || nodes || ')')
FROM (VALUES ('SELECT', 207), ('SELECT randflake_lease_configure(max_nodes_per_role => 11)', 2),
             ('UPDATE randflake_lease_pool SET high_water = 1750000009', 1),
             ('UPDATE randflake_lease_pool SET high_water = 1750000009; CALL clock_shows(-3600)', 1),
             ('CALL clock_shows(-20000000)', 1), ('CALL clock_shows((1::bigint << 30) - 20000000)', 1)) AS v (statement, nodes);
SELECT randflake_lease_configure(max_grants_per_role => 1);
SELECT node_count FROM acquire(3);
SELECT error_of('SELECT acquire(3)');
SELECT randflake_lease_configure(max_grants_per_role => 60000);
UPDATE randflake_lease_pool SET high_water = 0;

\echo '-- Refusals of a renewal and of a release'
CALL clock_shows(30);
SELECT error_of('SELECT ' || call) FROM unnest(ARRAY['renew(99, 1, 59)', 'renew(2, 2, 9)', 'renew(1, 1, 152)',
    $$renew(1, 1, 59, 60, 'd')$$, 'release(99, 1, 59)']) AS call;
INSERT INTO randflake_lease (holder, incarnation, secrets, nodes, span)
VALUES ('rival', run(9), secrets('a'), '[192,193)', int8range(1750000060, 1750000061)),
       ('own', run(9), secrets('a'), '[200,201)', int8range(1750000000, 1750000060));
SELECT error_of('SELECT renew(1, 1, 59)');
UPDATE randflake_lease SET span = int8range(1749999000, 1749999001) WHERE holder = 'rival'; -- before the clock was set back
SELECT error_of('SELECT renew(1, 1, 59)');
SELECT error_of(format('SELECT renew(%s, 9, 59)', lease_id)) FROM randflake_lease WHERE holder = 'own';
DELETE FROM randflake_lease WHERE incarnation = run(9);
SELECT randflake_lease_configure(193);
SELECT in_pool FROM randflake_leases WHERE lease_id = 1;
SELECT error_of('SELECT renew(1, 1, 59)');
SELECT randflake_lease_configure(0);

\echo '-- A closed pool'
SELECT randflake_lease_configure(closed => true);
SELECT state FROM randflake_pool;
SELECT bool_or(in_pool) FROM randflake_leases;
SELECT error_of('SELECT acquire(3)');
SELECT randflake_lease_configure(closed => false);
SELECT state, grants_from FROM randflake_pool;

\echo '-- Another coordinator granted last: the hold-off counts from the first call, although it rolled back.'
UPDATE randflake_lease SET granted_at = at(0), renewed_at = NULL;
UPDATE randflake_lease_pool SET high_water = 0, coordinator = 'another';
CALL clock_shows(40);
SELECT state, grants_from AS if_asked_now FROM randflake_pool;
SELECT error_of('SELECT acquire(3)');
SELECT coordinator FROM randflake_lease_pool;
CALL clock_shows(43);
SELECT state, grants_from FROM randflake_pool;
SELECT error_of('SELECT acquire(3)');
CALL clock_shows(200);
SELECT randflake_lease_configure();
SELECT state, grants_from FROM randflake_pool;

\echo '-- Secrets over time: a lease ends where the secrets of its holder and of the pool begin to differ.'
SELECT randflake_lease_add_secret(secrets('b'), at(265)), randflake_lease_add_secret(secrets('b'), at(265));
SELECT error_of('SELECT randflake_lease_' || call) FROM unnest(ARRAY[$$add_secret(secrets('b'), at(266))$$,
    $$add_secret(secrets('c'), at(265))$$, $$remove_secret(secrets('a'))$$]) AS call;
CALL clock_shows(210);
SELECT lease_id AS old, ends FROM acquire(4) \gset
\echo :ends
SELECT ends FROM acquire(5, 1, 60, 'a b@265');
SELECT ends FROM acquire(6, 1, 60, 'a b@265 c@300');
SELECT ends FROM acquire(7, 1, 60, 'a d@265');
SELECT renew(:old + 1, 5, 269, 60, 'a b@265 c@300');
SELECT holder, secrets, extract(epoch FROM stops_at)::bigint - 1750000000 AS stops FROM randflake_leases
WHERE lease_id >= :old ORDER BY lease_id;
SELECT error_of(format('SELECT renew(%s, 4, 264, 60, %L)', :old, named)) FROM unnest(ARRAY['a', 'a c@300', 'a c@264']) AS named;
SELECT error_of(format('SELECT renew(%s, 6, 268, 60, %L)', :old + 2, 'a b@265 c@269'));
CALL clock_shows(265);
SELECT error_of(format('SELECT acquire(8, 1, 60, %L)', named)) FROM unnest(ARRAY['a', 'a c@265', 'a b@264', 'a b@265 c@265']) AS named;
SELECT error_of($$SELECT randflake_lease_remove_secret(secrets('b'))$$);
SELECT randflake_lease_configure(secrets => secrets('a b@265 1@1001 2@1002 3@1003 4@1004 5@1005 6@1006 7@1007 8@1008 9@1009 0@1010 d@1011 e@1012 f@1013'));
SELECT randflake_lease_add_secret(secrets('c'), at(2000));
SELECT error_of($$SELECT randflake_lease_add_secret('0123456789abcdef', at(3000))$$);
SELECT randflake_lease_remove_secret(secrets('c'));
SELECT right(secrets, 27) FROM randflake_pool;
\echo '-- Another first secret, by the owner, and the next holder''s'
SELECT randflake_lease_configure(secrets => secrets('d'));
SELECT DISTINCT stops_at FROM randflake_leases;
SELECT randflake_lease_configure(forget_key => true);
SELECT DISTINCT stops_at FROM randflake_leases;
SELECT secrets FROM randflake_pool;
SELECT ends FROM acquire(9, 1, 60, 'a');
SELECT secrets FROM randflake_pool;

\echo '-- Only READ COMMITTED gives correct answers.'
BEGIN ISOLATION LEVEL REPEATABLE READ;
SELECT DISTINCT error_of(statement) FROM unnest(ARRAY['SELECT acquire(1)', 'SELECT renew(1, 1, 59)', 'SELECT release(1, 1, 59)',
    'SELECT randflake_lease_purge()', 'SELECT randflake_lease_configure()', $$SELECT randflake_lease_add_secret(repeat('c', 16), to_timestamp(2500000000))$$,
    $$SELECT randflake_lease_remove_secret(repeat('c', 16))$$]) AS statement;
COMMIT;
SET default_transaction_isolation = serializable;
SELECT error_of('SELECT randflake_lease_configure()');
RESET default_transaction_isolation;

\echo '-- Privileges'
SELECT randflake_lease_configure(0, 131072);
DELETE FROM randflake_lease;
UPDATE randflake_lease_pool SET high_water = 0;
CALL clock_shows(0);
CREATE ROLE regress_randflake_app;
GRANT EXECUTE ON FUNCTION
    randflake_lease_acquire(text, uuid, integer, integer, text),
    randflake_lease_renew(bigint, uuid, bigint, integer, text),
    randflake_lease_release(bigint, uuid, bigint) TO regress_randflake_app;
SET ROLE regress_randflake_app;
SELECT lease_id AS granted, first_node_id, starts, ends FROM acquire(1);
SELECT lease_id AS granted FROM acquire(1) \gset
\echo '-- a lease belongs to the role that logged in, not to the one set later'
RESET ROLE;
SET SESSION AUTHORIZATION regress_randflake_app;
SELECT error_of('SELECT renew(' || :granted || ', 1, 59)') AS another_role;
SELECT error_of('SELECT release(' || :granted || ', 1, 10)') AS another_role;
RESET SESSION AUTHORIZATION;
SET ROLE regress_randflake_app;
SELECT renew(:granted, 1, 59);
\echo '-- it may name a different secret'
SELECT lease_end - 1750000000 AS renewed, differs_from,
       clock_ms BETWEEN floor(1000 * extract(epoch FROM now())) AND 1000 * extract(epoch FROM clock_timestamp()) AS its_clock
FROM randflake_lease_renew(:granted, run(1), 1750000059, 60, secrets('a b@70'));
SELECT release(:granted, 1, 10);
RESET ROLE;
GRANT pg_monitor TO regress_randflake_app;
SET ROLE regress_randflake_app;
SELECT holder, first_node_id, state FROM randflake_leases ORDER BY lease_id;
SELECT error_of('SELECT * FROM randflake_lease');

-- A session's settings do not weaken a grant.
SET synchronous_commit = off;
SET client_min_messages = error;
BEGIN;
SELECT acquire(2) IS NOT NULL AS granted;
SHOW synchronous_commit;
SHOW client_min_messages;
SET LOCAL synchronous_commit = local;
SELECT acquire(2) IS NOT NULL AS granted;
SHOW synchronous_commit;
COMMIT;
SHOW synchronous_commit;
SHOW client_min_messages;
SET synchronous_commit = local;
BEGIN;
SELECT acquire(2) IS NOT NULL AS granted;
SHOW synchronous_commit;
ROLLBACK;
RESET synchronous_commit;
RESET client_min_messages;
RESET ROLE;
\echo '-- Announcements of a role that is gone'
INSERT INTO randflake_lease_announcement (role, server, holder, origin, nodes, fingerprint, announced_at)
VALUES ('regress_gone', '00000000-0000-0000-0000-000000000001', 'x', 'x', '[5,6)', repeat('a', 16), clock_timestamp());
SELECT * FROM randflake_lease_announce('y', '00000000-0000-0000-0000-000000000002', 'y', 5, 1, repeat('a', 16), true);
SELECT role = SESSION_USER AS own FROM randflake_lease_announcement;
DROP PROCEDURE made_at(bigint), clock_shows(bigint);
DROP FUNCTION acquire(integer, integer, integer, text), at(bigint),
    renew(bigint, integer, bigint, integer, text), release(bigint, integer, bigint), run(integer), secrets(text), error_of(text);
DROP EXTENSION randflake_coordinator;
DROP TABLE coordinator_clock;
DROP ROLE regress_randflake_app;
CREATE EXTENSION randflake_coordinator;
