#!/bin/bash
# pg_upgrade of a server that uses the extension, from one major to another: t/420_pg_upgrade.pl in
# the bare root of the new one, which borrows the server of the old one.
#
#   scripts/pg_upgrade_test.sh [OLD [NEW]]
#
# The default is from 15 to the newest major. Needs root.

set -euo pipefail
cd "$(dirname "$(realpath "$0")")/.."
. scripts/lib.sh
. scripts/roots.sh

# --- inside a root, where /mnt is build/pg_upgrade and /mnt/source a copy of the source -----------

install_for() {
    export PG_CONFIG=/usr/lib/postgresql/$1/bin/pg_config
    chown -R nobody .
    as_user nobody make -s -j2 -C "$PWD" PG_CONFIG="$PG_CONFIG"
    make -s PG_CONFIG="$PG_CONFIG" install
}

# Libraries that programs of a server, and what they load, need.
libraries_of() {
    find "/usr/lib/postgresql/$1" \( -path '*/bin/*' -o -name '*.so' \) -type f \
        -exec ldd {} + 2>/dev/null
}

# Leaves the old server with the extension in /mnt/old, and its libraries in /mnt/libraries.
lend() {
    install_for "$old"
    mkdir ../old ../libraries
    # Neither compilation at run time nor of extensions is needed.
    rm -f "/usr/lib/postgresql/$old/lib"/llvmjit*
    tar -c -C / "usr/lib/postgresql/$old" "usr/share/postgresql/$old" | tar -x -C ../old
    libraries_of "$old" | sed -n 's/.* => \(\/[^ ]*\) .*/\1/p' | sort -u | xargs cp -L -t ../libraries
}

# Copies the old server in, with those of its libraries that this root lacks in the same version.
upgrade() {
    local library
    cp -a ../old/usr/. /usr/
    for library in ../libraries/*; do
        ldconfig -p | grep -qF "${library##*/} (" || cp "$library" /usr/local/lib/
    done
    ldconfig
    if libraries_of "$old" | grep 'not found'; then
        die "PostgreSQL $old lacks libraries"
    fi
    install_for "$new"
    RANDFLAKE_OLD_INSTALL=/usr/lib/postgresql/$old scripts/tempcheck.sh tap 420_pg_upgrade
}

if [ "${1-}" = inside ]; then
    old=$3 new=$4
    "$2"
    exit
fi

# --- outside -------------------------------------------------------------------------------------

[ "$(id -u)" = 0 ] || die "this needs root, for mounts of its own"
old=${1:-15}
new=${2:-$(printf '%s\n' "${!suites[@]}" | sort -n | tail -n 1)}
work=build/pg_upgrade
rm -rf --one-file-system "$work"
copy_source "$work/source"
for step in "lend $old" "upgrade $new"; do
    make_matrix_root "${step#* }"
    scripts/in_root.sh -t -x "$work" "$root" \
        /mnt/source/scripts/pg_upgrade_test.sh inside "${step% *}" "$old" "$new"
done
