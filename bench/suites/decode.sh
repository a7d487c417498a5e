# shellcheck shell=bash disable=SC2034,SC2154 # shares variables with run.sh and lib.sh
# Looking into a table of identifiers.

suite_decode() {
    local rows=2000000
    sql -q -c "CREATE TABLE decode_ids AS SELECT randflake_generate() AS id FROM generate_series(1, $rows)" \
        -c 'VACUUM FREEZE ANALYZE decode_ids'
    time_queries decode $rows 'empty C function' <<END
empty C function|SELECT count(bench_empty(id)) FROM decode_ids
randflake_generated_at(id)|SELECT count(randflake_generated_at(id)) FROM decode_ids
(randflake_decode(id)).sequence|SELECT count((randflake_decode(id)).sequence) FROM decode_ids
FROM ids CROSS JOIN randflake_decode(id)|SELECT count(sequence) FROM decode_ids CROSS JOIN randflake_decode(id)
randflake_shard|SELECT count(randflake_shard(id, 1024)) FROM decode_ids
randflake_to_text(id)|SELECT count(randflake_to_text(id)) FROM decode_ids
END
    sql -q -c 'DROP TABLE decode_ids'
}
