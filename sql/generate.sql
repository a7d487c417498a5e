\set ECHO none
-- Tests that identifiers are distinct in every part of a statement. test/t tests parallel workers
-- (350_type.pl) and rolled-back transactions (100_crash.pl).
\getenv source PG_ABS_SRCDIR
\i :source/test/sql_test.sql

\echo '-- A table of all identifiers, for the check at the end'
CREATE TABLE issued (id bigint);

-- An identifier's time lies between the clock's times before and after the statement. Identifiers
-- use a coarse clock, which may be a tick behind.
SELECT clock_timestamp() AS before \gset
SELECT randflake_generate() AS id \gset
SELECT generated_at BETWEEN date_trunc('second', :'before'::timestamptz) - interval '1 second'
                        AND clock_timestamp() AS now,
       node_id BETWEEN 0 AND 131071 AS node_id, sequence BETWEEN 0 AND 131071 AS sequence
FROM randflake_decode(:id);
SELECT node_id >= current_setting('randflake.node_id')::integer
       AND node_id < current_setting('randflake.node_id')::integer
                     + current_setting('randflake.node_count')::integer AS node_id_of_this_server
FROM randflake_decode(:id);
INSERT INTO issued VALUES (:id);

\echo '-- Volatile: one per row, and both signs are as likely'
SELECT count(*), count(DISTINCT id), count(*) FILTER (WHERE id < 0) BETWEEN 4000 AND 6000 AS signs
FROM (SELECT randflake_generate() AS id FROM generate_series(1, 10000)) AS g;

\echo '-- In text form'
SELECT count(*), count(DISTINCT text) AS "distinct",
       bool_and(text ~ '^[1-9a-v][0-9a-v]*$' AND length(text) <= 13) AS well_formed,
       bool_and(randflake_to_text(randflake_from_text(text)) = text) AS canonical
FROM (SELECT randflake_generate_text() AS text FROM generate_series(1, 1000)) AS g;
INSERT INTO issued SELECT randflake_from_text(randflake_generate_text()) FROM generate_series(1, 100);

\echo '-- Many at once, in FROM and in a select list'
SELECT count(*), count(DISTINCT id) FROM randflake_generate(10000) AS g (id);
SELECT count(*), count(DISTINCT id) FROM (SELECT randflake_generate(10000) AS id) AS g;
SELECT n, count(id), count(DISTINCT id) AS "distinct"
FROM generate_series(0, 3) AS n LEFT JOIN LATERAL randflake_generate(n * 100) AS g (id) ON true
GROUP BY n ORDER BY n;
SELECT count(*) FROM (SELECT randflake_generate(1000000) LIMIT 3) AS g;
SELECT count(*) FROM randflake_generate(0);
SELECT count(*) FROM randflake_generate(NULL);
SELECT count(*) FROM (SELECT randflake_generate(0)) AS g;
SELECT pg_temp.error_of('SELECT * FROM randflake_generate(-1)'), pg_temp.error_of('SELECT randflake_generate(''-2147483648'')');
INSERT INTO issued SELECT * FROM randflake_generate(1000);
INSERT INTO issued SELECT randflake_generate(1000);

\echo '-- As a default'
CREATE TABLE plain (id bigint PRIMARY KEY DEFAULT randflake_generate(), note text);
INSERT INTO plain DEFAULT VALUES;
INSERT INTO plain (note) VALUES ('one'), ('two'), ('three');
INSERT INTO plain (id, note) VALUES (DEFAULT, 'four'), (DEFAULT, 'five');
INSERT INTO plain (note) SELECT n FROM generate_series(1, 1000) AS n;
INSERT INTO plain (note) VALUES ('returned') RETURNING id AS returned \gset
SELECT note FROM plain WHERE id = :returned;
COPY plain (note) FROM stdin;
copied
copied too
\.
UPDATE plain SET id = DEFAULT WHERE note IN ('one', 'two');
MERGE INTO plain USING (VALUES ('merged'), ('merged too')) AS v (note) ON plain.note = v.note
    WHEN NOT MATCHED THEN INSERT (note) VALUES (v.note);
INSERT INTO plain (id, note) VALUES (:returned, 'again')
    ON CONFLICT (id) DO UPDATE SET id = DEFAULT RETURNING id <> :returned AS renumbered;
WITH moved AS (INSERT INTO plain (note) VALUES ('in a CTE') RETURNING id)
INSERT INTO issued SELECT id FROM moved;
ALTER TABLE plain ADD COLUMN other bigint DEFAULT randflake_generate();
SELECT count(*), count(DISTINCT id) AS ids, count(DISTINCT other) AS others FROM plain;
INSERT INTO issued SELECT id FROM plain WHERE note <> 'in a CTE' OR note IS NULL;
INSERT INTO issued SELECT other FROM plain;

\echo '-- In blocks that catch exceptions'
DO $$
DECLARE
    ids bigint[];
    one bigint;
BEGIN
    FOR n IN 1..100 LOOP
        BEGIN
            INSERT INTO plain (note) VALUES ('lost') RETURNING id INTO one;
            ids := ids || one || randflake_generate();
            RAISE division_by_zero;
        EXCEPTION WHEN division_by_zero THEN
            ids := ids || randflake_generate();
        END;
    END LOOP;
    INSERT INTO issued SELECT unnest(ids);
    RAISE NOTICE '% made', cardinality(ids);
END $$;
SELECT count(*) FROM plain WHERE note = 'lost';

\echo '-- No identifier came twice'
SELECT count(*), count(DISTINCT id) FROM issued;

DROP TABLE issued, plain;
