#!/bin/bash
# Shows which lines of src/core and src/pg are reached by the unit, regression and TAP tests, with
# PostgreSQL's assertions on. Fails if the coverage is below 96 %. If only some tests run, it is.
#
#   scripts/coverage.sh                    runs all tests and prints a line for each file
#   scripts/coverage.sh regress [NAME...]  runs only these server tests; see scripts/tempcheck.sh
#
# A killed process leaves no coverage data. Needs gcovr. The instrumented build stays installed.

set -euo pipefail
cd "$(dirname "$(realpath "$0")")/.."
. scripts/lib.sh

find_postgresql
results=$PWD/build/coverage
rm -rf "$results"
mkdir -p "$results"

make -s -j"$(nproc)" -C test/unit check BUILD="$results/unit" OPTIMIZE='-O1 --coverage' WERROR=0 \
    EXCEPT='explorer_test explorer_mutants_test fleet_simulation_test fleet_mutants_test'

# Every process writes its data below $data, so the server's user must be able to write there.
data=$(mktemp -d "${TMPDIR:-/tmp}/randflake-coverage.XXXXXX")
trap 'rm -rf "$data"' EXIT
chmod 777 "$data"
build_and_install PG_CPPFLAGS=-DUSE_ASSERT_CHECKING COPT='-O1 --coverage'
GCOV_PREFIX=$data VECTOR_PATH=${VECTOR_PATH-plain} scripts/tempcheck.sh "$@"

# gcov needs the compiler's notes (.gcno) beside the tests' data (.gcda). The unit tests and the
# server compile different lines of src/core, so src/core's coverage counts only the unit tests.
mkdir -p "$results/server"
cp --parents src/pg/*/*.gcno "$results/server/"
(cd "$data$PWD" && cp --parents src/pg/*/*.gcda "$results/server/")
gcovr --root . --filter src/ --sort-uncovered --txt "$results/report" --print-summary \
    --gcov-ignore-parse-errors --fail-under-line 96 "$results/unit" "$results/server"
