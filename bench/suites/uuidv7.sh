# shellcheck shell=bash disable=SC2034,SC2154 # shares variables with run.sh and lib.sh
# Compares uuidv7() of PostgreSQL 18 or later with other keys, in calls and in COPY.
. "$bench/suites/copy.sh"

suite_uuidv7() {
    local rows=1000000 repetition
    if ! has 'uuidv7()'; then
        say 'This server has no uuidv7(): nothing is measured, and former results stay.'
        suites=${suites/uuidv7/}
        return
    fi
    while IFS='|' read -r label expression; do
        echo "$label|SELECT count($expression) FROM generate_series(1, $rows)"
    done <<<"$(grep -E '^(empty C function|randflake_(generate|next)\(\)|gen_random_uuid\(\)|uuidv7\(\))\|' <<<"$generators")" |
        time_queries uuidv7 $rows 'empty C function'
    seq "$copy_rows" >"$work/copy_rows"
    for repetition in $(seq 0 "$copy_repetitions"); do
        copy_into uuidv7 "$repetition" 'with a primary key' 'PRIMARY KEY' \
            <<<"$(grep -E '^(bigserial|randflake|randflake type|uuid v7 \(built in\)|uuid v4)\|' <<<"$keys")"
    done | sql -qAt -F, | awk -F, '$5 > 0' >>"$samples"
    sql -q -c 'DROP TABLE copy_rows'
}
