\set ECHO none
-- Tests that the type randflake has the features of bigint, and that its values sort by time.
\getenv source PG_ABS_SRCDIR
\i :source/test/sql_test.sql

\echo '-- --- In and out ------------------------------------------------------------------------------'

\echo '-- The text form of the identifier, in either case; bigint is the same identifier'
SELECT id, randflake_to_text(id), id::randflake AS type, upper(id::randflake::text)::randflake AS upper,
       id::randflake::bigint = id AS same
FROM (VALUES (randflake_encode('2030-01-01', 7, 42)), (0), (-1), (9223372036854775807),
             ('-9223372036854775808'::bigint)) AS v (id);
SELECT '{8i49d3ue35kq7,NULL,a}'::randflake[], NULL::randflake IS NULL AS null;
SELECT to_json(randflake_encode('2030-01-01', 7, 42)::randflake);

\echo '-- A decimal number as a string: the hint has the cast, and it never matches another identifier''s row'
SELECT pg_temp.error_of(format('SELECT %L::randflake', form)) AS error
FROM unnest(ARRAY['', 'w', 'g000000000000', '42', '-42', '4958826056601604828', '9223372036854775808']) AS form;
SELECT array_agg(id::bigint::randflake) AS cast_as_they_say
FROM unnest('{42,999999999999,-42,4958826056601604828,-9223372036854775808}'::text[]) AS id;
\echo '-- Identifiers whose text form is such a number have leading zeros, which input accepts'
SELECT id, id::bigint, randflake_to_text(id), id::text::randflake = id AS back,
       randflake_from_text(id::text) = id::bigint AS from_text
FROM unnest(ARRAY[randflake_from_text('42'), randflake_from_text('999999999999'),
                  randflake_from_text('99999999999v'), randflake_from_text('1234567890123')]::randflake[]) AS id;

\echo '-- An integer is a number, and so is a literal; a sign needs parentheses'
SELECT 42::randflake = 42::bigint::randflake AS same, (-42)::randflake = (-42)::bigint::randflake AS negative,
       (-2147483648)::randflake::bigint, 2147483647::randflake::bigint;
SELECT pg_temp.error_of('SELECT -' || value) AS error FROM unnest('{42::randflake,randflake_next()}'::text[]) AS value;

\echo '-- In any order of output: consecutive, backwards, with gaps'
CREATE TABLE row_of_numbers AS SELECT s, randflake_encode('2030-01-01', 7, s) AS number,
    randflake_encode('2030-01-01', 7, s)::randflake AS id FROM generate_series(0, 999) AS s;
SELECT step, count(*), count(*) FILTER (WHERE id::text = randflake_to_text(number)) AS as_text
FROM (SELECT step, r.* FROM unnest(ARRAY[1, -1, 2, 7, 499]) AS step, row_of_numbers AS r
      ORDER BY step, mod((s + 1000) * (step + 1000), 1000), s OFFSET 0) AS shown
GROUP BY step ORDER BY step;
DROP TABLE row_of_numbers;

\echo '-- Casts of identifiers are explicit, or happen in assignments'
CREATE TABLE assigned (id randflake, number bigint);
INSERT INTO assigned SELECT x, x::randflake FROM randflake_generate(3) AS x;
SELECT count(*) FROM assigned WHERE id::bigint = number;
SELECT left(pg_temp.error_of('SELECT count(*) FROM assigned WHERE id = number'), 5);
\echo '-- An assignment refuses old keys and loop variables, constant or not, in arrays and by ALTER TABLE too'
SELECT pg_temp.error_of(replace('INSERT INTO assigned (id) SELECT x', 'x', number)) AS error
FROM unnest('{42,42::bigint,max(4294967295) FROM (SELECT) AS m,-4294967295,4294967296,-4294967296,42::randflake}'::text[]) AS number;
SELECT pg_temp.error_of($$DO 'DECLARE k randflake; BEGIN FOR i IN 7 .. 9 LOOP k := i; END LOOP; END'$$);
SELECT pg_temp.error_of($$DO 'DECLARE k randflake[]; BEGIN k := ARRAY[7::bigint]; END'$$);
INSERT INTO assigned (number) VALUES (1000);
SELECT pg_temp.error_of('ALTER TABLE assigned ALTER number TYPE randflake');
DROP TABLE assigned;

\echo '-- A name that both forms share leaves an untyped argument ambiguous; the names that are granted are not shared'
SELECT left(pg_temp.error_of('SELECT randflake_to_text(''42'')'), 5);
SELECT randflake_decode('42') IS NULL, randflake_generated_at('42') IS NULL, randflake_shard('42', 4);
GRANT EXECUTE ON FUNCTION randflake_decode, randflake_generated_at, randflake_encode, randflake_timestamp, randflake_node_id TO CURRENT_USER;

