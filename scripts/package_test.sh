#!/bin/bash
# Builds Debian packages for PostgreSQL's major versions, and tests them in bare root directories.
#
#   scripts/package_test.sh [MAJOR]...
#
# The default is all known majors. Builds the package and runs lintian and debian/tests in a root
# directory with only the build dependencies. Then installs, uses and purges the package in a root
# directory with only PostgreSQL. Packages and logs stay in build/package/MAJOR. Needs root.

set -uo pipefail
cd "$(dirname "$(realpath "$0")")/.." || exit
. scripts/lib.sh
. scripts/roots.sh

# --- inside a root (/mnt is build/package/MAJOR, /mnt/source a copy of the source) ----------------

run_as() { runuser -u "$1" -- env HOME=/tmp "${@:2}"; }

# Builds as an ordinary user, who must be able to write to the source and to its parent directory.
build_package() {
    local before after
    chown -R nobody /mnt/source && chown nobody /mnt
    run_as nobody pg_buildext updatecontrol
    run_as nobody debian/rules clean # the checkout may have joined its SQL
    before=$(find . -type f -exec sha256sum {} + | sort)
    run_as nobody dpkg-buildpackage -us -uc -b -j2
    run_as nobody debian/rules clean
    after=$(find . -type f ! -path ./debian/files -exec sha256sum {} + | sort)
    # If the build leaves a file in the source, the next source package contains this file.
    diff <(echo "$before") <(echo "$after")
    # Debian requires that a first upload closes a bug. This package is not for Debian's archive.
    run_as nobody lintian --fail-on error,warning --info \
        --suppress-tags initial-upload-closes-no-bugs ../*.changes
}

install_package() { apt-get -qy --no-install-recommends install ../"$package"_*.deb; }

installcheck() {
    install_package
    chown -R postgres .
    run_as postgres debian/tests/installcheck
}

use_package() {
    install_package
    dpkg --verify "$package"
    links_lead_somewhere "/usr/share/doc/$package"
    (umask 077 && od -An -N16 -tx1 /dev/urandom | tr -d ' ' >/tmp/secret)
    chown postgres /tmp/secret
    install -d -o postgres /run/postgresql
    pg_createcluster "$major" main --start -o shared_preload_libraries=randflake \
        -o randflake.node_id=7 -o randflake.secret_file=/tmp/secret
    [ "$(as_user postgres psql -XAtq -v ON_ERROR_STOP=1 -c 'CREATE EXTENSION randflake_type CASCADE' \
        -c 'CREATE EXTENSION randflake_coordinator' \
        -c 'CREATE TABLE t AS SELECT randflake_generate(100000) AS id' \
        -c 'SELECT count(DISTINCT id), min(d.node_id), max(d.node_id) FROM t, randflake_decode(id) d')" \
        = '100000|7|7' ]
    apt-get -qy purge "$package" 2>&1 | tee /tmp/removed
    grep "^WARNING: .* $major/main will not start" /tmp/removed
    pg_dropcluster --stop "$major" main
    if find / -xdev -name '*randflake*' ! -path '/mnt/*' ! -path '/var/log/*' | grep .; then
        die "files are left after a purge"
    fi
}

if [ "${1-}" = inside ]; then
    set -e
    major=$3 package=postgresql-$3-randflake
    export DEBIAN_FRONTEND=noninteractive PG_SUPPORTED_VERSIONS=$major
    "$2"
    exit
fi

# --- outside -------------------------------------------------------------------------------------

run() { in_root "$logs" "$root" /mnt/source/scripts/package_test.sh inside "$1" "$major"; }
[ $# -gt 0 ] || set -- $majors
for major; do
    suites=${suites_of[$major]:?"no suite is known to have it"}
    logs=build/package/$major
    rm -rf --one-file-system "$logs"
    copy_source "$logs/source"
    make_root "package-$major" "$suites" "postgresql-$major" "postgresql-server-dev-$major" \
        postgresql-server-dev-all build-essential debhelper fakeroot lintian
    stage "$major: package, lintian" run build_package
    stage "$major: installcheck" run installcheck
    make_root "clean-$major" "$suites" "postgresql-$major"
    stage "$major: install, use, purge" run use_package
done
finish
