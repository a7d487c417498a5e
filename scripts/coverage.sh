#!/bin/bash
# Which lines of src/core and src/pg the tests reach: unit tests, regression, isolation and TAP
# tests, with PostgreSQL's assertions on.
#
#   scripts/coverage.sh                    runs them all and prints a line a file
#   scripts/coverage.sh regress [NAME...]  with these server tests only; see scripts/tempcheck.sh
#   scripts/coverage.sh print              prints the figures of the last run once more, and fails
#                                          below 95 % of lines
#
# Processes that are killed, in crash tests, leave no figures. PG_CONFIG chooses the PostgreSQL. The
# extension stays installed as it was built for this.

set -euo pipefail
cd "$(dirname "$(realpath "$0")")/.."
. scripts/lib.sh

results=build/coverage
goal=95

# Prints a line a file and a total, from the output of gcov: COUNT:LINE:TEXT, where COUNT is - for a
# line without code and ##### for one that was not reached. Templates and headers come several times.
summarize() {
    awk -F: -v goal="$goal" '
        $2 + 0 == 0 && $3 == "Source" { file = $4; sub(".*/src/", "src/", file); next }
        file !~ /^src\/(core|pg)\// || $2 + 0 == 0 { next }
        {
            count = $1
            gsub(/[ *]/, "", count)
            if (count == "-" || count !~ /^[0-9#=]/) next
            reached = count ~ /^[0-9]/ && count + 0 > 0
            line = file ":" ($2 + 0)
            if (!(line in seen)) { seen[line] = 0; lines[file]++ }
            if (reached && !seen[line]) { seen[line] = 1; hit[file]++ }
        }
        END {
            for (file in lines) {
                printf "%5.1f %% of %5d lines  %s\n", 100 * hit[file] / lines[file], lines[file], file | "sort -k6"
                all += lines[file]
                all_hit += hit[file]
            }
            close("sort -k6")
            printf "%5.1f %% of %5d lines  in all, goal %d %%\n", 100 * all_hit / all, all, goal
            for (line in seen)
                if (!seen[line]) print line | "sort -t: -k1,1 -k2n >'$results'/missed"
        }'
}

print() {
    cat "$results/report"
    awk -v goal="$goal" '/ in all, / { ok = $1 + 0 >= goal } END { exit !ok }' "$results/report"
}

[ "${1-}" != print ] || {
    print
    exit
}

find_postgresql
rm -rf "$results"
mkdir -p "$results"

make -s -j"$(nproc)" -C test/unit check BUILD="$PWD/$results/unit" OPTIMIZE='-O1 --coverage' WERROR=0 \
    EXCEPT='explorer_test explorer_broken_test lease_simulation_test lease_simulation_broken_test'

# Every process adds its figures to files below $data, which the server's user must be able to make.
data=$(mktemp -d "${TMPDIR:-/tmp}/randflake-coverage.XXXXXX")
trap 'rm -rf "$data"' EXIT
chmod 777 "$data"
build_and_install PG_CPPFLAGS=-DUSE_ASSERT_CHECKING COPT='-O1 --coverage'
GCOV_PREFIX=$data VECTOR_PATH=${VECTOR_PATH-plain} scripts/tempcheck.sh "$@"

# What gcov reads lies beside each other: notes from the compiler, data from the tests.
for notes in src/*/*.gcno; do
    cp "$notes" "$data$PWD/${notes%/*}/"
done
{
    gcov -t "$data$PWD"/src/*/*.gcda
    cd test/unit # from where these were compiled
    gcov -t ../../"$results"/unit/{,core/}*.gcda
} 2>"$results/gcov.log" | summarize >"$results/report"
cat "$results/report"
