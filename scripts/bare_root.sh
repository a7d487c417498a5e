#!/bin/bash
# Makes a bare Debian root with the given packages, for builds and tests on another suite than the
# machine's own. A root that is there and complete stays as it is.
#
#   scripts/bare_root.sh DIRECTORY SUITE PACKAGE...
#
# SUITE may go on to say which source package's packages come from a second suite:
# sid+experimental:postgresql-19. The mirror and its keyring are those of the machine's own apt
# configuration. Needs root and debootstrap.
#
# The root is made as DIRECTORY.part and gets its name when it is complete. .recipe in it tells what
# it was made from, so that other packages make it anew.

set -euo pipefail
here=$(realpath "$(dirname "$0")")
. "$here/lib.sh"

[ $# -ge 3 ] || die "usage: ${0##*/} DIRECTORY SUITE PACKAGE..."
recipe=${*:2}
directory=$1 part=$1.part log=$1.log
IFS=+: read -r suite other_suite other_source <<<"$2"
shift 2

# The mirror of the suite that the machine runs, as apt itself understands its configuration.
find_mirror() {
    local codename
    codename=$(sed -n 's/^VERSION_CODENAME=//p' /etc/os-release)
    apt-get update --print-uris |
        sed -n "s|^'\(.*\)/dists/$codename/InRelease'.*|\1|p" | sed -n 1p
}

# The keyrings that the mirror is signed with: signed-by=FILE on its line of a .list file, or
# Signed-By: FILE in its stanza of a .sources file. None when no file is named; debootstrap knows
# Debian's own.
find_keyrings() {
    local list parts
    eval "$(apt-config shell list Dir::Etc::sourcelist/f parts Dir::Etc::sourceparts/d)"
    find "$list" "$parts" -name '*.list' -exec cat {} + | grep -v '^ *#' | grep -F "$1" |
        sed -n 's|.*signed-by=\(/[^] ]*\).*|\1|p'
    find "$parts" -name '*.sources' -exec awk -v RS= -v mirror="$1" 'index($0, mirror)' {} + |
        sed -n 's|^signed-by: *\(/[^ ]*\).*|\1|Ip'
}

make_root() {
    local mirror keyring
    mirror=$(find_mirror)
    [ -n "$mirror" ] || die "apt's configuration names no mirror of the suite that this machine runs"
    keyring=$(find_keyrings "$mirror" | sed -n 1p)
    eval "$(apt-config shell http_proxy Acquire::http::Proxy)"
    [ -z "${http_proxy-}" ] || export http_proxy

    # debootstrap's script for sid fits every suite, also those younger than debootstrap.
    debootstrap --variant=minbase ${keyring:+--keyring="$keyring"} "$suite" "$part" "$mirror" sid

    # Release files of snapshots and of mirrors left behind may have expired.
    cat >"$part/etc/apt/apt.conf.d/90bare" <<'END'
Acquire::Check-Valid-Until "false";
Acquire::Languages "none";
Dpkg::Options:: "--force-unsafe-io";
END
    if [ -n "$other_suite" ]; then
        sed "s/ $suite / $other_suite /" "$part/etc/apt/sources.list" \
            >"$part/etc/apt/sources.list.d/other.list"
        printf '%s\n' "Package: src:$other_source" "Pin: release $other_suite" \
            'Pin-Priority: 500' >"$part/etc/apt/preferences.d/other"
    fi
    # Installing a server must neither start it nor set up a cluster.
    printf '#!/bin/sh\nexit 101\n' >"$part/usr/sbin/policy-rc.d"
    chmod 755 "$part/usr/sbin/policy-rc.d"
    mkdir "$part/etc/postgresql-common"
    echo 'create_main_cluster = false' >"$part/etc/postgresql-common/createcluster.conf"

    "$here/in_root.sh" "$part" apt-get -q update
    "$here/in_root.sh" "$part" env DEBIAN_FRONTEND=noninteractive \
        apt-get -qy --no-install-recommends install "$@"
    "$here/in_root.sh" "$part" apt-get clean
    echo "$recipe" >"$part/.recipe"
}

mkdir -p "$(dirname "$directory")"
exec 9>"$directory.lock"
flock 9
[ "$(cat "$directory/.recipe" 2>/dev/null)" != "$recipe" ] || exit 0

rm -rf --one-file-system "$part"
# In a process of its own, where errors end it although its outcome is looked at.
(make_root "$@") >"$log" 2>&1 &
if ! wait $!; then
    tail -n 20 "$log" >&2
    die "could not make a root of $suite; all of it: $log"
fi
rm -rf --one-file-system "$directory"
mv "$part" "$directory"
