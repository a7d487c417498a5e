#!/bin/bash
# What must hold before a release: runs everything, which takes hours.
#
#   scripts/release_check.sh              everything
#   scripts/release_check.sh version      only the points whose name contains "version"
#
# Output of each point goes to build/release/.

set -uo pipefail
cd "$(dirname "$(realpath "$0")")/.." || exit
. scripts/lib.sh
. scripts/roots.sh
logs=build/release only=${1:-}
mapfile -t majors < <(printf '%s\n' "${!suites[@]}" | sort -n)
version=$(sed -n 's/^    "version": *"\(.*\)",/\1/p' META.json)

clean_tree() {
    git status --porcelain
    [ -z "$(git status --porcelain)" ]
}

# The tag of this release is not there yet, or is of this commit.
free_tag() {
    [ "$(git rev-parse -q --verify "v$version^{commit}" || git rev-parse HEAD)" = "$(git rev-parse HEAD)" ]
}

headline "release of $version, commit $(git rev-parse HEAD)"
stage "clean tree" clean_tree
stage "versions, dates, META.json" scripts/check_versions.pl --release
stage "tag is free" free_tag
stage "archives" scripts/dist_test.sh
stage "every test" scripts/test.sh all
stage "both commands on bare Debian" as_root scripts/bare_test.sh
stage "whole matrix" as_root scripts/matrix.sh
stage "pg_upgrade" as_root scripts/pg_upgrade_test.sh
stage "packages of all majors" as_root scripts/package_test.sh "${majors[@]}"
stage "tree is still clean" clean_tree
finish