\echo '-- --- Order -----------------------------------------------------------------------------------'

\echo '-- Second, node id, sequence number, all unsigned: both sides of 2041'
CREATE TABLE edge AS
SELECT t, n, s, randflake_encode(t, n, s)::randflake AS id,
       row_number() OVER (ORDER BY t, n, s) AS place
FROM unnest(ARRAY['2024-10-27 03:33:20', '2024-10-27 03:33:21', '2041-11-01 10:21:51',
                  '2041-11-01 10:21:52', '2058-11-05 17:10:23']::timestamptz[]) AS t,
     unnest(ARRAY[0, 1, 131071]) AS n, unnest(ARRAY[0, 1, 131071]) AS s;
SELECT count(*), count(DISTINCT id) AS ids,
       count(*) FILTER (WHERE place = by_id) AS in_place
FROM (SELECT *, row_number() OVER (ORDER BY id) AS by_id FROM edge) AS e;
SELECT count(*) AS pairs,
       bool_and((a.id < b.id) = (a.place < b.place) AND (a.id <= b.id) = (a.place <= b.place)
            AND (a.id > b.id) = (a.place > b.place) AND (a.id >= b.id) = (a.place >= b.place)
            AND (a.id = b.id) = (a.place = b.place) AND (a.id <> b.id) = (a.place <> b.place)
            AND randflake_cmp(a.id, b.id) = sign(a.place - b.place)) AS compared
FROM edge AS a, edge AS b;
SELECT randflake_timestamp(min(id)) AS first, randflake_timestamp(max(id)) AS last, max(NULL::randflake)
FROM edge;

\echo '-- Time and node id without the secret; the lower end of each second'
SELECT count(*) FILTER (WHERE randflake_timestamp(id) = t AND randflake_node_id(id) = n) AS inspected,
       count(*) FILTER (WHERE id >= randflake_lower(t)) AS from_lower,
       count(*) FILTER (WHERE (id = randflake_lower(t)) = (n = 0 AND s = 0)) AS lowest,
       count(*) FILTER (WHERE id < randflake_lower(t + interval '1 second')) AS below_next
FROM edge WHERE t < '2058-11-05 17:10:23';
SELECT randflake_lower('2030-01-01 00:00:00.999999') = randflake_lower('2030-01-01') AS fractions_dropped;
SELECT pg_temp.error_of(format('SELECT randflake_lower(%L)', t)) AS error, string_agg(t, ', ') AS times
FROM unnest('{2024-10-27 03:33:19.999999,2058-11-05 17:10:24,infinity,-infinity}'::text[]) AS t GROUP BY 1;
DROP TABLE edge;

\echo '-- --- Indexes ---------------------------------------------------------------------------------'

\echo '-- A twin column holds the raw number as bigint, which is in the same order'
CREATE FUNCTION at(n integer) RETURNS randflake LANGUAGE sql IMMUTABLE
    AS $$ SELECT randflake_encode(to_timestamp(1893456000 + n), n % 7, n % 1000)::randflake $$;
CREATE FUNCTION twin_at(n integer) RETURNS bigint LANGUAGE sql IMMUTABLE
    AS $$ SELECT ((1893456000 + n::bigint - 1730000000) << 34) | ((n::bigint % 7) << 17) | n % 1000 $$;
CREATE TABLE twin (id randflake, twin bigint, payload integer);
INSERT INTO twin
SELECT at(n), twin_at(n), n FROM generate_series(1, 20000) AS g, mod(g * 7919, 100000) AS n;
INSERT INTO twin SELECT id, twin, payload FROM twin WHERE payload % 20 = 0;
INSERT INTO twin VALUES (NULL, NULL, NULL);
SELECT count(*), count(DISTINCT id) AS ids, count(DISTINCT twin) AS twins FROM twin;

CREATE INDEX twin_id ON twin (id);
CREATE INDEX twin_hash ON twin USING hash (id);
CREATE INDEX twin_descending ON twin (id DESC NULLS LAST) INCLUDE (payload);
CREATE INDEX twin_brin ON twin USING brin (id) WITH (pages_per_range = 4);
CREATE INDEX twin_brin_multi ON twin USING brin (id randflake_minmax_multi_ops);
CREATE INDEX twin_brin_bloom ON twin USING brin (id randflake_bloom_ops);
SELECT left(pg_temp.error_of('CREATE UNIQUE INDEX ON twin (id)'), 5);
VACUUM ANALYZE twin;

\echo '-- The plan of a query, and whether its result equals that on the twin'
CREATE FUNCTION plan_of(query text) RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE
    line text;
