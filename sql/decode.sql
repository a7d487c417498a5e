\set ECHO none
-- Decodes and encodes identifiers. Unit tests cover the edges of fields and the diffusion of bits.
\getenv source PG_ABS_SRCDIR
\i :source/test/sql_test.sql

\echo '-- Decoding drops fractions of a second; the time zone changes only the output'
SELECT generated_at, node_id, sequence
FROM randflake_decode(randflake_encode('2030-01-02 03:04:05.999999', 6, 7));
SELECT generated_at, randflake_generated_at(id) = generated_at AS same
FROM randflake_encode('2058-11-05 17:10:23.999999', 0, 0) AS id, randflake_decode(id);
SELECT randflake_encode('2030-01-02 05:04:05+02', 6, 7) = randflake_encode('2030-01-02 03:04:05', 6, 7)
       AS same_instant;
SET timezone = 'Asia/Kolkata';
SELECT randflake_generated_at(randflake_encode('2030-01-02 03:04:05+00', 6, 7));
SET timezone = 'UTC';


\echo '-- Out of range'
SELECT pg_temp.error_of(format('SELECT randflake_encode(%L, %s)', t, fields)) AS error
FROM (VALUES ('2024-10-27 03:33:19.999999', '0, 0'), ('2058-11-05 17:10:24', '0, 0'), ('infinity', '0, 0'),
             ('-infinity', '0, 0'), ('4713-01-01 BC', '0, 0'), ('294276-12-31', '0, 0'), ('2030-01-01', '-1, 0'),
             ('2030-01-01', '131072, 0'), ('2030-01-01', '-2147483648, 0'), ('2030-01-01', '2147483647, 0'),
             ('2030-01-01', '0, -1'), ('2030-01-01', '0, 131072')) AS v (t, fields);
