#!/bin/bash
# Builds and tests the extension on several PostgreSQL majors, and prints a table: major x suite.
#
#   scripts/matrix.sh [-s] [-j JOBS] [MAJOR | PG_CONFIG]...
#
# A MAJOR is taken from /usr/lib/postgresql if it is installed there, else from a bare Debian root
# of a suite that has it. Roots are kept in RANDFLAKE_ROOTS (default /var/cache/randflake-roots;
# delete one to get it anew). Without arguments: every major that is installed or that a suite has.
# JOBS majors run at a time (default 2). With -s, for short, the rows leave out tests that depend
# little on the major, and the table says which.
#
# What gets tested is the last commit plus uncommitted changes of files under version control. It is
# installed into memory only. Logs and build trees stay in build/matrix. Needs root.

set -euo pipefail
cd "$(dirname "$(realpath "$0")")/.."
. scripts/lib.sh
. scripts/matrix_lib.sh
. scripts/roots.sh

parallel=2 short=
while getopts sj: option; do
    case $option in
        s) short=-s ;;
        j) parallel=$OPTARG ;;
        *) die "usage: scripts/matrix.sh [-s] [-j JOBS] [MAJOR | PG_CONFIG]..." ;;
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
declare -A has_root pg_config_of

add_row() {
    names+=("$1")
    has_root[$1]=$2
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
        add_row "$argument" yes "$pg_config"
    else
        die "PostgreSQL $argument is not installed, and no suite is known to have it;" \
            "please give its pg_config"
    fi
done

# --- running them -------------------------------------------------------------------------------

start_row() {
    local name=$1 row=$matrix/$1 root=/ copy
    for copy in gcc clang; do
        export_tree "$tree" "$row/$copy"
    done
    [ -z "${has_root[$name]}" ] || root=$(find_matrix_root "$name")
    exec scripts/in_root.sh -x "$row" "$root" \
        /mnt/gcc/scripts/matrix_row.sh $short "${pg_config_of[$name]}"
}

install_packages debootstrap iproute2
mkdir -p "$matrix"
exec 9>"$matrix.lock"
flock -n 9 || die "another run of it is under way here"
tree=$(current_tree)

# A row dies with its first process, which heeds no other signal.
trap 'kill -KILL $(jobs -p) 2>/dev/null || true' EXIT
for name in "${names[@]}"; do
    while [ "$(jobs -pr | wc -l)" -ge "$parallel" ]; do
        wait -n || true
    done
    echo "PostgreSQL $name ..."
    rm -rf --one-file-system "${matrix:?}/$name"
    mkdir -p "$matrix/$name"
    (start_row "$name") >"$matrix/$name/row.log" 2>&1 &
done
wait || true

scripts/matrix_table.sh "${names[@]}"
