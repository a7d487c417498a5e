#!/bin/bash
# Installs the tools that the tests of the documentation use beside PostgreSQL: drivers and
# object-relational mappers of other languages, Prometheus' programs, and buildah. A test is skipped if its tools
# are missing, so install them for a run that skips nothing. They take about 600 MB on disk from Debian,
# Node.js and Java not counted, and 350 MB from npm.
#
#   scripts/test_tools.sh
#   scripts/test_tools.sh built    also the drivers that are compiled, for test/t/324_drivers_built.pl

set -euo pipefail
cd "$(dirname "$(realpath "$0")")/.." || exit
. scripts/lib.sh

# Installs a program of a Debian package without the package, whose service would start.
install_program() {
    local package=$1 program=$2 directory
    command -v "$program" >/dev/null && return
    echo "installing $program"
    directory=$(mktemp -d)
    chmod 755 "$directory"
    (
        cd "$directory"
        apt-get -q download "$package" || { as_root apt-get -q update && apt-get -q download "$package"; }
        dpkg-deb -x "$package"_*.deb .
        as_root install -m 755 "usr/bin/$program" /usr/local/bin/
    )
    rm -r "$directory"
}

packages=(
    python3-psycopg2 python3-psycopg python3-asyncpg python3-sqlalchemy python3-django python3-djangorestframework
    libpostgresql-jdbc-java golang-go
    ruby-pg ruby-activerecord php-cli php-pgsql php-doctrine-orm php-symfony-cache
    buildah
)
[ "${1-}" != built ] || packages+=(golang-github-jackc-pgx-v4-dev)
# Any Node.js and Java will do; they need not be Debian's.
command -v node >/dev/null || packages+=(nodejs)
command -v npm >/dev/null || packages+=(npm)
command -v javac >/dev/null || packages+=(default-jdk-headless)
install_packages "${packages[@]}"

# A package of its own since Debian 13.
promtool=prometheus
! apt-cache show promtool >/dev/null 2>&1 || promtool=promtool
install_program "$promtool" promtool
install_program prometheus-postgres-exporter prometheus-postgres-exporter

# in_js NPM...: runs npm where the packages belong. If the registry cannot be reached, that is written down
# for test.sh, which goes on without those packages. All other errors count, of a broken lock file among them.
unreachable='code (E(CONN[A-Z]+|TIMEDOUT|NOTFOUND|AI_AGAIN|(HOST|NET)UNREACH|PROTO|40[137]|407|429|5[0-9][0-9])|ERR_SOCKET_TIMEOUT)$'
no_registry=$PWD/build/no_npm_registry
mkdir -p build
rm -f "$no_registry"
in_js() {
    [ ! -e "$no_registry" ] || return 0
    (cd test/js && "$@" --ignore-scripts --no-audit --no-fund --fetch-timeout=60000) 2>&1 | tee build/npm.log && return
    grep -qE "$unreachable" build/npm.log || return
    echo "The npm registry cannot be reached." | tee "$no_registry"
}

# The lock file is read by this npm and by Debian's, which is older than most; this takes no registry, but for
# Debian's npm on other systems.
(cd test/js && npm ci --dry-run --offline --ignore-scripts --no-audit --no-fund)
[ "$(npm --version)" = 9.2.0 ] || in_js npm exec --yes npm@9.2.0 -- ci --dry-run --offline

# Prisma's install script would download an engine, which the recipe does not need.
[ test/js/node_modules/.package-lock.json -nt test/js/package-lock.json ] || in_js npm ci

# Prisma 7 needs a newer Node.js than Debian 12's, 18. It is not in the lock file because the other
# packages do not need it.
[ "$(node -p 'parseInt(process.versions.node)')" -ge 20 ] || [ -e test/js/node_modules/.bin/node ] ||
    in_js npm install --no-save "node-linux-$(node -p process.arch)@22"

# This one is not in the lock file because not every registry has it.
[ -d test/js/node_modules/randflake ] || in_js npm install --no-save randflake@2 ||
    echo "npm has no package randflake: test/t/220_lease_js.pl takes test/js/randflake.mjs instead"
