# shellcheck shell=bash disable=SC2034,SC2154 # shares variables with run.sh and lib.sh
# Compares servers with several secrets to a server with one secret. The servers run in turn.
# Measures processor time, because it depends less on other load than elapsed time does.

# The last secret is in use, and the earlier secrets cover the whole time since the epoch. This is
# the worst case, in which servers skip the most numbers.
secret_lines() {
    printf '%s\n' '00112233445566778899aabbccddeeff' '10112233445566778899aabbccddeeff from 2025-06-01T00:00:00Z' \
        '20112233445566778899aabbccddeeff from 2026-01-01T00:00:00Z' \
        '30112233445566778899aabbccddeeff from 2026-11-01T00:00:00Z' | sed -n "$1"
}

# secret_queries ROWS
secret_queries() {
    cat <<END
randflake_generate()|SELECT count(randflake_generate()) FROM generate_series(1, $1)
randflake_generate(count)|SELECT count(*) FROM randflake_generate($1)
randflake_next()|SELECT count(randflake_next()) FROM generate_series(1, $1)
randflake_generated_at(id)|SELECT count(randflake_generated_at(id)) FROM ids, generate_series(1, $1 / 100000)
END
}

suite_secrets() {
    local rows=2000000 count data file repetition label query
    local -A lines=([1]=1p [2]='1p;4p' [4]=p)
    for count in 1 2 4; do
        data=$work/secrets$count file=$work/secrets$count.txt
        secret_lines "${lines[$count]}" | as_server tee "$file" >/dev/null
        as_server chmod 600 "$file"
        PGPORT=600$count make_server "port = 600$count" "randflake.secret = ''" "randflake.secret_file = '$file'"
        PGPORT=600$count sql -q -c 'CREATE TABLE ids AS SELECT id FROM randflake_generate(100000) AS id'
    done
    for repetition in $(seq 0 "$repetitions"); do
        while IFS='|' read -r label query; do
            for count in 1 2 4; do
                PGPORT=600$count sql -At -F, -c "SELECT 'secrets', '$count', '$label', 'ns per row', $repetition,
                    round(((bench_seconds('$query')).processor * 1e9 / $rows)::numeric, 2), '1'" </dev/null
            done
        done < <(secret_queries $rows)
    done | awk -F, '$5 > 0' >>"$samples"
    for count in 1 2 4; do data=$work/secrets$count stop_server; done
}
