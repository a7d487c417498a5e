#!/bin/bash
# One row of the matrix: builds the extension for one PostgreSQL with gcc and with clang, and tests
# gcc's. scripts/matrix.sh runs this inside a root, where /mnt/gcc and /mnt/clang are copies of the
# source.
#
#   scripts/matrix_row.sh [-s] PG_CONFIG
#
# Leaves /mnt/COLUMN.log, and in /mnt/cells a line for each column: its name, and "ok" for a build,
# the number of tests passed, with a star if -s (short) left some out, or FAIL and why; before them
# the server's version, after them the seconds it all took.

set -uo pipefail
cd /mnt || exit
. gcc/scripts/lib.sh
# shellcheck source=scripts/matrix_lib.sh
. gcc/scripts/matrix_lib.sh
unit_options=() tap_files=() star=
if [ "$1" = -s ]; then
    unit_options=(EXCEPT="${long_unit[*]}") tap_files=("${core_tap[@]}") star='*'
    shift
fi
export TMPDIR=/mnt/tmp MAKEFLAGS=--no-print-directory PG_CONFIG=$1
# The first process of a namespace ignores signals that it has no handler for.
trap 'exit 1' INT TERM

readonly limit=1800 # seconds for a column; only a hang takes as long

# Servers refuse to run as root, and builds need not.
export user=nobody
! id postgres >/dev/null 2>&1 || user=postgres

# Puts what `make install` writes into memory, so that neither the machine nor the cached root
# changes.
shield_installation() {
    local prefix directory
    prefix=$("$PG_CONFIG" --pkglibdir) || return
    for directory in "$("$PG_CONFIG" --sharedir)" "$("$PG_CONFIG" --docdir)"; do
        while [[ $directory != "$prefix"/* ]]; do
            prefix=$(dirname "$prefix")
        done
    done
    mkdir memory && mount -t tmpfs tmpfs memory && mkdir memory/upper memory/work &&
        mount -t overlay -o "lowerdir=$prefix,upperdir=memory/upper,workdir=memory/work" \
            overlay "$prefix"
}

# build CC CXX, in the copy named like the C compiler
build() {
    chown -R "$user" "$1"
    as_user "$user" make -s -j2 -C "/mnt/$1" CC="$1" CXX="$2" PG_CONFIG="$PG_CONFIG"
}

# Takes the column and what its tests are chosen by.
run_column() {
    case $1 in
        gcc) build gcc g++ && make -s -C gcc CC=gcc CXX=g++ PG_CONFIG="$PG_CONFIG" install ;;
        clang) build clang clang++ ;;
        unit) as_user "$user" make -s -j2 -C /mnt/gcc/test/unit CC=gcc CXX=g++ check "${@:2}" ;;
        *) gcc/scripts/tempcheck.sh "$@" ;;
    esac
}
export -f as_user build run_column

# Runs a column, given as for run_column; prints its cell.
cell_of() {
    local column=$1 status passed
    # shellcheck disable=SC2016  # expanded by the inner shell
    timeout "$limit" bash -uc 'run_column "$@"' "$0" "$@" >"$column.log" 2>&1
    status=$?
    passed=$(count_passed "$column.log")
    case $column:$status:$passed in
        *:124:*) echo "FAIL not finished after $limit seconds" ;;
        gcc:0:* | clang:0:*) echo ok ;;
        *:0:0) echo "FAIL no test ran" ;;
        unit:0:* | tap:0:*) echo "$passed$star" ;;
        *:0:*) echo "$passed" ;;
        *) echo "FAIL exit status $status" ;;
    esac
}

mkdir -m 1777 tmp
shield_installation || exit
echo "version $("$PG_CONFIG" --version)" >cells
built= # the tests are of gcc's build
for column in "${columns[@]}"; do
    case $column:$built in
        gcc:*) cell=$(cell_of gcc) built=$cell ;;
        unit:ok) cell=$(cell_of unit "${unit_options[@]}") ;;
        tap:ok) cell=$(cell_of tap "${tap_files[@]}") ;;
        clang:* | *:ok) cell=$(cell_of "$column") ;;
        *) cell="FAIL not built" ;;
    esac
    echo "$column $cell" >>cells
done
echo "seconds $SECONDS" >>cells
