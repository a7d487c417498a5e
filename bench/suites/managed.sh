# shellcheck shell=bash disable=SC2034,SC2154 # shares variables with run.sh and lib.sh
# Compares the managed script with the library and gen_random_uuid(), for one and many identifiers.

suite_managed() {
    local rows=100000
    make -s managed
    { echo 'BEGIN;'; cat managed/randflake.sql; echo "COMMIT; SELECT randflake.randflake_configure(NULL, 1);"; } | sql -q
    time_queries managed $rows 'gen_random_uuid()' <<END
gen_random_uuid()|SELECT count(gen_random_uuid()) FROM generate_series(1, $rows)
library: one|SELECT count(randflake_generate()) FROM generate_series(1, $rows)
managed: one|SELECT count(randflake.randflake_generate()) FROM generate_series(1, $rows)
managed: many|SELECT count(id) FROM randflake.randflake_generate($rows) AS id
END
    sql -q -c 'DROP SCHEMA randflake CASCADE'
}
