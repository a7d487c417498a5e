#!/bin/bash
# Runs a command inside a root directory, with mounts, processes and IPC of its own. What it mounts or
# leaves running is removed when it ends.
#
#   scripts/in_root.sh [-t] [-x DIRECTORY] ROOT COMMAND...
#
# With -x the command finds DIRECTORY as /mnt, whatever the permissions above it, and has no network
# but a loopback of its own, so that servers of two roots never meet. With -t what it writes to ROOT
# is thrown away. Needs root; works inside a root, too.

set -euo pipefail

usage() {
    sed -n '2,/^$/s/^# \{0,1\}//p' "$0" >&2
    exit 2
}

exchange='' throw_away=''
while getopts tx: option; do
    case $option in
        t) throw_away=1 ;;
        x) exchange=$(realpath "$OPTARG") ;;
        *) usage ;;
    esac
done
shift $((OPTIND - 1))
[ $# -ge 2 ] || usage
root=$(realpath "$1")
shift

# shellcheck disable=SC2016  # expanded by the inner shell
exec unshare --mount --pid --ipc ${exchange:+--net} --fork --kill-child bash -euc '
    exchange=$1 throw_away=$2 root=$3
    shift 3
    if [ -n "$throw_away" ]; then
        mount -t tmpfs tmpfs "$root/mnt"
        mkdir "$root/mnt/upper" "$root/mnt/work"
        mount -t overlay overlay "$root" -o \
            "lowerdir=$root,upperdir=$root/mnt/upper,workdir=$root/mnt/work"
    else
        # unshare, inside, wants / to be a mount.
        mount --bind "$root" "$root"
    fi
    if [ -n "$exchange" ]; then
        mount --bind "$exchange" "$root/mnt"
        ip link set lo up
    fi
    mount -t proc proc "$root/proc"
    mount --bind /dev "$root/dev"
    mount -t tmpfs tmpfs "$root/dev/shm"
    mount -t tmpfs tmpfs "$root/tmp"
    unset TMPDIR PG_CONFIG
    exec chroot "$root" "$@"' in_root "$exchange" "$throw_away" "$root" "$@"
