# shellcheck shell=bash disable=SC2034,SC2154 # shares variables with run.sh and lib.sh
# Loads rows with ordered keys, random keys and sorted loads: a table five times, then an index of 4
# times shared_buffers, and a table under one node id. Measures times and the index.

# shellcheck source=bench/suites/keys.sh
. "$bench/suites/keys.sh"

suite_loads() {
    local sessions=1 label column options order
    while IFS='|' read -r label column options order; do
        [[ ! $label =~ ^bigserial|^randflake ]] || load "$label" "$column" "$options" "$order"
    done <<<"$keys"
    sql -q -c 'DROP TABLE keys_rows'
}

# load LABEL COLUMN OPTIONS ORDER: measures loads of one key.
load() {
    local label=$1 column=$2 order=$4
    local -x PGOPTIONS=$3
    make_keys
    for _ in 1 2 3 4 5; do
        insert_keys $((load_rows / 5))
    done
    sample loads "$label" 'five loads: index size' MB 1 \
        "$(value "SELECT round(pg_relation_size('keys_rows_pkey') / 1e6, 1)")" bigserial
    while [ "$(value "SELECT pg_relation_size('keys_rows_pkey') < 4e6 * $cold_megabytes")" = t ]; do
        insert_keys "$cold_rows"
    done
    restart "shared_buffers=${cold_megabytes}MB"
    load_cold "$cold_rows" 'cold load'
    [ "$order" ] || load_cold $((10 * cold_rows)) 'long cold load'
    restart randflake.node_count=1
    make_keys
    insert_keys "$load_rows"
    sample loads "$label" 'one node id: time' seconds 1 "$elapsed" bigserial
    restart
}

# load_cold ROWS NAME: loads more rows than shared_buffers hold. Counts pages of the index.
load_cold() {
    sql -q -o /dev/null -c 'SELECT pg_stat_reset()'
    insert_keys "$1"
    sample loads "$label" "$2: time" seconds 1 "$elapsed" bigserial
    sleep 1 # until the statistics are there
    sample loads "$label" "$2: pages read per row" pages 1 "$(value "SELECT round(idx_blks_read::numeric / $1, 3)
        FROM pg_statio_user_indexes WHERE indexrelname = 'keys_rows_pkey'")" bigserial
}

restart() {
    stop_server
    start_server "$@"
}
