\set ECHO none
-- Tests identifiers of 53 bits, which fit in a JavaScript number.
\getenv source PG_ABS_SRCDIR
\i :source/test/sql_test.sql

\echo '-- Known answers, from an independent program'
SELECT randflake53_encode('2024-10-27 03:33:20', 0, 0), randflake53_encode('2030-01-01', 255, 32767),
       randflake53_encode('2058-11-05 17:10:23', 255, 32767);

\echo '-- Every number is an identifier'
SELECT count(*) AS failures
FROM (SELECT hashint8extended(n, 0) & ((1::bigint << 53) - 1) FROM generate_series(1, 10000) AS n
      UNION ALL VALUES (0), (9007199254740991)) AS v (id), randflake53_decode(id) AS d
WHERE id IS DISTINCT FROM randflake53_encode(d.generated_at, d.node_id, d.sequence);

\echo '-- Made in every way: distinct, with this server''s node ids, in this second'
CREATE TABLE issued (id bigint);
INSERT INTO issued SELECT randflake53_generate() FROM generate_series(1, 50000);
INSERT INTO issued SELECT * FROM randflake53_generate(1000);
INSERT INTO issued SELECT randflake53_generate(1000);
SELECT count(*) FROM randflake53_generate(0);
CREATE TABLE plain (id bigint PRIMARY KEY DEFAULT randflake53_generate(), note text);
INSERT INTO plain (note) SELECT n FROM generate_series(1, 1000) AS n;
COPY plain (note) FROM stdin;
copied
copied too
\.
INSERT INTO issued SELECT id FROM plain;
CREATE TABLE source AS SELECT n FROM generate_series(1, 20000) AS n;
ANALYZE source;
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET min_parallel_table_scan_size = 0;
CREATE TABLE parallel AS SELECT randflake53_generate() AS id FROM source;
INSERT INTO issued SELECT id FROM parallel;
SELECT count(*), count(DISTINCT id), min(id) >= 0 AND max(id) < 1::bigint << 53 AS in_range,
       min(node_id) >= 200 AND max(node_id) <= 215 AS own_nodes,
       min(generated_at) > now() - interval '1 min' AND max(generated_at) <= clock_timestamp() AS own_time
FROM issued, randflake53_decode(id);
SELECT sum(n) BETWEEN 400 AND 600 AS uniform
FROM (SELECT (id >> 52)::integer AS n FROM plain LIMIT 1000) AS top_bits;

\echo '-- They are counted and have their own slots'
\c -
SELECT randflake_status_reset();
SELECT count(*) FROM (SELECT randflake53_generate() FROM generate_series(1, 20000)) AS made;
SELECT ids_issued BETWEEN 20000 AND 30000 AS counted FROM randflake_status;
SELECT sum(ids_issued) FROM randflake_slots;

\echo '-- Errors'
\i :source/test/sql_test.sql
SELECT pg_temp.error_of('SELECT randflake53_' || call) AS error
FROM unnest(ARRAY['decode(-1)', 'decode(9007199254740992)', $$encode('2030-01-01', 256, 0)$$, $$encode('2030-01-01', 0, 32768)$$,
                  $$encode('2030-01-01', -1, 0)$$, $$encode('2024-10-27 03:33:19+00', 0, 0)$$, 'generate(-1)']) AS call;

DROP TABLE issued, plain, source, parallel;
