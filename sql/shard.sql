\set ECHO none
-- Shards: bigint cut into equal contiguous ranges.
\pset format unaligned
\pset footer off

SELECT shards, randflake_shard_ranges(shards)
FROM (VALUES (1), (2), (3), (4), (7)) AS v (shards);
SELECT * FROM randflake_shard_ranges(1);

-- At any number of shards, the ranges leave no gap, do not overlap, span all of bigint, and differ
-- in size by one at most; randflake_shard agrees with them at both ends
SELECT shards, count(*) AS ranges,
       bool_and(lower <= upper) AS ordered,
       bool_and(lower = coalesce(previous + 1, '-9223372036854775808')) AS contiguous,
       max(upper) = 9223372036854775807 AS complete,
       max(upper::numeric - lower) - min(upper::numeric - lower) <= 1 AS equal,
       bool_and(randflake_shard(lower, shards) = shard
                AND randflake_shard(upper, shards) = shard) AS agrees
FROM (SELECT shards, r.*, lag(upper) OVER (PARTITION BY shards ORDER BY shard) AS previous
      FROM (VALUES (1), (2), (3), (5), (16), (100), (1023), (65536), (100003)) AS v (shards),
           randflake_shard_ranges(shards) AS r) AS ranges
GROUP BY shards ORDER BY shards;

\echo '-- The formula, in exact arithmetic'
SELECT count(*) AS failures
FROM (SELECT hashint8extended(n, 0) AS id, 1 + abs(hashint8extended(n, 1) % 2147483647) AS shards
      FROM generate_series(1, 10000) AS n
      UNION ALL
      SELECT id, shards
      FROM (VALUES ('-9223372036854775808'::bigint), (-1), (0), (1), (9223372036854775807)) AS i (id),
           (VALUES (1), (2), (3), (2147483646), (2147483647)) AS s (shards)) AS v
WHERE randflake_shard(id, shards::integer)
      <> div((id + 9223372036854775808::numeric) * shards, 18446744073709551616::numeric);

\echo '-- Twice the shards cut each one in two'
SELECT count(*) AS failures
FROM generate_series(1, 10000) AS n, hashint8extended(n, 0) AS id
WHERE randflake_shard(id, 24) / 2 <> randflake_shard(id, 12);

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

\echo '-- Partitions by range, made from the bounds'
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
