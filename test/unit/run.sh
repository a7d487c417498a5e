#!/bin/bash
# run.sh FILTER SHARDS PROGRAM...: runs the tests that match FILTER, each PROGRAM in at most SHARDS
# parts. RUNNER is the command that runs a program, and LISTER is the command that lists its tests.

set -euo pipefail
. ../../scripts/lib.sh
export filter=$1 shards=$2
shift 2
# New sources bring new random schedules. The same sources bring the same schedules.
sources=$(find ../../src/core . -type f ! -name fleet_seeds.txt | LC_ALL=C sort | xargs cat | sha256sum)
export RANDFLAKE_FIRST_SEED=${RANDFLAKE_FIRST_SEED-$((0x${sources:0:12}))}
echo "RANDFLAKE_FIRST_SEED=$RANDFLAKE_FIRST_SEED"

# count FILTER PROGRAM: prints how many tests of PROGRAM match FILTER.
count() {
    # shellcheck disable=SC2086  # LISTER holds several words
    $LISTER "$2" --gtest_list_tests --gtest_filter="$1" | grep -c '^  ' || true
}

IFS=: read -ra patterns <<<"${filter%%-*}"
for pattern in "${patterns[@]}" "$filter"; do
    found=0
    for program; do
        found=$((found + $(count "$pattern" "$program")))
    done
    mapfile -t names < <(sed -nE 's,^TEST_P.(\w+)\, (\w+).*,*/\1.\2/*,p; s/^TEST(_F)?\((\w+), (\w+).*/\2.\3/p' ./*_test.cpp)
    [ $found -gt 0 ] || none_such test "$pattern" "${names[@]}"
done
for program; do
    tests=$(count "$filter" "$program")
    parts=$((tests < shards ? tests : shards))
    for ((i = 0; i < parts; i++)); do
        echo "$parts $i $program"
    done
done | xargs -P "$(nproc)" -L 1 sh -c 'GTEST_TOTAL_SHARDS=$0 GTEST_SHARD_INDEX=$1 \
    exec $RUNNER "$2" --gtest_brief=1 --gtest_filter="$filter"'
