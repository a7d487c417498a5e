# shellcheck shell=bash disable=SC2034,SC2154 # shares variables with run.sh and lib.sh
# A new connection for every call, which shows the cost of a backend's first call.

suite_connect() {
    local repetition label expression
    local items
    items=$(echo 'SELECT 1|1'
        grep -v -e '_text()' -e '^random()' -e '^empty' <<<"$generators")
    for repetition in $(seq 1 "$repetitions"); do
        while IFS='|' read -r label expression; do
            sample connect "$label" 'connect + one call' microseconds "$repetition" \
                "$(transactions_per_second 1 "SELECT $expression" -C -t "$connections" |
                    awk '{ printf "%.1f", 1e6 / $1 }')" 'SELECT 1'
        done <<<"$items"
    done
}
