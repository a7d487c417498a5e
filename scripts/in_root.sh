#!/bin/bash
# Runs a command inside a root directory, with mounts, processes and IPC of its own: whatever it
# mounts or leaves running is gone when it ends.
#
#   scripts/in_root.sh [-x DIRECTORY] ROOT COMMAND...
#
# ROOT / is the machine itself. With -x the command finds DIRECTORY as /mnt, whatever the permissions
# above it, and has no network but a loopback of its own, so that servers of two roots never meet.
# Needs root.

set -euo pipefail

exchange=
if [ "${1-}" = -x ]; then
    exchange=$(realpath "$2")
    shift 2
fi
if [ $# -lt 2 ]; then
    sed -n '2,/^$/s/^# \{0,1\}//p' "$0" >&2
    exit 2
fi
root=$(realpath "$1")
shift

# shellcheck disable=SC2016  # expanded by the inner shell
exec unshare --mount --pid --ipc ${exchange:+--net} --fork --kill-child bash -euc '
    exchange=$1 root=${2%/}
    shift 2
    if [ -n "$exchange" ]; then
        mount --bind "$exchange" "$root/mnt"
        ip link set lo up
    fi
    mount -t proc proc "$root/proc"
    if [ -n "$root" ]; then
        mount --bind /dev "$root/dev"
        mount -t tmpfs tmpfs "$root/tmp"
    fi
    mount -t tmpfs tmpfs "$root/dev/shm"
    exec chroot "$root/" "$@"' in_root "$exchange" "$root" "$@"
