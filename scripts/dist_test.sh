#!/bin/bash
# Makes the archives of a release, builds from them outside of any checkout, and checks that they install
# the same files as the checkout.
#
#   scripts/dist_test.sh

set -euo pipefail
cd "$(dirname "$(realpath "$0")")/.."
. scripts/lib.sh

install_packages git make g++ unzip
find_postgresql

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

make -s dist
archives=(build/randflake-*.tar.gz build/randflake-*.zip)
sha256sum "${archives[@]}" >"$work/sums"
make -s dist
sha256sum --quiet -c "$work/sums" || die "the archives differ from those made a moment ago"

tar -x -C "$work" -f "${archives[0]}"
unzip -q -d "$work/zip" "${archives[1]}"
release=$(basename "${archives[1]}" .zip)
diff -r "$work/$release" "$work/zip/$release" || die "the two archives differ"

# installs TREE: what `make install` of a tree installs.
installs() (
    cd "$1"
    build all >&2
    make -s PG_CONFIG="$PG_CONFIG" install DESTDIR="$work/installed" >&2
    cd "$work/installed"
    find . -type f | sort
    rm -rf "$work/installed"
)
"$work/$release/scripts/check_versions.pl"
installs . >"$work/expected"
installs "$work/$release" | diff "$work/expected" - || die "the archive installs something else"
echo "dist: $(sed 's/^\(.\{12\}\)[^ ]* */\1 /' "$work/sums" | paste -sd ' '), builds and installs" \
    "$(wc -l <"$work/expected") files"
