#!/bin/bash
# The steps of scripts/package_test.sh inside a root, where /mnt is build/package/MAJOR.
#
#   scripts/package_steps.sh STEP MAJOR
#
# A line that begins with "# " is for the eyes of who runs the test.

set -euo pipefail
cd /mnt
. source/scripts/lib.sh
step=$1 major=$2
package=postgresql-$major-randflake
export DEBIAN_FRONTEND=noninteractive PG_SUPPORTED_VERSIONS=$major

run_as() {
    runuser -u "$1" -- env HOME=/tmp "${@:2}"
}

# As any user, in a directory where this user may write.
build() {
    local before after
    chown -R nobody /mnt
    cd source
    run_as nobody pg_buildext updatecontrol
    before=$(find . -type f -exec sha256sum {} + | sort)
    run_as nobody dpkg-buildpackage -us -uc -b -j2
    run_as nobody debian/rules clean
    after=$(find . -type f ! -path ./debian/files -exec sha256sum {} + | sort)
    # What a build leaves in the source would end up in the next one.
    diff <(echo "$before") <(echo "$after")
    cd ..
    # The first upload to Debian's own archive would close the request for the package.
    run_as nobody lintian --fail-on error,warning --info \
        --suppress-tags initial-upload-closes-no-bugs ./*.changes
    echo "# built, without a complaint of lintian: $(ls "$package"_*.deb)"
}

install_package() {
    apt-get -qy --no-install-recommends install ./"$package"_*.deb
}

# What an administrator does.
installation() {
    install_package
    dpkg --verify "$package"

    (umask 077 && od -An -N16 -tx1 /dev/urandom | tr -d ' ' >/tmp/secret)
    chown postgres /tmp/secret
    mkdir -p /run/postgresql && chown postgres /run/postgresql
    pg_createcluster "$major" main --start -o shared_preload_libraries=randflake \
        -o randflake.node_id=7 -o randflake.secret_file=/tmp/secret
    psql_as_admin() {
        (cd / && run_as postgres psql -XAtq -v ON_ERROR_STOP=1 "$@")
    }
    psql_as_admin -c 'CREATE EXTENSION randflake_type CASCADE' -c 'CREATE EXTENSION randflake_coordinator'
    psql_as_admin -c 'CREATE TABLE t (id bigint PRIMARY KEY DEFAULT randflake_generate(), n int)' \
        -c 'INSERT INTO t (n) SELECT generate_series(1, 100000)'
    version=$(psql_as_admin -c "SELECT DISTINCT extversion FROM pg_extension WHERE extname LIKE 'randflake%'")
    found=$(psql_as_admin -c 'SELECT count(*), min(d.node_id), max(d.node_id)
                              FROM t, randflake_decode(id) d')
    [ "$found" = "100000|7|7" ]
    [ "$version" = "$(sed -n "s/^default_version *= *'\(.*\)'/\1/p" source/extension/randflake.control)" ]
    echo "# installed: version $version, 100000 identifiers"

    pg_dropcluster --stop "$major" main
    apt-get -qy purge "$package"
    if find / -xdev -name '*randflake*' ! -path '/mnt/*' ! -path '/var/log/*' | grep .; then
        die "files are left after a purge"
    fi
    echo "# purged: nothing left"
}

autopkgtest() {
    install_package
    chown -R postgres source
    cd source
    run_as postgres debian/tests/installcheck
    grep -hE 'All [0-9]+ tests passed' /mnt/autopkgtest.log | sed 's/[ #]*All /# installcheck: all /'
}

"$step"
