# shellcheck shell=bash disable=SC2034,SC2154 # shares variables with run.sh and lib.sh
# Measures one call for each row. The empty function shows how much of the time the executor takes.

suite_calls() {
    local rows=2000000
    while IFS='|' read -r label expression; do
        echo "$label|SELECT count($expression) FROM generate_series(1, $rows)"
    done <<<"$generators
randflake_mask()|randflake_mask(generate_series, 'customer')
randflake_unmask()|randflake_unmask(generate_series, 'customer')" | time_queries calls $rows 'empty C function'
}
