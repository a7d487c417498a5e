\set ECHO none
-- A session that generates or reads a value binds an unbound database to the server's secret, if
-- the server allows this. The test rolls back each binding.
\getenv source PG_ABS_SRCDIR
\i :source/test/sql_test.sql
CREATE TABLE first_use (id randflake PRIMARY KEY, n integer) WITH (parallel_workers = 2);
INSERT INTO first_use SELECT randflake_next(), n FROM generate_series(1, 100) AS n;
CREATE ROLE regress_randflake_user;
GRANT SELECT, INSERT ON first_use TO regress_randflake_user;
CREATE VIEW bound AS
SELECT count(*) AS rows, count(DISTINCT fingerprint) AS fingerprints,
       min(fingerprint) = (randflake_key_fingerprints(NULL))[1] AS to_this_server
FROM (TABLE randflake_key UNION ALL TABLE randflake_key_check) AS both_tables;
TABLE bound;

BEGIN;
DELETE FROM randflake_key;
DELETE FROM randflake_key_check;
TABLE bound;
SAVEPOINT unbound;
\set shown 'TABLE bound; ROLLBACK TO unbound'

\echo '-- Each use that brings a value'
SELECT randflake_next() IS NOT NULL AS next;
:shown;
SELECT 'a'::randflake;
:shown;
SELECT 8::bigint::randflake;
:shown;
COPY first_use FROM STDIN;
a	0
\.
:shown;
INSERT INTO first_use SELECT randflake_next(), n FROM generate_series(1, 3) AS n;
TABLE bound;
SELECT count(id::text) FROM first_use;
ROLLBACK TO unbound;

\echo '-- What shows a value binds nothing'
SELECT pg_temp.error_of(format('SELECT count(%s) FROM first_use', shown)) AS error, count(*)
FROM unnest('{id::text,id::bigint,randflake_send(id)}'::text[]) AS shown GROUP BY 1;
SELECT randflake_bind_secret() IS NOT NULL AS bound;
SELECT count(id::text) FROM first_use;
ROLLBACK TO unbound;

\echo '-- What needs no secret does not bind'
SELECT count(*) FROM first_use WHERE id < randflake_lower('2025-01-01') OR randflake_timestamp(id) > now();
SELECT count(*) FROM first_use WHERE id = (SELECT min(id) FROM first_use);
SELECT count(*) FROM (SELECT n FROM first_use ORDER BY id) AS ordered;
SET LOCAL max_parallel_maintenance_workers = 0;
CREATE INDEX ON first_use (id);
ANALYZE first_use;
:shown;

\echo '-- After a binding that was rolled back, the type is unbound again'
INSERT INTO first_use VALUES ('a');
SELECT count(id::text) FROM first_use;
ROLLBACK TO unbound;
SELECT pg_temp.error_of('SELECT count(id::text) FROM first_use') AS error;

\echo '-- A role that may not, and then may'
SET LOCAL ROLE regress_randflake_user;
SELECT pg_temp.error_of(statement) AS error, count(*)
FROM unnest(ARRAY[$$INSERT INTO first_use VALUES ('a')$$, 'SELECT randflake_next()']) AS statement GROUP BY 1;
ROLLBACK TO unbound;
GRANT EXECUTE ON FUNCTION randflake_bind_secret() TO regress_randflake_user;
SET LOCAL ROLE regress_randflake_user;
INSERT INTO first_use VALUES ('a');
SELECT count(*) FROM randflake_key;
RESET ROLE;
TABLE bound;
SET LOCAL ROLE regress_randflake_user;
SELECT count(id::text) FROM first_use;
ROLLBACK TO unbound;

\echo '-- Not in a read-only transaction, nor in a parallel operation'
SAVEPOINT writable;
SET TRANSACTION READ ONLY;
SELECT 'a'::randflake;
ROLLBACK TO writable;
ALTER TABLE first_use ADD COLUMN text_form text DEFAULT '000000000000a';
SET LOCAL parallel_setup_cost = 0;
SET LOCAL parallel_tuple_cost = 0;
SET LOCAL min_parallel_table_scan_size = 0;
\set VERBOSITY terse
SELECT max(text_form::randflake) FROM first_use;
\set VERBOSITY default
ROLLBACK TO writable;

\echo '-- A parallel worker shows values whatever is bound'
SET LOCAL parallel_setup_cost = 0;
SET LOCAL parallel_tuple_cost = 0;
SET LOCAL min_parallel_table_scan_size = 0;
SET LOCAL parallel_leader_participation = off;
SELECT count(id::text) FROM first_use;
:shown;

-- If randflake_key_check has another secret's fingerprint, the server does not bind the database,
-- because a restore may still load randflake_key. The server's own fingerprint does not prevent the
-- binding.
INSERT INTO randflake_key_check VALUES ('0123456789abcdef');
SELECT pg_temp.error_of($$INSERT INTO first_use VALUES ('a')$$) AS error;
SELECT randflake_bind_secret() IS NOT NULL AS bound;
:shown;
INSERT INTO randflake_key_check SELECT (randflake_key_fingerprints(NULL))[1];
INSERT INTO first_use VALUES ('a');
SELECT count(id::text) FROM first_use;
TABLE bound;

ROLLBACK;

TABLE bound;
SELECT count(id::text) FROM first_use;
DROP VIEW bound;
DROP TABLE first_use;
DROP ROLE regress_randflake_user;
