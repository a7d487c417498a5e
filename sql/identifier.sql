\set ECHO none
-- Tests the text form of identifiers (base32hex of the number), their fields, and shards: equal
-- contiguous ranges of bigint. Unit tests (text_test, layout_test, shard_test) cover all digits,
-- the edges of fields, the diffusion of bits, and all counts of shards.
\getenv source PG_ABS_SRCDIR
\i :source/test/sql_test.sql

\echo '-- The text form'
SELECT id, randflake_to_text(id) AS text
FROM (VALUES (0::bigint), (32), (9223372036854775807), (-9223372036854775808), (-1)) AS v (id);

\echo '-- Either case and leading zeros are read'
SELECT randflake_from_text('fvvvvvvvvvvvv'), randflake_from_text('FVVVVVVVVVVVV'),
       randflake_from_text('7vvvvvvvvvvvv'), randflake_from_text('8000000000000');

\echo '-- Malformed; a message quotes a short part'
SELECT pg_temp.error_of(format('SELECT randflake_from_text(%L)', form)) AS error
FROM unnest(ARRAY['', '00000000000000', 'g000000000000', '12w4', E'1\n', '1€', '𝟙', repeat('0', 10000), repeat('€', 10000)]) AS form;

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

\echo '-- Shards'
SELECT shards, randflake_shard_ranges(shards)
FROM (VALUES (1), (3)) AS v (shards);
SELECT * FROM randflake_shard_ranges(1);

\echo '-- The largest number of shards'
SELECT randflake_shard('-9223372036854775808', 2147483647) AS first,
       randflake_shard(9223372036854775807, 2147483647) AS last;

\echo '-- Out of range'
SELECT pg_temp.error_of('SELECT randflake_' || call) AS error
FROM unnest(ARRAY['shard(1, 0)', 'shard(1, -1)', 'shard_ranges(0)', $$shard_ranges('-2147483648')$$]) AS call;
