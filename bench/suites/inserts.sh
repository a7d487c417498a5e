# shellcheck shell=bash disable=SC2034,SC2154 # shares variables with run.sh and lib.sh
# Measures pgbench, which inserts one row in each transaction into a table with a primary key.

suite_inserts() {
    local clients=8 repetition label column options commit
    for repetition in $(seq 1 "$insert_repetitions"); do
        for commit in on off; do
            while IFS='|' read -r label column options; do
                [ -z "$options" ] || continue # options only concern statements of many rows
                sql -q -c 'DROP TABLE IF EXISTS insert_rows' \
                    -c "CREATE TABLE insert_rows (id $column PRIMARY KEY, payload integer)" \
                    -c CHECKPOINT 2>/dev/null
                sample inserts "$label" "synchronous_commit $commit" 'rows per second' "$repetition" \
                    "$(PGOPTIONS="-c synchronous_commit=$commit" transactions_per_second $clients \
                        'INSERT INTO insert_rows (payload) VALUES (1)' -T "$seconds")" bigserial
            done <<<"$keys"
        done
    done
    sql -q -c 'DROP TABLE insert_rows'
}
