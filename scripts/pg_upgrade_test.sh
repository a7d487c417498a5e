#!/bin/bash
# pg_upgrade of a server that uses the extension, from one major to another: t/420_pg_upgrade.pl in
# the bare root of the new one, which borrows the server of the old one.
#
#   scripts/pg_upgrade_test.sh [OLD [NEW]]
#
# Default is from 15 to the newest major. Needs root, and debootstrap for roots that are not there yet.

set -euo pipefail
cd "$(dirname "$(realpath "$0")")/.."
. scripts/lib.sh
. scripts/roots.sh

[ "$(id -u)" = 0 ] || die "this needs root, for mounts of its own"
old=${1:-15}
new=${2:-$(printf '%s\n' "${!suites[@]}" | sort -n | tail -n 1)}
for major in "$old" "$new"; do
    [ -n "${suites[$major]-}" ] || die "no suite is known to have PostgreSQL $major"
done
install_packages debootstrap iproute2
old_root=$(find_package_root "$old")
new_root=$(find_matrix_root "$new")

work=build/pg_upgrade
rm -rf --one-file-system "$work"
export_tree "$(current_tree)" "$work/source"
run() {
    local root=$1
    shift
    scripts/in_root.sh -t -x "$work" "$root" /mnt/source/scripts/pg_upgrade_steps.sh "$@"
}
run "$old_root" lend "$old"
run "$new_root" upgrade "$old" "$new"
