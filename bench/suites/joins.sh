# shellcheck shell=bash disable=SC2034,SC2154 # shares variables with run.sh and lib.sh
# Hash joins and hash aggregation of tables of keys, made at 1,000 a second: processor time. The keys are the
# same in each run, except for UUIDs.

# label|type|key number n
join_items="bigserial|bigint|n
randflake|bigint|randflake_encode('2025-01-01 UTC'::timestamptz + n / 1000 * interval '1 s', 1, n % 1000)
randflake type|randflake|randflake_encode('2025-01-01 UTC'::timestamptz + n / 1000 * interval '1 s', 1, n % 1000)
snowflake|bigint|snowflake_lower('2025-01-01 UTC'::timestamptz + n * interval '1 ms')
uuid v4|uuid|gen_random_uuid()"

suite_joins() {
    local rows
    for rows in $join_rows; do
        fill_joined_tables
        hash_queries
    done
    sql -q -c 'DROP SCHEMA joins CASCADE' 2>/dev/null
}

# join_items, as lines "label|table|type|key".
joined_tables() {
    awk -F'|' -v OFS='|' '{ print $1, "joins.t" NR, $2, $3 }' <<<"$join_items"
}

fill_joined_tables() {
    local label table type key
    {
        echo 'SET client_min_messages = warning; DROP SCHEMA IF EXISTS joins CASCADE; CREATE SCHEMA joins;'
        while IFS='|' read -r label table type key; do
            echo "CREATE TABLE $table (id $type);" \
                "INSERT INTO $table SELECT $key FROM generate_series(1, $rows) AS n;" \
                "VACUUM ANALYZE $table;"
        done < <(joined_tables)
    } | sql -q
}

# One backend runs the queries of all tables in turn, repetition after repetition; the first round only
# warms up.
hash_queries() {
    local repetition label table type key
    {
        echo 'SET enable_mergejoin = off; SET enable_nestloop = off; SET enable_sort = off;'
        for repetition in $(seq 0 "$join_repetitions"); do
            while IFS='|' read -r label table type key; do
                hash_query "$repetition" "$label" 'hash join' 'Hash Join' \
                    "SELECT count(*) FROM $table AS a JOIN $table AS b USING (id)"
                hash_query "$repetition" "$label" grouping HashAggregate \
                    "SELECT count(*) FROM (SELECT id FROM $table GROUP BY id) AS ids"
            done < <(joined_tables)
        done
    } | sql -qAt -F, | awk -F, '$5 > 0' >>"$samples"
}

# hash_query REPETITION LABEL METRIC PLAN QUERY
hash_query() {
    [ "$1" -gt 0 ] || echo "SELECT bench_require_plan(\$query\$$5\$query\$, '$4');"
    echo "SELECT 'joins', '$2', '$3: $rows rows', 'ns per row', $1," \
        "round((bench_processor_seconds(\$query\$$5\$query\$) * 1e9 / $rows)::numeric, 2), 'bigserial';"
}
