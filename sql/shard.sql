\set ECHO none
-- Tests shards: equal contiguous ranges of bigint. test/unit/shard_test.cpp tests all counts.
\getenv source PG_ABS_SRCDIR
\i :source/test/sql_test.sql

SELECT shards, randflake_shard_ranges(shards)
FROM (VALUES (1), (3)) AS v (shards);
SELECT * FROM randflake_shard_ranges(1);

\echo '-- The largest number of shards'
SELECT randflake_shard('-9223372036854775808', 2147483647) AS first,
       randflake_shard(9223372036854775807, 2147483647) AS last;

\echo '-- Out of range'
SELECT pg_temp.error_of('SELECT randflake_' || call) AS error
FROM unnest(ARRAY['shard(1, 0)', 'shard(1, -1)', 'shard_ranges(0)', $$shard_ranges('-2147483648')$$]) AS call;