BEGIN
    FOR line IN EXECUTE 'EXPLAIN (COSTS OFF) ' || query LOOP
        RETURN NEXT regexp_replace(line, '''\w+''', '''...''', 'g');
    END LOOP;
END $$;
CREATE FUNCTION same_as_twin(condition text, OUT rows bigint, OUT same boolean) LANGUAGE plpgsql AS $$
DECLARE
    other integer[];
BEGIN
    EXECUTE 'SELECT array_agg(payload ORDER BY payload) FROM twin WHERE '
        || replace(replace(condition, 'id', 'twin'), 'at', 'twin_at') INTO other;
    EXECUTE 'SELECT count(*), array_agg(payload ORDER BY payload) IS NOT DISTINCT FROM $1 FROM twin WHERE '
        || condition INTO rows, same USING other;
END $$;

CREATE TABLE condition (text text);
INSERT INTO condition VALUES
    ('id = at(7919)'), ('id < at(500)'), ('id <= at(500)'), ('id > at(99500)'), ('id >= at(99500)'),
    ('id >= at(1000) AND id < at(2000)'), ('id IN (at(1), at(7919), at(99999))'),
    ('id BETWEEN at(98000) AND at(99000)'), ('id IS NULL'), ('id <> at(7919)'),
    ('at(90000) < id AND at(90100) >= id'), ('id < at(0) OR id > at(99990)');
SET enable_seqscan = off;
SELECT sum(rows) AS rows, string_agg(text, '; ') FILTER (WHERE NOT same) AS differ FROM condition, same_as_twin(text);
SELECT plan_of('SELECT * FROM twin WHERE id = at(7919)');
DROP INDEX twin_hash, twin_descending;
SELECT plan_of('SELECT id FROM twin WHERE id >= at(1000) AND id < at(1100)');
SELECT plan_of('SELECT id FROM twin ORDER BY id DESC LIMIT 1');
SELECT bool_or(line ~ 'Index Only Scan using twin_id') AS min_from_index
FROM plan_of('SELECT min(id) FROM twin') AS line;
SELECT sum(rows) AS rows, bool_and(same) AS same FROM condition, same_as_twin(text);
DROP INDEX twin_id;
\echo '-- Each kind of BRIN index alone'
SELECT plan_of('SELECT * FROM twin WHERE id < at(500)');
DROP INDEX twin_brin;
SELECT sum(rows) AS rows, bool_and(same) AS same FROM condition, same_as_twin(text);
DROP INDEX twin_brin_multi;
SELECT plan_of('SELECT * FROM twin WHERE id = at(500)');
SELECT sum(rows) AS rows, bool_and(same) AS same FROM condition, same_as_twin(text);
DROP INDEX twin_brin_bloom;
RESET enable_seqscan;

\echo '-- Equal values share entries in a B-tree, as equal values of bigint do'
CREATE TABLE repeated AS SELECT at(n % 100) AS id, twin_at(n % 100) AS twin FROM generate_series(1, 20000) AS n;
CREATE INDEX repeated_id ON repeated (id);
CREATE INDEX repeated_twin ON repeated (twin);
SELECT pg_relation_size('repeated_id') = pg_relation_size('repeated_twin') AS same_size,
       pg_relation_size('repeated_id') < 20000 * 12 AS deduplicated;
DROP TABLE repeated;

\echo '-- Under row security, an index is used for a comparison only if the comparison leaks nothing'
SELECT count(*) = 6 AND bool_and(proleakproof) AS leakproof FROM pg_operator JOIN pg_proc ON pg_proc.oid = oprcode
WHERE (oprleft, oprright) = ('randflake'::regtype, 'randflake'::regtype);

\echo '-- The hash is stored in hash indexes and by hash partitions: it must stay'
SELECT randflake_hash(id), randflake_hash_extended(id, 0), randflake_hash_extended(id, -1)
FROM (SELECT randflake_encode('2030-01-01', 7, 42)::randflake AS id) AS known;

\echo '-- Partitions by hash'
CREATE TABLE hashed (id randflake PRIMARY KEY) PARTITION BY HASH (id);
CREATE TABLE hashed_0 PARTITION OF hashed FOR VALUES WITH (MODULUS 2, REMAINDER 0);
CREATE TABLE hashed_1 PARTITION OF hashed FOR VALUES WITH (MODULUS 2, REMAINDER 1);
INSERT INTO hashed SELECT at(n) FROM generate_series(1, 2000) AS n;
SELECT count(*) BETWEEN 800 AND 1200 AS half FROM hashed_0;
SELECT count(*) FROM hashed WHERE id = at(77);
DROP TABLE hashed;

DROP TABLE twin, condition;
DROP FUNCTION plan_of(text), same_as_twin(text), at(integer), twin_at(integer);

