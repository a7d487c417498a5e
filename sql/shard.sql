\set ECHO none
-- Tests shards: equal contiguous ranges of bigint. test/unit/shard_test.cpp tests all counts.
\pset format unaligned
\pset tuples_only on

SELECT shards, randflake_shard_ranges(shards)
FROM (VALUES (1), (3)) AS v (shards);
SELECT * FROM randflake_shard_ranges(1);

\echo '-- The largest number of shards'
SELECT randflake_shard('-9223372036854775808', 2147483647) AS first,
       randflake_shard(9223372036854775807, 2147483647) AS last;

\echo '-- Out of range'
SELECT randflake_shard(1, 0);
\echo :LAST_ERROR_SQLSTATE
SELECT randflake_shard(1, -1);
SELECT * FROM randflake_shard_ranges(0);
\echo :LAST_ERROR_SQLSTATE
SELECT * FROM randflake_shard_ranges('-2147483648');

\echo '-- NULL in, NULL out; a set of nothing is empty'
SELECT randflake_shard(NULL, 4) IS NULL AS id, randflake_shard(1, NULL) IS NULL AS shards;
SELECT count(*) FROM randflake_shard_ranges(NULL);
