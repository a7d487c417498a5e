# shellcheck shell=bash
# Shared by the programs in this folder, which run in the root of the source: findings/NAME.sh
# `. findings/lib.sh PACKAGE...` makes a folder, which is deleted at the end, goes there, and installs
# packages of npm.

set -euo pipefail
folder=$(mktemp -d)
trap 'stop_jobs; rm -rf "$folder"' EXIT
# A job that is a function has its program as a child.
stop_jobs() { for job in $(jobs -p); do pkill -P "$job" || kill "$job" || true; done; }
cd "$folder"
[ $# = 0 ] || npm install --silent --no-audit --no-fund --ignore-scripts "$@"

# run cjs|mjs: runs a program of Node.js from the input
run() { cat >"keys.$1" && node "keys.$1"; }

# COMMAND | seen 3<<TEXT: shows the output of the command, and fails if it is not this text
seen() { tee seen && diff - seen <&3; }

# unpack PACKAGE...: unpacks packages of this Debian in the folder
unpack() {
    apt-get download "$@" >/dev/null 2>&1
    for package in *.deb; do dpkg -x "$package" .; done
}

# start_server PACKAGE... -- OPTION...: starts PostgreSQL 15.20 of Debian bookworm, with more packages
start_server() {
    local packages=()
    while [ "$1" != -- ]; do packages+=("$1") && shift; done
    unpack postgresql-15=15.20-0+deb12u1 postgresql-client-15=15.20-0+deb12u1 "${packages[@]}"
    run_server "$folder/usr/lib/postgresql/15/bin" "${@:2}"
}

# start_server_of_sid PACKAGE... -- OPTION...: starts PostgreSQL 18.6 of Debian sid, with the C library
# and the other packages that it needs
start_server_of_sid() {
    local packages=() libraries=/usr/lib/x86_64-linux-gnu server=later/usr/lib/postgresql/18/bin
    while [ "$1" != -- ]; do packages+=("$1") && shift; done
    unpack_later sid postgresql-18=18.6-3 "${packages[@]}" libc6 libcom-err2 libgcc-s1 libgssapi-krb5-2 libicu78 \
        libk5crypto3 libkeyutils1 libkrb5-3 libkrb5support0 libldap2 liblz4-1 libnuma1 libsasl2-2 libssl3t64 \
        libstdc++6 libsystemd0 liburing2 libxml2-16 libzstd1 zlib1g libpam0g libaudit1 libcap-ng0 libpq5 libxxhash0
    unpack patchelf postgresql-client-15=15.20-0+deb12u1
    usr/bin/patchelf --set-interpreter "$folder/later$libraries/ld-linux-x86-64.so.2" \
        --force-rpath --set-rpath "$folder/later$libraries" $server/postgres $server/initdb $server/pg_ctl
    run_server "$folder/$server" "${@:2}"
}

run_server() {
    bin=$1
    user() { if [ "$(id -u)" = 0 ]; then runuser -u postgres -- "$@"; else "$@"; fi; }
    trap 'stop_jobs
        user "$bin/pg_ctl" -D "$folder/d/data" -m immediate stop >/dev/null || true
        rm -rf "$folder"' EXIT
    mkdir d
    chmod 755 .
    [ "$(id -u)" != 0 ] || chown postgres d
    user "$bin/initdb" -D d/data -A trust -U boss >/dev/null
    user "$bin/pg_ctl" -D d/data -l d/log -w start \
        -o "-c listen_addresses= -c unix_socket_directories=$folder/d ${*:2}" >/dev/null
}
sql() { user "$folder/usr/lib/postgresql/15/bin/psql" -h "$folder/d" -U boss -XAtq "$@" 2>&1 || true; }

# unpack_later SUITE PACKAGE...: unpacks packages of a later Debian in `later`
unpack_later() {
    local mirror apt=(apt-get -o Dir::Etc::sourcelist="$folder/sources" -o Dir::Etc::sourceparts=/dev/null
        -o Dir::State::lists="$folder/lists" -o Dir::Cache="$folder/cache")
    mirror=$(apt-get update --print-uris | sed -n "s|^'\(.*\)/dists/[^']*/InRelease'.*|\1|p" | sed -n 1p)
    echo "deb $mirror $1 main" >sources
    mkdir -p lists/partial cache/archives/partial later/debs
    "${apt[@]}" update >/dev/null 2>&1
    (cd later/debs && "${apt[@]}" download "${@:2}" >/dev/null 2>&1)
    for package in later/debs/*; do dpkg -x "$package" later; done
}
