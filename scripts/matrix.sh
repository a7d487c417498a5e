#!/bin/bash
# Builds and tests the extension on several PostgreSQL majors, and prints a table: major x suite.
#
#   scripts/matrix.sh [-j JOBS] [MAJOR | PG_CONFIG]...
#
# A MAJOR is taken from /usr/lib/postgresql if it is installed there, else from a bare Debian root
# of a suite that has it. Roots are kept in RANDFLAKE_ROOTS (default /var/cache/randflake-roots;
# delete one to get it anew). Without arguments: every major that is installed or that a suite has.
# JOBS majors run at a time (default 2).
#
# What gets tested is the last commit plus uncommitted changes of files under version control. It is
# installed into memory only. Logs and build trees stay in build/matrix. Needs root.

set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/lib.sh
. scripts/roots.sh

readonly columns=(gcc clang unit regress isolation tap)
readonly build=build/matrix

# What a root needs besides the server: for building, and for the tests.
readonly tools=(clang g++ make libgtest-dev nlohmann-json3-dev libipc-run-perl libfaketime procps)

parallel=2
while getopts j: option; do
    case $option in
        j) parallel=$OPTARG ;;
        *) die "usage: scripts/matrix.sh [-j JOBS] [MAJOR | PG_CONFIG]..." ;;
    esac
done
shift $((OPTIND - 1))
[ "$(id -u)" = 0 ] || die "this needs root, for mounts of its own"

installed_majors() {
    local pg_config
    for pg_config in /usr/lib/postgresql/*/bin/pg_config; do
        [ ! -x "$pg_config" ] || cut -d/ -f5 <<<"$pg_config"
    done
}

if [ $# -eq 0 ]; then
    # shellcheck disable=SC2046  # numbers
    set -- $(printf '%s\n' $(installed_majors) "${!suites[@]}" | sort -nu)
fi

# --- rows: `names`, and for each name how to come to its root and pg_config ----------------------

names=()
declare -A suites_of pg_config_of

add_row() {
    names+=("$1")
    suites_of[$1]=$2
    pg_config_of[$1]=$3
}

for argument; do
    pg_config=/usr/lib/postgresql/$argument/bin/pg_config
    if [[ $argument == */* ]]; then
        version=$("$argument" --version) || die "$argument does not work"
        [[ $version =~ [0-9]+ ]]
        path=$(realpath "$argument")
        # Two servers of one major differ in the directory they are installed in.
        add_row "${BASH_REMATCH[0]}$(tr / - <<<"${path%/bin/*}")" '' "$path"
    elif [ -x "$pg_config" ]; then
        add_row "$argument" '' "$pg_config"
    elif [ -n "${suites[$argument]-}" ]; then
        add_row "$argument" "${suites[$argument]}" "$pg_config"
    else
        die "PostgreSQL $argument is not installed, and no suite is known to have it;" \
            "please give its pg_config"
    fi
done

# --- running them -------------------------------------------------------------------------------

start_row() {
    local name=$1 row=$build/$1 root=/ copy
    for copy in gcc clang; do
        export_tree "$tree" "$row/$copy"
    done
    [ -z "${suites_of[$name]}" ] ||
        root=$(find_root "$name" "${suites_of[$name]}" "postgresql-$name" \
            "postgresql-server-dev-$name" "${tools[@]}")
    exec scripts/in_root.sh -x "$row" "$root" \
        /mnt/gcc/scripts/matrix_row.sh "${pg_config_of[$name]}" "${columns[@]}"
}

install_packages debootstrap iproute2
tree=$(current_tree)

# A row dies with its first process, which heeds no other signal.
trap 'kill -KILL $(jobs -p) 2>/dev/null' EXIT
for name in "${names[@]}"; do
    while [ "$(jobs -pr | wc -l)" -ge "$parallel" ]; do
        wait -n || true
    done
    echo "PostgreSQL $name ..."
    rm -rf --one-file-system "${build:?}/$name"
    mkdir -p "$build/$name"
    (start_row "$name") >"$build/$name/row.log" 2>&1 &
done
wait || true

# --- the table ----------------------------------------------------------------------------------

passed=0 failed=0 failures=()

# add_failure LOG WORD...: keeps what to say about it and the end of its log for below the table.
add_failure() {
    failures+=("$red${*:2}$plain")
    [ ! -s "$1" ] || failures+=("$(tail -n 40 "$1" | sed "s|/mnt/|$(dirname "$1")/|g; s/^/    /")")
}

# Sets `cell` to a cell's text, and counts it.
look_up() {
    local row=$build/$1 outcome
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
for name in "${names[@]}"; do
    cells=$build/$name/cells
    touch "$cells"
    printf '%-34s' "$name: $(sed -n 's/^version PostgreSQL //p' "$cells")"
    for column in "${columns[@]}"; do
        look_up "$name" "$column"
        printf '%10s' "$cell"
    done
    printf '%10s\n' "$(sed -n 's/^seconds //p' "$cells")"
    grep -q '^seconds ' "$cells" ||
        add_failure "$build/$name/row.log" "$name: it did not come to its end"
done
echo "gcc, clang: builds without warnings; the others: tests passed. Logs: $build/*/*.log"
[ "$failed" = 0 ] || printf '%s\n' '' "${failures[@]}"
echo "matrix: $passed passed, $failed failed"
[ "$failed" = 0 ]
