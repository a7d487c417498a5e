#!/bin/bash
# Builds the RPM package of the last commit, for the PostgreSQL of PG_CONFIG. Checks the spec file
# and the packages with rpmlint. Checks that the package installs the same files as `make install`.
#
#   scripts/rpm_test.sh
#
# On Debian, rpmbuild cannot check the package's requirements. Packages and logs stay in build/rpm.

set -uo pipefail
cd "$(dirname "$(realpath "$0")")/.." || exit
. scripts/lib.sh
logs=build/rpm
major='' defines=()

build_rpm() {
    rm -rf build/rpm/tree
    mkdir -p build/rpm/tree/SOURCES
    make -s dist
    cp "build/randflake-$version.zip" build/rpm/tree/SOURCES
    rpmbuild --nodeps "${defines[@]}" -ba packaging/rpm/randflake.spec
}

lint() {
    rpmlint --strict -c packaging/rpm/rpmlint.toml packaging/rpm/randflake.spec build/rpm/tree/{RPMS/*,SRPMS}/*.rpm
}

files() {
    mkdir build/rpm/tree/unpacked
    rpm2cpio build/rpm/tree/RPMS/*/*.rpm | cpio -idm --quiet -D build/rpm/tree/unpacked
    build all
    build install DESTDIR="$PWD/build/rpm/tree/installed"
    diff <(cd build/rpm/tree/installed && find . -type f | sort) \
        <(cd build/rpm/tree/unpacked && find . -type f ! -path '*/doc/*' ! -path '*/licenses/*' \
            ! -path '*/.build-id/*' | sort)
    links_lead_somewhere build/rpm/tree/unpacked/usr/share/doc/*
}

install_packages git make g++ zip rpm rpmlint cpio
find_postgresql
major=$("$PG_CONFIG" --version | sed 's/[^0-9]*\([0-9]*\).*/\1/')
version=$(sed -n 's/^Version: *//p' packaging/rpm/randflake.spec)
defines=(--define "_topdir $PWD/build/rpm/tree" --define "pgmajorversion $major"
    --define "pg_bindir $("$PG_CONFIG" --bindir)" --define "pg_libdir $("$PG_CONFIG" --pkglibdir)"
    --define "pg_sharedir $("$PG_CONFIG" --sharedir)" --define "_build_id_links none")
stage "rpmbuild" build_rpm
stage "rpmlint" lint
stage "files, links of documents" files
finish
