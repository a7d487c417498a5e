# shellcheck shell=bash disable=SC2034,SC2154 # shares variables with run.sh and lib.sh
# INSERT ... SELECT into a table with a primary key; then a little more after a checkpoint, when the
# first change to each page writes the whole page to the WAL.

suite_bulk() {
    local rows=$bulk_rows more=200000 repetition label column
    for repetition in $(seq 1 "$short_repetitions"); do
        while IFS='|' read -r label column; do
            sql -q -c 'DROP TABLE IF EXISTS bulk_rows' \
                -c "CREATE TABLE bulk_rows (id $column PRIMARY KEY, payload integer)" 2>/dev/null
            bulk_insert "$label" "$repetition" "$rows" ''
            sample bulk "$label" 'index size' MB "$repetition" \
                "$(value "SELECT round(pg_relation_size('bulk_rows_pkey') / 1e6, 1)")" bigserial
            bulk_insert "$label" "$repetition" "$more" ' after a checkpoint'
        done <<<"$keys"
    done
    sql -q -c 'DROP TABLE bulk_rows'
}

# bulk_insert LABEL REPETITION ROWS SUFFIX: time and WAL of so many rows, from a checkpoint on.
bulk_insert() {
    local label=$1 repetition=$2 rows=$3 suffix=$4 before seconds_taken wal
    sql -q -c CHECKPOINT
    before=$(value 'SELECT pg_current_wal_insert_lsn()')
    seconds_taken=$(value "SELECT bench_seconds('INSERT INTO bulk_rows (payload)
        SELECT n FROM generate_series(1, $rows) AS n')")
    wal=$(value "SELECT round((pg_current_wal_insert_lsn() - '$before'::pg_lsn) / 1e6, 1)")
    sample bulk "$label" "$rows rows$suffix" seconds "$repetition" "$seconds_taken" bigserial
    sample bulk "$label" "WAL of $rows rows$suffix" MB "$repetition" "$wal" bigserial
}
