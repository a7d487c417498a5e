# shellcheck shell=bash disable=SC2034,SC2154 # shares variables with run.sh and lib.sh
# Makes the data for charts in docs. The first line counts how many of a million identifiers are in
# each of 64 equal ranges. The other lines place 300 consecutive keys on a scale from 0 to 999.

suite_shape() {
    mkdir -p "$results"
    sql -Atq >"$results/shape.csv" <<'SQL'
SELECT 'ranges,' || string_agg(n::text, ',' ORDER BY shard)
FROM (SELECT randflake_shard(id, 64) AS shard, count(*) AS n FROM randflake_generate(1000000) AS id GROUP BY 1) AS counts;
SELECT 'randflake_generate(),' || string_agg(randflake_shard(id, 1000)::text, ',' ORDER BY n)
FROM (SELECT n, randflake_generate() AS id FROM generate_series(1, 300) AS n OFFSET 0) AS made;
CREATE TABLE made AS SELECT n, snowflake_generate() AS id FROM generate_series(1, 300) AS n WHERE pg_sleep(0.01 + n * 0) IS NOT NULL;
SELECT 'snowflake_generate(),' || string_agg(((id - first) / ((last - first) / 999))::text, ',' ORDER BY n)
FROM made, (SELECT min(id) AS first, max(id) AS last FROM made) AS all_of_them;
SQL
}
