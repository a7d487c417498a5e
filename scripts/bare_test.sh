#!/bin/bash
# Runs the README's first steps, the quickstart and the tests on bare Debian machines: in fresh root
# directories, as root, without environment variables.
#
#   scripts/bare_test.sh [SUITE... [-- COMMAND...]]
#
# The default is to run everything in bookworm and then in trixie. The script tests a copy of the
# checkout without its history. For each root directory it prints the run's duration and the
# directory's final size. In these directories, apt and npm use this machine's mirrors, proxies and
# certificates. Needs root.

set -euo pipefail
cd "$(dirname "$(realpath "$0")")/.."
. scripts/lib.sh
. scripts/roots.sh

tested=()
while [ $# -gt 0 ] && [ "$1" != -- ]; do
    tested+=("$1")
    shift
done
[ ${#tested[@]} -gt 0 ] || tested=(bookworm trixie)
commands=("${@:2}")
[ $# -gt 1 ] || commands=(sh -c 'scripts/first_steps.sh && scripts/quickstart.sh && scripts/quickstart.sh stop && scripts/test.sh')

# Copies this machine's network and npm configuration into the root directory.
connect() {
    local name value
    echo '127.0.0.1 localhost' >"$1/etc/hosts"
    cp -L /etc/resolv.conf "$1/etc/"
    command -v npm >/dev/null || return 0
    for name in registry cafile proxy https-proxy noproxy; do
        value=$(npm config get "$name" 2>/dev/null)
        if [ $name = cafile ] && [ -e "$value" ]; then
            cp -L "$value" "$1/root/ca.crt"
            value=/root/ca.crt
        fi
        case $value in '' | null | undefined) ;; *) echo "$name=$value" ;; esac
    done >"$1/root/.npmrc"
}

for suite in "${tested[@]}"; do
    root=$roots/bare-$suite
    mkdir -p "$roots"
    exec 9>"$root.lock"
    flock 9
    rm -rf --one-file-system "$root"
    bootstrap "$suite" "$root"
    connect "$root"
    copy_source "$root/root/randflake"
    headline "$suite: ${commands[*]}"
    began=$SECONDS
    # shellcheck disable=SC2016  # expanded by the inner shell
    in_root '' "$root" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root \
        sh -c 'cd /root/randflake && exec "$@"' sh "${commands[@]}" 9>&-
    echo "$suite: $(((SECONDS - began) / 60)) min, $(du -sxm "$root" | cut -f1) MB"
done
