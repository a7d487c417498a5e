# shellcheck shell=bash disable=SC2034,SC2154 # shares variables with run.sh and lib.sh
# Counts the executor's instructions per row for each function, with callgrind in a single-user
# server. Batches use AVX2, because Valgrind does not support AVX-512.

suite_instructions() {
    local rows=$traced_rows label expression
    if ! command -v valgrind >/dev/null; then
        say "valgrind: not installed, skipped"
        return
    fi
    # Under Valgrind a server restarts slowly. A max_clock_skew of a minute avoids a hold-off.
    stop_server
    start_server randflake.max_clock_skew=1min
    sql -q -c "SET randflake.max_wait = '2min'" -c 'SELECT randflake_generate()' >/dev/null
    stop_server
    while IFS='|' read -r label expression; do
        count_instructions "$expression" "SELECT count($expression) FROM generate_series(1, $rows)"
        sample instructions "$label" 'the executor and the function' 'instructions per row' 1 \
            "$(awk -v rows="$rows" '/^summary:/ { printf "%.1f", $2 / rows }' "$work/callgrind")" \
            'empty C function'
    done <<<"$generators"
    start_server
}

# count_instructions EXPRESSION QUERY: runs the query in a single-user server, and writes the
# executor's instruction counts to $work/callgrind. Before the query, the session calls EXPRESSION
# once, to do its initial work. PL/pgSQL evaluates EXPRESSION without the executor, so its
# instructions are not counted.
count_instructions() {
    # shellcheck disable=SC2016  # PL/pgSQL's quotes
    printf '%s\n' 'DO $$DECLARE x text; BEGIN x := randflake_generate(); x := '"$1"'; END$$' "$2" |
        as_server valgrind --tool=callgrind --callgrind-out-file="$work/callgrind" \
        --toggle-collect=standard_ExecutorRun \
        "$(command -v postgres)" --single -c randflake.max_clock_skew=1min -D "$data" bench \
        >"$work/callgrind.log" 2>&1 || die "callgrind failed: $(tail -5 "$work/callgrind.log")"
    ! grep -m 1 -A 2 'ERROR: ' "$work/callgrind.log" >&2 || die "$1 failed"
}
