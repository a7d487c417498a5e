-- The text form: base32hex of the unsigned number.

SELECT id, randflake_to_text(id) AS text
FROM (VALUES (0::bigint), (1), (9), (10), (31), (32), (1023), (1024),
             (9223372036854775807), (-9223372036854775808), (-1)) AS v (id);

-- Round trips: every digit, every length, both halves of bigint
SELECT count(*) AS failures
FROM (SELECT (1::bigint << bit) * digit AS id
      FROM generate_series(0, 58) AS bit, generate_series(1, 31) AS digit
      UNION ALL
      SELECT -(1::bigint << bit) - digit
      FROM generate_series(0, 58) AS bit, generate_series(1, 31) AS digit
      UNION ALL
      SELECT hashint8extended(n, 0) FROM generate_series(1, 10000) AS n) AS v
WHERE randflake_from_text(randflake_to_text(id)) <> id
   OR randflake_from_text(upper(randflake_to_text(id))) <> id
   OR randflake_to_text(id) !~ '^(0|[1-9a-v][0-9a-v]{0,12})$';

-- Either case and leading zeros are read
SELECT randflake_from_text('0'), randflake_from_text('v'), randflake_from_text('V'),
       randflake_from_text('000000000000v');
SELECT randflake_from_text('fvvvvvvvvvvvv'), randflake_from_text('FVVVVVVVVVVVV'),
       randflake_from_text('7vvvvvvvvvvvv'), randflake_from_text('8000000000000');

-- Identifiers of the reference implementation
SELECT randflake_to_text(4594531474933654033), randflake_from_text('3vgoe12ccb8gh'),
       randflake_to_text(-232447010193727000), randflake_from_text('fphhelk04q8f8');

-- Malformed
SELECT randflake_from_text('');
\echo :LAST_ERROR_SQLSTATE
SELECT randflake_from_text('00000000000000');
\echo :LAST_ERROR_SQLSTATE
SELECT randflake_from_text('g000000000000');
\echo :LAST_ERROR_SQLSTATE
SELECT randflake_from_text('vvvvvvvvvvvvv');
\echo :LAST_ERROR_SQLSTATE
SELECT randflake_from_text('12w4');
\echo :LAST_ERROR_SQLSTATE
SELECT randflake_from_text('W');
\echo :LAST_ERROR_SQLSTATE
SELECT randflake_from_text(' 1');
\echo :LAST_ERROR_SQLSTATE
SELECT randflake_from_text('1 ');
\echo :LAST_ERROR_SQLSTATE
SELECT randflake_from_text(E'1\n');
\echo :LAST_ERROR_SQLSTATE
SELECT randflake_from_text('-1');
\echo :LAST_ERROR_SQLSTATE
SELECT randflake_from_text('+1');
\echo :LAST_ERROR_SQLSTATE
SELECT randflake_from_text('1=');
\echo :LAST_ERROR_SQLSTATE
SELECT randflake_from_text('ü');
\echo :LAST_ERROR_SQLSTATE
SELECT randflake_from_text('1€');
\echo :LAST_ERROR_SQLSTATE
SELECT randflake_from_text('𝟙');
\echo :LAST_ERROR_SQLSTATE

-- A message quotes no more than helps
SELECT randflake_from_text(repeat('0', 10000));
SELECT randflake_from_text(repeat('€', 10000));

-- No byte but a digit of base32hex is accepted
SELECT string_agg(chr(code), '' ORDER BY code) AS digits
FROM generate_series(1, 127) AS code
WHERE chr(code) ~ '[0-9a-vA-V]';
DO $$
DECLARE
    accepted text := '';
BEGIN
    FOR code IN 1..127 LOOP
        BEGIN
            PERFORM randflake_from_text(chr(code));
            accepted := accepted || chr(code);
        EXCEPTION WHEN invalid_text_representation THEN
            NULL;
        END;
    END LOOP;
    RAISE NOTICE 'accepted: %', accepted;
END $$;

-- NULL in, NULL out
SELECT randflake_to_text(NULL) IS NULL AS to_text, randflake_from_text(NULL) IS NULL AS from_text;

-- Immutable: usable in an index and in a generated column
CREATE TABLE text_form (
    id bigint PRIMARY KEY,
    shown text GENERATED ALWAYS AS (randflake_to_text(id)) STORED);
CREATE INDEX ON text_form (randflake_to_text(id));
INSERT INTO text_form VALUES (-1), (32);
SELECT * FROM text_form ORDER BY id;
DROP TABLE text_form;
