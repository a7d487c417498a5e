#!/bin/bash
# Runs a leasing server and a server on a snapshot of its file system side by side.
#
#   scripts/snapshot_test.sh [ext4|xfs|btrfs...]    default: all three
#
# As root, after make install. Copies the block device while the file system is frozen, as LVM and
# the snapshots of clouds do, or makes a btrfs subvolume's snapshot. test/t/208_lease_snapshots.pl
# tests more orders of starts, without root.

set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/lib.sh
[ "$(id -u)" = 0 ] || die "run this as root: it mounts loop devices"
install_packages xfsprogs btrfs-progs
bindir=$("${PG_CONFIG:-pg_config}" --bindir)
work=$(mktemp -d "${TMPDIR:-/tmp}/randflake-snapshot.XXXXXX")
chown postgres "$work"
end() {
    for directory in "$work"/*/{data,copy} "$work/coordinator"; do
        [ ! -e "$directory/postmaster.pid" ] || stops "$directory"
    done
    for directory in "$work"/*-snapshot "$work"/*-original; do
        ! mountpoint -q "$directory" || umount "$directory"
    done
    rm -rf "$work"
}
as_postgres() { (cd "$work" && runuser -u postgres -- "$@"); }
starts() { as_postgres "$bindir/pg_ctl" -ws -D "$1" -l "$work/log" -o "-p $2 -k $work" start; }
stops() { as_postgres "$bindir/pg_ctl" -ws -D "$1" -m immediate stop; }
sql() { as_postgres psql -XAtqd "host=$work port=$1 dbname=postgres" -c "$2"; }
lease() { sql "$1" "SET randflake.max_wait = '1min'; SELECT randflake_generate(); SELECT lease_id FROM randflake_status" | tail -n 1; }
secret=$(od -An -v -N16 -tx1 /dev/urandom | tr -d ' \n')
makes() { # DIRECTORY SETTING...: initializes a server
    as_postgres "$bindir/initdb" -D "$1" -A trust -N --wal-segsize=1 >/dev/null
    printf '%s\n' "listen_addresses = ''" "shared_preload_libraries = 'randflake'" \
        "randflake.secret = '$secret'" "${@:2}" >>"$1/postgresql.conf"
}
trap end EXIT

makes "$work/coordinator"
starts "$work/coordinator" 1
sql 1 'CREATE EXTENSION randflake; CREATE EXTENSION randflake_coordinator;
       SELECT randflake_lease_configure(max_duration => 3600, never_leased => true)' >/dev/null
[ $# -gt 0 ] || set -- ext4 xfs btrfs
for kind; do
    original=$work/$kind-original snapshot=$work/$kind-snapshot copy=$work/$kind-snapshot/data
    mkdir "$original" "$snapshot"
    truncate -s 400M "$work/$kind.img"
    "mkfs.$kind" -q "$work/$kind.img"
    mount -o loop "$work/$kind.img" "$original"
    [ "$kind" != btrfs ] || btrfs -q subvolume create "$original/data"
    install -d -o postgres -m 700 "$original/data"
    makes "$original/data" "randflake.coordinator = 'host=$work port=1 dbname=postgres'" \
        "randflake.lease_duration = '1h'"
    starts "$original/data" 2
    sql 2 'CREATE EXTENSION randflake'
    held=$(lease 2)
    sleep 4 # the server is idle, so the marker shows what the snapshot has
    if [ "$kind" = btrfs ]; then
        copy=$original/copy
        btrfs -q subvolume snapshot "$original/data" "$copy"
    else
        fsfreeze -f "$original"
        cp "$work/$kind.img" "$work/$kind.copy"
        fsfreeze -u "$original"
        mount -o "loop$([ "$kind" != xfs ] || echo ,nouuid)" "$work/$kind.copy" "$snapshot"
    fi
    rm "$copy/postmaster.pid"
    starts "$copy" 3
    [ "$(lease 3)" != "$held" ] || die "$kind: the snapshot goes on with the lease of the original"
    [ "$(lease 2)" = "$held" ] || die "$kind: the original does not go on with its lease"
    for port in 2 3; do
        sql $port 'SELECT randflake_generate() FROM generate_series(1, 10000)'
    done | sort >"$work/ids"
    [ -z "$(uniq -d "$work/ids")" ] || die "$kind: identifiers repeat"
    stops "$original/data"
    stops "$copy"
    starts "$original/data" 2
    starts "$copy" 3
    [ "$(lease 2)" != "$(lease 3)" ] || die "$kind: both go on with one lease after a crash"
    echo "$kind: an original and its snapshot have leases of their own"
    stops "$original/data"
    stops "$copy"
done
