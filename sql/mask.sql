\set ECHO none
-- Tests masks, which are opaque numbers for existing keys, and prefixes of text forms.
\getenv source PG_ABS_SRCDIR
\i :source/test/sql_test.sql

\echo '-- Known answers, from an independent program'
SELECT number, randflake_mask(number, repeat('l', 255)) = masked AS masked,
       randflake_unmask(masked, repeat('l', 255)) = number AS unmasked
FROM (VALUES (0, 1424369765037550), (1, 3309931957165843), (134217728, 4966508579305972),
             (9007199254740991, 5560918916688538)) AS v (number, masked);

\echo '-- Each label has its own masks; many labels, repeatedly, and back'
SELECT count(*) AS numbers, count(DISTINCT randflake_mask(1, label)) AS masks,
       count(*) FILTER (WHERE randflake_unmask(randflake_mask(n, label), label) <> n) AS failures
FROM generate_series(1, 20000) AS n, LATERAL (SELECT 'label ' || n % 1000 AS label) AS l;
SELECT randflake_mask(1, 'Müller') <> randflake_mask(1, E'Mu\u0308ller') AS not_normalized,
       randflake_mask(1, 'a') <> randflake_mask(1, 'A') AS case_counts;

\echo '-- Queries find the row by its key'
CREATE TABLE customer (id bigserial PRIMARY KEY, name text);
INSERT INTO customer (name) SELECT 'name ' || n FROM generate_series(1, 1000) AS n;
SET enable_seqscan = off;
SET enable_bitmapscan = off;
SET plan_cache_mode = force_generic_plan;
PREPARE find(bigint) AS SELECT name FROM customer WHERE id = randflake_unmask($1, 'customer');
SELECT format('EXECUTE find(%s)', randflake_mask(42, 'customer')) AS find \gset
:find;
EXPLAIN (COSTS OFF) EXECUTE find(1);
RESET enable_seqscan;
RESET enable_bitmapscan;
RESET plan_cache_mode;
\echo '-- An index cannot have masks'
SELECT left(pg_temp.error_of($$CREATE INDEX ON customer (randflake_mask(id, 'customer'))$$), 5);
DROP TABLE customer;

\echo '-- Errors'
SELECT pg_temp.error_of('SELECT randflake_' || call) AS error
FROM unnest(ARRAY[$$mask(-1, 'customer')$$, $$mask(9007199254740992, 'customer')$$, $$unmask(9007199254740992, 'customer')$$,
                  $$mask(1, '')$$, $$mask(1, repeat('€', 86))$$, $$mask(1, repeat('l', 100000))$$]) AS call;

\echo '-- Prefixes'
SELECT id, randflake_to_text(id, 'cus') AS text, randflake_to_text(id::randflake, 'cus') = randflake_to_text(id, 'cus') AS of_type,
       randflake_from_text(randflake_to_text(id, 'cus'), 'cus') = id AS back
FROM unnest(ARRAY[0, 42, -1, 9223372036854775807, 9007199254740991]) AS id;
SELECT randflake_from_text('a_b_1V', 'a_b'), randflake_from_text('cus_000000000000v', 'cus'),
       randflake_from_text('x_1v', 'x')::randflake::text;
SELECT randflake_to_text(1, repeat('p', 63)) = repeat('p', 63) || '_1' AS longest,
       randflake_from_text(repeat('p', 63) || '_1', repeat('p', 63)) AS back;

SELECT prefix, pg_temp.error_of(format('SELECT randflake_to_text(1, %L)', prefix)) = pg_temp.error_of(format('SELECT randflake_from_text(''x_1'', %L)', prefix)) AS alike,
       pg_temp.error_of(format('SELECT randflake_to_text(1, %L)', prefix))
FROM unnest(ARRAY['', 'a_', 'ä']) AS prefix;
SELECT pg_temp.error_of(format('SELECT randflake_to_text(1, %L)', repeat('p', 64)));
SELECT text, pg_temp.error_of(format('SELECT randflake_from_text(%L, ''cus'')', text))
FROM unnest(ARRAY['', 'cus', 'cus1', 'ord_1', 'cus__1', 'x_cus_1', 'cusx_1', 'cus_', 'cus_w', 'cus_fvvvvvvvvvvvvv']) AS text;
SELECT pg_temp.error_of(format('SELECT randflake_from_text(%L, ''cus'')', repeat('€', 1000)));

\echo '-- In a generated column and in a domain'
CREATE DOMAIN customer_id AS text CHECK (randflake_from_text(VALUE, 'cus') IS NOT NULL);
CREATE TABLE customer (
    id bigint PRIMARY KEY,
    shown customer_id GENERATED ALWAYS AS (randflake_to_text(id, 'cus')) STORED UNIQUE);
INSERT INTO customer VALUES (42);
SELECT * FROM customer WHERE shown = 'cus_1a';
SELECT 'ord_1a'::customer_id;
DROP TABLE customer;
DROP DOMAIN customer_id;
