# shellcheck shell=bash
# Shared by the programs in this folder, which run in the root of the source: findings/NAME.sh
# `. findings/lib.sh PACKAGE...` makes a folder, which is deleted at the end, goes there, and installs
# packages of npm.

set -euo pipefail
folder=$(mktemp -d)
trap 'kill $(jobs -p) 2>/dev/null || true; rm -rf "$folder"' EXIT
cd "$folder"
[ $# = 0 ] || npm install --silent --no-audit --no-fund --ignore-scripts "$@"

# start_server PACKAGE... -- OPTION...: starts PostgreSQL 15.20 of Debian bookworm, with more packages
start_server() {
    local bin=$folder/usr/lib/postgresql/15/bin packages=()
    user() { if [ "$(id -u)" = 0 ]; then runuser -u postgres -- "$@"; else "$@"; fi; }
    trap 'kill $(jobs -p) 2>/dev/null || true
        user "$folder/usr/lib/postgresql/15/bin/pg_ctl" -D "$folder/d/data" -m immediate stop >/dev/null || true
        rm -rf "$folder"' EXIT
    while [ "$1" != -- ]; do packages+=("$1") && shift; done
    shift
    apt-get download postgresql-15=15.20-0+deb12u1 postgresql-client-15=15.20-0+deb12u1 "${packages[@]}" >/dev/null 2>&1
    for package in *.deb; do dpkg -x "$package" .; done
    mkdir d
    chmod 755 .
    [ "$(id -u)" != 0 ] || chown postgres d
    user "$bin/initdb" -D d/data -A trust -U boss >/dev/null
    user "$bin/pg_ctl" -D d/data -l d/log -w start \
        -o "-c listen_addresses= -c unix_socket_directories=$folder/d $*" >/dev/null
}
sql() { user "$folder/usr/lib/postgresql/15/bin/psql" -h "$folder/d" -U boss -XAtq "$@" 2>&1 || true; }

# unpack_later SUITE PACKAGE...: unpacks packages of a later Debian in `later`
unpack_later() {
    local apt=(apt-get -o Dir::Etc::sourcelist="$folder/sources" -o Dir::Etc::sourceparts=/dev/null
        -o Dir::State::lists="$folder/lists" -o Dir::Cache="$folder/cache")
    echo "deb http://deb.debian.org/debian $1 main" >sources
    mkdir -p lists/partial cache/archives/partial later/debs
    "${apt[@]}" update >/dev/null 2>&1
    (cd later/debs && "${apt[@]}" download "${@:2}" >/dev/null 2>&1)
    for package in later/debs/*; do dpkg -x "$package" later; done
}
