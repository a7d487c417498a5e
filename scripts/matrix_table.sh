#!/bin/bash
# Prints the table of the matrix, major x suite, from what scripts/matrix.sh and scripts/test.sh left
# in build/matrix, and below it what failed. An empty cell is a failure.
#
#   scripts/matrix_table.sh ROW...

set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/lib.sh
. scripts/matrix_lib.sh

passed=0 failed=0 failures=()

# add_failure LOG WORD...: keeps what to say about it and the end of its log for below the table.
add_failure() {
    failures+=("$red${*:2}$plain")
    [ ! -s "$1" ] || failures+=("$(tail -n 40 "$1" | sed "s|/mnt/|$(dirname "$1")/|g; s/^/    /")")
}

# Sets `cell` to a cell's text, and counts it.
look_up() {
    local row=$matrix/$1 outcome
    outcome=$(sed -n "s/^$2 //p" "$row/cells")
    cell=${outcome%% *}
    case $cell in
        '')
            cell=FAIL
            failed=$((failed + 1))
            ;;
        FAIL)
            failed=$((failed + 1))
            add_failure "$row/$2.log" "$1, $2: ${outcome#FAIL }"
            ;;
        *) passed=$((passed + 1)) ;;
    esac
}

headline "$(printf '%-34s' PostgreSQL; printf '%10s' "${columns[@]}" seconds)"
short=
for name; do
    cells=$matrix/$name/cells
    mkdir -p "$matrix/$name"
    touch "$cells"
    printf '%-34s' "$name: $(sed -n 's/^version PostgreSQL //p' "$cells")"
    for column in "${columns[@]}"; do
        look_up "$name" "$column"
        printf '%10s' "$cell"
        [[ $cell != *'*' ]] || short=1
    done
    printf '%10s\n' "$(sed -n 's/^seconds //p' "$cells")"
    grep -q '^seconds ' "$cells" ||
        add_failure "$matrix/$name/row.log" "$name: it did not come to its end"
done
echo "gcc, clang: builds without warnings; the others: tests passed. Logs: $matrix/*/*.log"
if [ -n "$short" ]; then
    echo "* of unit all but ${long_unit[*]}; of tap only ${core_tap[*]}" | fold -s -w 100
fi
[ "$failed" = 0 ] || printf '%s\n' '' "${failures[@]}"
echo "matrix: $passed passed, $failed failed"
[ "$failed" = 0 ]
