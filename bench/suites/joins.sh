# shellcheck shell=bash disable=SC2034,SC2154 # shares variables with run.sh and lib.sh
# Hash joins and hash aggregation of tables of keys, made at 1,000 a second: processor time, and how
# the hashes are distributed. The keys are the same in each run, except for UUIDs.

# label|type|key number n|hash function
join_items="bigserial|bigint|n|hashint8
randflake|bigint|randflake_encode('2025-01-01 UTC'::timestamptz + n / 1000 * interval '1 s', 1, n % 1000)|hashint8
randflake type|randflake|randflake_encode('2025-01-01 UTC'::timestamptz + n / 1000 * interval '1 s', 1, n % 1000)|randflake_hash
snowflake|bigint|snowflake_lower('2025-01-01 UTC'::timestamptz + n * interval '1 ms')|hashint8
uuid v4|uuid|gen_random_uuid()|uuid_hash"

suite_joins() {
    local rows
    for rows in $join_rows; do
        fill_joined_tables
        hash_distribution
        hash_queries
    done
    sql -q -c 'DROP SCHEMA joins CASCADE' 2>/dev/null
}

# join_items, as lines "label|table|type|key|hash".
joined_tables() {
    awk -F'|' -v OFS='|' '{ print $1, "joins.t" NR, $2, $3, $4 }' <<<"$join_items"
}

fill_joined_tables() {
    local label table type key hash
    {
        echo 'SET client_min_messages = warning; DROP SCHEMA IF EXISTS joins CASCADE; CREATE SCHEMA joins;'
        while IFS='|' read -r label table type key hash; do
            echo "CREATE TABLE $table (id $type);" \
                "INSERT INTO $table SELECT $key FROM generate_series(1, $rows) AS n;" \
                "VACUUM ANALYZE $table;"
        done < <(joined_tables)
    } | sql -q
}

# Distinct hashes, and the chi-square of rows over 64 hash partitions with the probability of one as
# large or larger.
hash_distribution() {
    local label table type key hash chi_square
    while IFS='|' read -r label table type key hash; do
        sample joins "$label" "distinct hashes: $rows rows" hashes 1 \
            "$(value "SELECT count(DISTINCT $hash(id)) FROM $table")" ''
        chi_square=$(sql -qAt <<END
CREATE TABLE ${table}_parted (id $type) PARTITION BY HASH (id);
SELECT format('CREATE TABLE ${table}_%s PARTITION OF ${table}_parted FOR VALUES WITH (MODULUS 64, REMAINDER %s)', r, r)
  FROM generate_series(0, 63) AS r \gexec
INSERT INTO ${table}_parted TABLE $table;
SELECT round(sum((coalesce(count, 0) - $rows / 64.0) ^ 2) / ($rows / 64.0), 1)
  FROM (SELECT to_regclass(format('${table}_%s', r)) AS tableoid FROM generate_series(0, 63) AS r) AS partitions
  LEFT JOIN (SELECT tableoid, count(*) FROM ${table}_parted GROUP BY tableoid) AS counts USING (tableoid);
DROP TABLE ${table}_parted;
END
)
        sample joins "$label" "chi-square of 64 hash partitions: $rows rows" '63 degrees of freedom' 1 "$chi_square" ''
        sample joins "$label" "p-value: $rows rows" probability 1 "$(chi_square_p "$chi_square" 63)" ''
    done < <(joined_tables)
}

# One backend runs the queries of all tables in turn, repetition after repetition; the first round only
# warms up.
hash_queries() {
    local repetition label table type key hash
    {
        echo 'SET enable_mergejoin = off; SET enable_nestloop = off; SET enable_sort = off;'
        for repetition in $(seq 0 "$join_repetitions"); do
            while IFS='|' read -r label table type key hash; do
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
