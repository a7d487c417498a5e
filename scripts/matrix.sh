#!/bin/bash
# Builds and tests the checkout with several major versions of PostgreSQL, each in a root directory
# with a minimal Debian. Tests pg_upgrade from the oldest major to the others.
#
#   scripts/matrix.sh [-s] [MAJOR]...
#
# The default is all known majors. -s leaves out tests that depend little on the major. The root
# file systems stay in RANDFLAKE_ROOTS (default /var/cache/randflake-roots), and no run changes
# them. If one is deleted, the script makes it again. Logs: build/matrix/MAJOR. Needs root.

set -uo pipefail
cd "$(dirname "$(realpath "$0")")/.." || exit
. scripts/lib.sh
. scripts/roots.sh

short=''
if [ "${1-}" = -s ]; then
    short=-s
    shift
fi

# --- inside the root (/mnt/source is a copy of the source) ---------------------------------------

make_in() { as_user nobody make -s -j2 -C "$PWD/$1" PG_CONFIG="$PG_CONFIG" "${@:2}"; }

# install_for MAJOR
install_for() {
    export PG_CONFIG=/usr/lib/postgresql/$1/bin/pg_config
    make_in .
    make -s PG_CONFIG="$PG_CONFIG" install
}

if [ "${1-}" = inside ]; then
    major=$2 logs=/mnt/logs
    export PG_CONFIG=/usr/lib/postgresql/$major/bin/pg_config
    chown -R nobody .
    unit=() tap=()
    if [ -n "$short" ]; then
        unit=(EXCEPT='concurrency_test explorer_test explorer_mutants_test')
        tap=(001_preload 010_settings 055_wait 130_foreign_state 140_failover
            200_lease 340_roles 353_type_binding 355_type_rotation 380_rotation 384_rotation_leases 410_dump_restore 420_pg_upgrade)
    fi
    if [ "$major" != "$oldest" ]; then
        stage "$major: install for $oldest" install_for "$oldest"
        export RANDFLAKE_OLD_INSTALL=/usr/lib/postgresql/$oldest
    fi
    stage "$major: build with clang++, -Werror" make_in . CXX=clang++
    stage "$major: install with g++, -Werror" install_for "$major"
    stage "$major: unit tests" make_in test/unit check "${unit[@]}"
    stage "$major: regression tests" scripts/tempcheck.sh regress
    stage "$major: TAP tests" scripts/tempcheck.sh tap "${tap[@]}"
    finish
fi

# --- outside -------------------------------------------------------------------------------------

bad=()
[ $# -gt 0 ] || set -- $majors
for major; do
    suites=${suites_of[$major]:?"no suite is known to have it"}
    packages=("postgresql-$major" "postgresql-server-dev-$major")
    if [ "$major" != "$oldest" ]; then
        suites+=+${suites_of[$oldest]}
        packages+=("postgresql-$oldest" "postgresql-server-dev-$oldest")
    fi
    make_root "$major" "$suites" "${packages[@]}" \
        clang g++ make libgtest-dev nlohmann-json3-dev libipc-run-perl libdbd-pg-perl procps
    work=build/matrix/$major
    rm -rf --one-file-system "$work"
    copy_source "$work/source"
    in_root "$work" "$root" /mnt/source/scripts/matrix.sh $short inside "$major" || bad+=("$major")
done
[ ${#bad[@]} -eq 0 ] || die "failed with PostgreSQL ${bad[*]}"