\echo '-- --- The secret that values belong to --------------------------------------------------------'

CREATE TABLE kept AS SELECT randflake_next() AS id;
SELECT randflake_bind_secret() = (SELECT key_fingerprint FROM randflake_status) AS bound;
INSERT INTO randflake_key TABLE randflake_key;
INSERT INTO randflake_key_check TABLE randflake_key_check;
SELECT count(*), count(randflake_key_matches(fingerprint)) FROM randflake_key NATURAL JOIN randflake_key_check;
SELECT pg_temp.error_of($$INSERT INTO randflake_key_check VALUES ('0123456789abcdef')$$) AS error, randflake_key_matches(NULL);

\echo '-- Another fingerprint beside it: nothing goes in or out any more, nothing is sorted'
BEGIN;
INSERT INTO randflake_key VALUES ('0123456789abcdef');
SELECT pg_temp.error_of(statement) AS error, string_agg(statement, '; ') AS statements
FROM unnest(ARRAY[$$INSERT INTO randflake_key_check VALUES ('0123456789abcdef')$$,
                  'SELECT randflake_key_matches(fingerprint) FROM randflake_key', 'SELECT id::text FROM kept', 'SELECT ''a''::randflake', 'SELECT randflake_next()',
                  'SELECT id::bigint FROM kept', 'SELECT 8::bigint::randflake', 'SELECT randflake_send(id) FROM kept',
                  'CREATE INDEX ON kept (id)', 'SELECT randflake_bind_secret()']) AS statement
GROUP BY 1 ORDER BY 1;
ROLLBACK;
SELECT count(id::text) FROM kept;

\echo '-- Only another one'
BEGIN;
DELETE FROM randflake_key;
SAVEPOINT unbound;
INSERT INTO randflake_key_check VALUES ('0123456789abcdef');
INSERT INTO randflake_key VALUES ('0123456789abcdef');
SELECT pg_temp.error_of(statement) AS error
FROM unnest(ARRAY['SELECT id::text FROM kept', 'SELECT randflake_bind_secret()']) AS statement;
ROLLBACK TO unbound;
SELECT randflake_bind_secret() IS NOT NULL AS bound;
SELECT count(*) FROM randflake_key NATURAL FULL JOIN randflake_key_check;
SELECT count(id::text) FROM kept;
UPDATE randflake_key SET fingerprint = '0123456789abcdef';
SELECT pg_temp.error_of('SELECT count(id::text) FROM kept') AS error;
ROLLBACK;
SELECT count(id::text) FROM kept;
SELECT randflake_key_guard();
CREATE TABLE unrelated (id bigint);
CREATE TRIGGER guard BEFORE INSERT ON unrelated FOR EACH ROW EXECUTE FUNCTION randflake_key_guard();
INSERT INTO unrelated VALUES (3);
DROP TABLE unrelated;
CREATE TRIGGER after_all AFTER INSERT ON randflake_key EXECUTE FUNCTION randflake_key_guard();
INSERT INTO randflake_key VALUES ('0123456789abcdef');
DROP TRIGGER after_all ON randflake_key;
DROP TABLE kept;

\echo '-- A sequence makes no identifiers, whatever cast is between'
CREATE TABLE numbered (id bigserial, n bigint DEFAULT nextval('numbered_id_seq')::text::bigint, list bigint[] DEFAULT ARRAY[nextval('numbered_id_seq')]);
CREATE DOMAIN key AS randflake;
ALTER TABLE numbered ADD key key;
SELECT pg_temp.error_of(replace(regexp_replace(statement, '(^|; )(ALTER|ADD)', '\1ALTER TABLE numbered \2', 'g'), 'next', $$nextval('numbered_id_seq')$$)) AS error, count(*)
FROM unnest(ARRAY['ALTER id TYPE randflake', 'ALTER n TYPE randflake', 'ALTER list TYPE randflake[] USING list::randflake[]', 'ALTER n TYPE key',
    'INSERT INTO numbered (key) VALUES (next)', 'ADD id2 randflake DEFAULT (next + 1)',
    'ALTER id DROP DEFAULT; ALTER id TYPE randflake; ALTER id SET DEFAULT next']) AS statement GROUP BY 1;
ALTER TABLE numbered ALTER id DROP DEFAULT, ALTER id TYPE randflake, ALTER id SET DEFAULT randflake_next();
INSERT INTO numbered (key) VALUES (randflake_next()) RETURNING randflake_timestamp(id) > now() - interval '1 hour' AS now, n, list;
ALTER DOMAIN key SET DEFAULT nextval('numbered_id_seq');
SELECT pg_temp.error_of('INSERT INTO numbered DEFAULT VALUES');
DROP TABLE numbered CASCADE;
