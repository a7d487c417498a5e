#!/bin/bash
# Installs the tools that tests of the documentation need: drivers and object-relational mappers,
# the programs of Prometheus, and buildah. A test is skipped if its tools are missing. The tools
# take 350 MB from npm, and about 600 MB from Debian in addition to Node.js and Java.
#
#   scripts/test_tools.sh
#   scripts/test_tools.sh built    also compiled drivers, for test/t/324_drivers_built.pl

set -euo pipefail
cd "$(dirname "$(realpath "$0")")/.." || exit
. scripts/lib.sh

# Installs only the program of a Debian package, not its service.
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
    ruby-pg ruby-activerecord php-cli php-pgsql php-doctrine-orm php-symfony-cache php-illuminate-database php-illuminate-events
    python3-pyqt5.qtsql libqt5sql5-psql
    buildah
    jq gawk mawk sqlite3 datamash
)
[ "${1-}" != built ] || packages+=(golang-github-jackc-pgx-v4-dev)
# The tests also accept Node.js or Java installed without Debian's packages.
command -v node >/dev/null || packages+=(nodejs)
command -v npm >/dev/null || packages+=(npm)
command -v javac >/dev/null || packages+=(default-jdk-headless)
install_packages "${packages[@]}"

# Since Debian 13, promtool has its own package.
promtool=prometheus
! apt-cache show promtool >/dev/null 2>&1 || promtool=promtool
install_program "$promtool" promtool
install_program prometheus-postgres-exporter prometheus-postgres-exporter

# in_js NPM...: runs npm in test/js. If npm cannot reach the registry, in_js leaves a note for
# test.sh, and the tests go on without the npm packages. All other errors are fatal.
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

# Checks that this machine's npm and npm 9.2.0 of Debian 12 can read the lock file. In npm 9.2.0,
# the dry run deletes the packages that are installed, so it runs in a copy.
copy=$(mktemp -d)
cp test/js/package*.json "$copy"
npm ci --prefix "$copy" --dry-run --offline --ignore-scripts --no-audit --no-fund
[ "$(npm --version)" = 9.2.0 ] || in_js npm exec --yes npm@9.2.0 -- ci --prefix "$copy" --dry-run --offline
rm -r "$copy"

# Without --ignore-scripts, Prisma would download an engine that the recipe does not need.
[ test/js/node_modules/.package-lock.json -nt test/js/package-lock.json ] || in_js npm ci

# Prisma 7 needs a newer Node.js than Debian 12 has. Debian 12's Node.js runs the other packages.
[ "$(node -p 'parseInt(process.versions.node)')" -ge 20 ] || [ -e test/js/node_modules/.bin/node ] ||
    in_js npm install --no-save "node-linux-$(node -p process.arch)@22"

# Some registries lack the package randflake, so the lock file omits it.
[ -d test/js/node_modules/randflake ] || in_js npm install --no-save randflake@2 ||
    echo "npm has no package randflake: test/t/220_lease_js.pl takes test/js/randflake.mjs instead"
