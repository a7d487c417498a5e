\set ECHO none
-- Shards: bigint cut into equal contiguous ranges. For all counts see test/unit/shard_test.cpp.
\pset format unaligned
\pset footer off

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

\echo '-- Partitions by range, with these bounds'
CREATE TABLE sharded (id bigint PRIMARY KEY DEFAULT randflake_generate()) PARTITION BY RANGE (id);
SELECT format('CREATE TABLE sharded_%s PARTITION OF sharded FOR VALUES FROM (%s) TO (%s)', shard,
              CASE shard WHEN 0 THEN 'MINVALUE' ELSE lower::text END,
              CASE shard WHEN 4 THEN 'MAXVALUE' ELSE (upper + 1)::text END)
FROM randflake_shard_ranges(5) \gexec
INSERT INTO sharded SELECT FROM generate_series(1, 5000);
INSERT INTO sharded SELECT lower FROM randflake_shard_ranges(5);
INSERT INTO sharded SELECT upper FROM randflake_shard_ranges(5);
SELECT tableoid::regclass AS partition, count(*) > 800 AS has_its_part,
       count(*) FILTER (WHERE randflake_shard(id, 5)
                              <> right(tableoid::regclass::text, 1)::integer) AS misplaced
FROM sharded GROUP BY tableoid ORDER BY tableoid::regclass::text;
DROP TABLE sharded;
