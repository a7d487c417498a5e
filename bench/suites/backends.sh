# shellcheck shell=bash disable=SC2034,SC2154 # shares variables with run.sh and lib.sh
# Calls functions in 1 to 16 backends at once. Each function's baseline is one backend.

suite_backends() {
    local rows=200000 repetition clients label expression tps
    local items
    items=$(grep -v -e '_text()' -e '^random()' <<<"$generators")
    for repetition in $(seq 1 "$short_repetitions"); do
        for clients in 1 2 4 8 16; do
            while IFS='|' read -r label expression; do
                tps=$(transactions_per_second "$clients" \
                    "SELECT count($expression) FROM generate_series(1, $rows)" -T "$seconds")
                sample backends "$label; $clients" throughput 'million calls per second' \
                    "$repetition" "$(awk "BEGIN { printf \"%.4f\", $tps * $rows / 1e6 }")" "$label; 1"
            done <<<"$items"
        done
    done
}
