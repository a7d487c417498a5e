\set ECHO none
-- Decoding and encoding identifiers. test/unit has the fields' edges and the diffusion of bits.
\pset format unaligned
\pset footer off
SET datestyle = ISO;
SET timezone = 'UTC';

\echo '-- Every bigint is an identifier: decode and encode are inverse on all of them'
CREATE TABLE any_id AS
SELECT hashint8extended(n, 0) AS id FROM generate_series(1, 10000) AS n
UNION ALL VALUES ('-9223372036854775808'::bigint), (-1), (0), (1), (9223372036854775807);
SELECT count(*),
       count(*) FILTER (WHERE id IS DISTINCT FROM randflake_encode(generated_at, node_id, sequence))
           AS failures,
       bool_and(generated_at BETWEEN '2024-10-27 03:33:20' AND '2058-11-05 17:10:23')
           AS in_range,
       bool_and(node_id BETWEEN 0 AND 131071 AND sequence BETWEEN 0 AND 131071) AS fields_in_range,
       count(*) FILTER (WHERE generated_at >= '2041-11-01 10:21:52') BETWEEN 4000 AND 6000
           AS half_with_top_bit
FROM any_id, randflake_decode(id);
SELECT count(*) AS failures FROM any_id
WHERE randflake_generated_at(id) IS DISTINCT FROM (randflake_decode(id)).generated_at;
DROP TABLE any_id;

\echo '-- Decoding drops fractions of a second; the time zone changes only the output'
SELECT generated_at, node_id, sequence
FROM randflake_decode(randflake_encode('2030-01-02 03:04:05.999999', 6, 7));
SELECT generated_at FROM randflake_decode(randflake_encode('2058-11-05 17:10:23.999999', 0, 0));
SELECT randflake_encode('2030-01-02 05:04:05+02', 6, 7) = randflake_encode('2030-01-02 03:04:05', 6, 7)
       AS same_instant;
SET timezone = 'Asia/Kolkata';
SELECT randflake_generated_at(randflake_encode('2030-01-02 03:04:05+00', 6, 7));
SET timezone = 'UTC';

\getenv source PG_ABS_SRCDIR
\set helper :source '/test/error_of.sql'
\i :helper

\echo '-- Out of range'
SELECT pg_temp.error_of(format('SELECT randflake_encode(%L, %s)', t, fields)) AS error
FROM (VALUES ('2024-10-27 03:33:19.999999', '0, 0'), ('2058-11-05 17:10:24', '0, 0'), ('infinity', '0, 0'),
             ('-infinity', '0, 0'), ('4713-01-01 BC', '0, 0'), ('294276-12-31', '0, 0'), ('2030-01-01', '-1, 0'),
             ('2030-01-01', '131072, 0'), ('2030-01-01', '-2147483648, 0'), ('2030-01-01', '2147483647, 0'),
             ('2030-01-01', '0, -1'), ('2030-01-01', '0, 131072')) AS v (t, fields);

\echo '-- NULL in, NULL out'
SELECT randflake_decode(NULL) IS NULL AS decode, randflake_generated_at(NULL) IS NULL AS generated_at,
       randflake_encode(NULL, 1, 1) IS NULL AND randflake_encode('2030-01-01', NULL, 1) IS NULL
       AND randflake_encode('2030-01-01', 1, NULL) IS NULL AS encode;
SELECT * FROM randflake_decode(NULL);
