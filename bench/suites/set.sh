# shellcheck shell=bash disable=SC2034,SC2154 # shares variables with run.sh and lib.sh
# Many identifiers from one call, against a call per row.

suite_set() {
    local rows=5000000
    time_queries set $rows 'a call per row' <<END
a call per row|SELECT count(randflake_generate()) FROM generate_series(1, $rows)
randflake_generate($rows) in FROM|SELECT count(*) FROM randflake_generate($rows)
randflake_generate($rows) in SELECT|SELECT count(*) FROM (SELECT randflake_generate($rows) OFFSET 0) AS ids
generate_series alone|SELECT count(*) FROM generate_series(1, $rows)
END
}
