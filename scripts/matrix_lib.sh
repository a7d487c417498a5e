# shellcheck shell=bash disable=SC2034 # what is set here is used by those who source this
# What makes a row of the matrix, for the scripts that fill it and print it.

readonly matrix=build/matrix # a directory for each row
readonly columns=(gcc clang unit regress isolation tap)

# What a short row runs in these columns: the tests that depend on PostgreSQL's version most, and
# those of the core that take seconds. Everything runs for one major at least, in scripts/test.sh.
readonly core_tap=(001_preload 010_settings 030_standby 045_connections 070_parallel
    130_foreign_state 200_lease 340_roles 400_upgrade 410_dump_restore)
readonly long_unit=(concurrency_test explorer_test explorer_broken_test)

# How many tests passed, by the closing lines of GoogleTest, pg_regress and prove.
count_passed() {
    sed -n -e 's/^\[  PASSED  \] \([0-9]*\) test.*/\1/p' \
        -e 's/.*All \([0-9]*\) tests passed.*/\1/p' \
        -e 's/^Files=[0-9]*, Tests=\([0-9]*\),.*/\1/p' "$1" |
        awk '{ sum += $1 } END { print sum + 0 }'
}
