#!/bin/bash
# One row of the matrix: builds the extension for one PostgreSQL with gcc and with clang, and tests
# gcc's. scripts/matrix.sh runs this inside a root, where /mnt/gcc and /mnt/clang are copies of the
# source.
#
#   scripts/matrix_row.sh PG_CONFIG COLUMN...
#
# Leaves /mnt/COLUMN.log, and in /mnt/cells a line for each column: its name, and "ok" for a build,
# the number of tests passed, or FAIL and why; before them the server's version, after them the
# seconds it all took.

set -uo pipefail
cd /mnt || exit
. gcc/scripts/lib.sh
export TMPDIR=/mnt/tmp MAKEFLAGS=--no-print-directory PG_CONFIG=$1
shift
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

run_column() {
    case $1 in
        gcc) build gcc g++ && make -s -C gcc CC=gcc CXX=g++ PG_CONFIG="$PG_CONFIG" install ;;
        clang) build clang clang++ ;;
        unit) as_user "$user" make -s -j2 -C /mnt/gcc CC=gcc CXX=g++ PG_CONFIG="$PG_CONFIG" unit ;;
        *) gcc/scripts/tempcheck.sh "$1" ;;
    esac
}
export -f as_user build run_column

# How many tests passed, by the closing lines of GoogleTest, pg_regress and prove.
count_passed() {
    sed -n -e 's/^\[  PASSED  \] \([0-9]*\) test.*/\1/p' \
        -e 's/.*All \([0-9]*\) tests passed.*/\1/p' \
        -e 's/^Files=[0-9]*, Tests=\([0-9]*\),.*/\1/p' "$1" |
        awk '{ sum += $1 } END { print sum + 0 }'
}

# Runs a column; prints its cell.
cell_of() {
    local column=$1 status passed
    # shellcheck disable=SC2016  # expanded by the inner shell
    timeout "$limit" bash -uc 'run_column "$1"' "$0" "$column" >"$column.log" 2>&1
    status=$?
    passed=$(count_passed "$column.log")
    case $column:$status:$passed in
        *:124:*) echo "FAIL not finished after $limit seconds" ;;
        gcc:0:* | clang:0:*) echo ok ;;
        *:0:0) echo "FAIL no test ran" ;;
        *:0:*) echo "$passed" ;;
        *) echo "FAIL exit status $status" ;;
    esac
}

mkdir -m 1777 tmp
shield_installation || exit
echo "version $("$PG_CONFIG" --version)" >cells
built= # the tests are of gcc's build
for column; do
    case $column:$built in
        gcc:*) cell=$(cell_of gcc) built=$cell ;;
        clang:* | *:ok) cell=$(cell_of "$column") ;;
        *) cell="FAIL not built" ;;
    esac
    echo "$column $cell" >>cells
done
echo "seconds $SECONDS" >>cells
