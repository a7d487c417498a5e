#!/bin/bash
# Builds and tests the checkout, as it is, with several majors of PostgreSQL, each in a bare Debian
# root of a suite that has it.
#
#   scripts/matrix.sh [-s] [MAJOR]...
#
# The default is all majors that have a suite. With -s, for short, it leaves out tests that depend
# little on the major. Roots are kept in RANDFLAKE_ROOTS (default /var/cache/randflake-roots); delete
# one to make it anew. What a run installs in them is discarded. Logs stay in build/matrix/MAJOR.
# Needs root.

set -uo pipefail
cd "$(dirname "$(realpath "$0")")/.." || exit
. scripts/lib.sh
. scripts/roots.sh

short=''
if [ "${1-}" = -s ]; then
    short=-s
    shift
fi

# --- inside the root, where /mnt/source is a copy of the source ----------------------------------

# As an ordinary user, which is enough for a build.
make_in() {
    as_user nobody make -s -j2 -C "$PWD/$1" PG_CONFIG="$PG_CONFIG" "${@:2}"
}

if [ "${1-}" = inside ]; then
    logs=/mnt/logs
    export PG_CONFIG=/usr/lib/postgresql/$2/bin/pg_config
    chown -R nobody .
    unit=() tap=()
    if [ -n "$short" ]; then
        unit=(EXCEPT='concurrency_test explorer_test explorer_broken_test')
        tap=(001_preload 010_settings 030_standby 045_connections 070_parallel 130_foreign_state
            200_lease 340_roles 400_upgrade 410_dump_restore)
    fi
    stage "$2: build with clang++, -Werror" make_in . CXX=clang++
    stage "$2: build with g++, -Werror" make_in . CXX=g++
    stage "$2: install" make -s PG_CONFIG="$PG_CONFIG" CXX=g++ install
    stage "$2: unit tests" make_in test/unit check "${unit[@]}"
    stage "$2: regression tests" scripts/tempcheck.sh regress
    stage "$2: isolation tests" scripts/tempcheck.sh isolation
    stage "$2: TAP tests" scripts/tempcheck.sh tap "${tap[@]}"
    finish
fi

# --- outside -------------------------------------------------------------------------------------

[ "$(id -u)" = 0 ] || die "this needs root, for mounts of its own"
# shellcheck disable=SC2046  # numbers
[ $# -gt 0 ] || set -- $(printf '%s\n' "${!suites[@]}" | sort -n)
bad=()
for major; do
    [ -n "${suites[$major]-}" ] || die "no suite is known to have PostgreSQL $major"
    work=build/matrix/$major
    rm -rf --one-file-system "$work"
    copy_source "$work/source"
    make_matrix_root "$major"
    scripts/in_root.sh -t -x "$work" "$root" \
        /mnt/source/scripts/matrix.sh $short inside "$major" || bad+=("$major")
done
[ ${#bad[@]} -eq 0 ] || die "failed with PostgreSQL ${bad[*]}"
