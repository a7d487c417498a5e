\set ECHO none
-- Tests the text form: base32hex of the number. test/unit/text_test.cpp tests all digits and bytes.
\getenv source PG_ABS_SRCDIR
\i :source/test/sql_test.sql

SELECT id, randflake_to_text(id) AS text
FROM (VALUES (0::bigint), (32), (9223372036854775807), (-9223372036854775808), (-1)) AS v (id);

\echo '-- Either case and leading zeros are read'
SELECT randflake_from_text('fvvvvvvvvvvvv'), randflake_from_text('FVVVVVVVVVVVV'),
       randflake_from_text('7vvvvvvvvvvvv'), randflake_from_text('8000000000000');


\echo '-- Malformed; a message quotes a short part'
SELECT pg_temp.error_of(format('SELECT randflake_from_text(%L)', form)) AS error
FROM unnest(ARRAY['', '00000000000000', 'g000000000000', '12w4', E'1\n', '1€', '𝟙', repeat('0', 10000), repeat('€', 10000)]) AS form;
