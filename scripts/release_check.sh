#!/bin/bash
# What must hold before a release: runs everything, which takes an hour or two, and prints the
# checklist.
#
#   scripts/release_check.sh              everything
#   scripts/release_check.sh version      only the points whose name contains "version"; the others
#                                         stay open
#
# Output of each point goes to build/release/.

set -uo pipefail
cd "$(dirname "$(realpath "$0")")/.." || exit
. scripts/lib.sh
. scripts/roots.sh

only=${1:-}
logs=build/release
checklist=() open=0
mapfile -t majors < <(printf '%s\n' "${!suites[@]}" | sort -n)

# point NAME COMMAND...: one point of the list, with the last line of what the command says.
point() {
    local name=$1 log=$logs/${1//[^a-z0-9]/-}.log mark=' ' color=$red
    shift
    if [[ $name = *"$only"* ]]; then
        echo "$name ..."
        mkdir -p $logs # a point may have removed it
        if "$@" >"$log" 2>&1; then
            mark=x color=$green
        else
            tail -n 20 "$log" | sed 's/^/    /'
        fi
        checklist+=("${color}[$mark] $(printf '%-26s' "$name")$plain $(tail -n 1 "$log")")
    else
        checklist+=("[ ] $(printf '%-26s' "$name") not looked at")
    fi
    [ "$mark" = x ] || open=$((open + 1))
}

clean_tree() {
    local changes
    changes=$(git status --porcelain) || return
    if [ -n "$changes" ]; then
        echo "$changes"
        echo "$(wc -l <<<"$changes") files differ from the commit"
        return 1
    fi
    echo "commit $(git rev-parse HEAD)"
}

# The tag of this release is not there yet, or is of this commit.
free_tag() {
    local tag
    tag=v$(sed -n 's/^    "version": *"\(.*\)",/\1/p' META.json)
    echo "tag $tag"
    [ "$(git rev-parse -q --verify "$tag^{commit}" || git rev-parse HEAD)" = "$(git rev-parse HEAD)" ]
}

point "clean tree" clean_tree
point "versions, dates, META.json" scripts/check_versions.pl --release
point "tag is free" free_tag
point "every check" scripts/test.sh
point "whole matrix" as_root scripts/matrix.sh
point "packages of all majors" as_root scripts/package_test.sh "${majors[@]}"
point "archives" scripts/dist_test.sh
point "tree is still clean" clean_tree

headline "release of $(sed -n 's/^    "version": *"\(.*\)",/\1/p' META.json)"
printf '%s\n' "${checklist[@]}"
[ $open -eq 0 ] || die "$open points are open"
