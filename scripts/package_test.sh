#!/bin/bash
# Builds the Debian packages of PostgreSQL majors, and tests them in clean roots of the suites that
# have these majors.
#
#   scripts/package_test.sh [MAJOR]...
#
# Default is 15. For each major: dpkg-buildpackage and lintian in a root with nothing but what the
# package says it needs to be built; the package installed, used and purged in a root with nothing
# but PostgreSQL; debian/tests, as autopkgtest would run it. The packages are left in
# build/package/MAJOR. Needs root, and debootstrap for roots that are not there yet.

set -euo pipefail
cd "$(dirname "$(realpath "$0")")/.."
. scripts/lib.sh
. scripts/roots.sh

[ "$(id -u)" = 0 ] || die "this needs root, for mounts of its own"
[ $# -gt 0 ] || set -- 15
install_packages debootstrap iproute2
tree=$(current_tree)

# step NAME ROOT, with the major in $major
step() {
    local log=$work/$1.log
    scripts/in_root.sh -t -x "$work" "$2" /mnt/source/scripts/package_steps.sh "$1" "$major" \
        >"$log" 2>&1 || {
        tail -n 60 "$log"
        die "PostgreSQL $major: $1 failed; all of its output: $log"
    }
    # What it has to say, it says in lines that begin with a mark.
    sed -n "s/^# \([^0-9]\)/    \1/p" "$log"
}

for major; do
    [ -n "${suites[$major]-}" ] || die "no suite is known to have PostgreSQL $major"
    headline "PostgreSQL $major"
    clean=$(find_root "clean-$major" "${suites[$major]}" "postgresql-$major")
    full=$(find_package_root "$major")
    work=build/package/$major
    rm -rf --one-file-system "${work:?}"
    export_tree "$tree" "$work/source"
    step build "$full"
    step installation "$clean"
    step autopkgtest "$full"
done
echo "packages: $(printf '%s\n' "$@" | wc -l) built, installed and tested: build/package/*/*.deb"
