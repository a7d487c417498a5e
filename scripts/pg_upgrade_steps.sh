#!/bin/bash
# The steps of scripts/pg_upgrade_test.sh, each inside a root, where /mnt is build/pg_upgrade.
#
#   scripts/pg_upgrade_steps.sh lend OLD
#   scripts/pg_upgrade_steps.sh upgrade OLD NEW

set -euo pipefail
cd /mnt/source
. scripts/lib.sh
step=$1 old=$2 new=${3-}

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
    tar -c --exclude='llvmjit*' --exclude=bitcode --exclude=pgxs \
        "/usr/lib/postgresql/$old" "/usr/share/postgresql/$old" 2>/dev/null | tar -x -C ../old
    rm -f "/usr/lib/postgresql/$old/lib"/llvmjit*.so
    libraries_of "$old" | sed -n 's/.* => \(\/[^ ]*\) .*/\1/p' | sort -u | xargs cp -L -t ../libraries
}

# Brings the old server in, with those libraries that are not here in the same version.
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

"$step"
