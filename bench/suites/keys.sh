# shellcheck shell=bash disable=SC2034,SC2154 # shares variables with run.sh and lib.sh
# Measures the time, WAL, index size and leaf density of primary keys while one session or eight
# sessions fill a table. Then inserts rows after a checkpoint, and reads random and new rows.

suite_keys() {
    local rows sessions plural repetition label column options order
    local -A repetitions_of
    for rows in $keys_rows; do
        repetition=$((${repetitions_of[$rows]:-0} + 1))
        repetitions_of[$rows]=$repetition
        for sessions in 1 8; do
            [ "$sessions" = 1 ] && plural='' || plural=s
            while IFS='|' read -r label column options order; do
                measure_key "$label" "$column" "$options" "$order"
            done <<<"$keys"
        done
    done
    sql -q -c 'DROP TABLE keys_rows'
}

# key_sample METRIC UNIT VALUE: records a sample for suites/keys.sh.
key_sample() {
    sample keys "$label" "$1: $rows rows by $sessions session${plural}" "$2" "$repetition" "$3" bigserial
}

make_keys() {
    sql -q -c 'DROP TABLE IF EXISTS keys_rows' \
        -c "CREATE TABLE keys_rows (id $column PRIMARY KEY, payload integer)" 2>/dev/null
}

# measure_key LABEL COLUMN OPTIONS ORDER: measures one table that sessions with these options fill.
# Uses the caller's $rows, $sessions and $repetition.
measure_key() {
    local label=$1 column=$2 order=$4
    local -x PGOPTIONS=$3
    make_keys
    insert_keys "$rows"
    key_sample insert seconds "$elapsed"
    key_sample WAL MB "$wal"
    key_sample 'index size' MB "$(value "SELECT round(pg_relation_size('keys_rows_pkey') / 1e6, 1)")"
    if has 'pgstatindex(text)'; then
        key_sample 'leaf density' % "$(value "SELECT avg_leaf_density FROM pgstatindex('keys_rows_pkey')")"
    fi
    insert_keys $((rows / 25))
    key_sample 'WAL after a checkpoint' MB "$wal"
    if [ "$sessions" = 1 ]; then
        read_keys
    fi
}

# insert_keys ROWS: after a checkpoint, all sessions insert ROWS rows. Sets elapsed and wal.
insert_keys() {
    local before started session
    sql -q -c CHECKPOINT
    before=$(value 'SELECT pg_current_wal_insert_lsn()')
    started=$EPOCHREALTIME
    for session in $(seq "$sessions"); do
        sql -q -c "INSERT INTO keys_rows (${order:+id, }payload)
            SELECT ${order:+randflake_generate() AS id, }n
            FROM generate_series(1, $(($1 / sessions))) AS n $order" &
    done
    wait
    elapsed=$(awk "BEGIN { print $EPOCHREALTIME - $started }")
    wal=$(value "SELECT round((pg_current_wal_insert_lsn() - '$before'::pg_lsn) / 1e6, 1)")
}

# Measures single look-ups of random rows. If keys are in the order of inserts, also measures reads
# of the newest rows. Each look-up or read is short, so the function repeats it.
read_keys() {
    local lookups=100000 newest=$((rows / 100)) ordered look_up
    local run=$repetition repetition
    sql -q -c 'VACUUM ANALYZE keys_rows' \
        -c "CREATE TABLE keys_wanted AS SELECT id FROM keys_rows ORDER BY random() LIMIT $lookups"
    ordered=$(value "SELECT correlation > 0.9 FROM pg_stats WHERE tablename = 'keys_rows' AND attname = 'id'")
    for look_up in $(seq "$look_up_repetitions"); do
        repetition=$((run * 100 + look_up)) # only serves to pair samples
        key_sample 'point look-up' 'ns per row' "$(value "SET enable_hashjoin = off; SET enable_mergejoin = off;
            SELECT round(((bench_seconds('SELECT count(payload) FROM keys_wanted JOIN keys_rows USING (id)')).elapsed
                * 1e9 / $lookups)::numeric)" | tail -n 1)"
        [ "$ordered" = t ] || continue
        key_sample 'newest 1 %' 'ns per row' "$(value "SELECT round(((bench_seconds('SELECT count(payload)
            FROM (SELECT payload FROM keys_rows ORDER BY id DESC LIMIT $newest) AS newest')).elapsed
            * 1e9 / $newest)::numeric)")"
    done
    sql -q -c 'DROP TABLE keys_wanted'
}
