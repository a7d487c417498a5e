# shellcheck shell=bash disable=SC2034,SC2154 # shares variables with run.sh and lib.sh
# One call per row, with the executor's share, which the empty function shows. And the same under
# several secrets, relative to one.

suite_calls() {
    local rows=2000000
    while IFS='|' read -r label expression; do
        echo "$label|SELECT count($expression) FROM generate_series(1, $rows)"
    done <<<"$generators" | time_queries calls $rows 'empty C function'
    time_secrets $rows
}

# The times from which on further secrets are in use. The last one is: the others skip as many
# numbers as they can by now.
further_secrets() {
    printf '%s\n' '00112233445566778899aabbccddeeff' '10112233445566778899aabbccddeeff from 2025-06-01T00:00:00Z' \
        '20112233445566778899aabbccddeeff from 2026-01-01T00:00:00Z' \
        '30112233445566778899aabbccddeeff from 2026-11-01T00:00:00Z' | sed -n "$1"
}

# time_secrets ROWS: as time_queries, over servers that differ in their secrets alone.
time_secrets() {
    local rows=$1 count file data repetition
    local -A lines=([1]=1p [2]='1p;4p' [4]=p)
    for count in 1 2 4; do
        data=$work/secrets$count file=$work/secrets$count.txt
        further_secrets "${lines[$count]}" | as_server tee "$file" >/dev/null
        as_server chmod 600 "$file"
        as_server initdb -D "$data" -U bench -A trust -E UTF8 --no-locale >"$work/initdb.log"
        { server_settings | grep -v '^randflake.secret '; echo "randflake.secret_file = '$file'"; echo "port = 600$count"; } |
            as_server tee -a "$data/postgresql.conf" >/dev/null
        as_server pg_ctl -D "$data" -l "$work/server.log" -w start >/dev/null
        PGDATABASE=postgres PGPORT=600$count sql -q -c 'CREATE DATABASE bench'
        { echo 'CREATE EXTENSION randflake;'; sed -n '/^CREATE FUNCTION bench_seconds/,/^\$\$;/p' "$bench/setup.sql"; } |
            PGPORT=600$count sql -q
    done
    for repetition in $(seq 0 "$repetitions"); do
        for count in 1 2 4; do
            PGPORT=600$count sql -At -F, -c "SELECT 'calls', 'randflake_generate() secrets: $count', 'time', 'ns per row', $repetition,
                round((bench_seconds('SELECT count(randflake_generate()) FROM generate_series(1, $rows)') * 1e9 / $rows)::numeric, 2),
                'randflake_generate() secrets: 1'"
        done
    done | awk -F, '$5 > 0' >>"$samples"
    for count in 1 2 4; do
        as_server pg_ctl -D "$work/secrets$count" -m fast -w stop >/dev/null
    done
}
