#!/bin/bash
# Runs the callback of docs/containers.md under Patroni and etcd (Debian:
# patroni 3.0, etcd 3.4): three members with static node ids, then three with leased ones, whose
# coordinator has three members too. Ports, sockets and superuser are not the defaults. Clients ask
# each member and, every 10 ms, the leader. Fails if an identifier repeats or a problem stays.
#
#   scripts/patroni.sh [static|leased]    prints the longest time without an identifier, per event

set -euo pipefail
cd "$(dirname "$(realpath "$0")")/.." || exit
. scripts/lib.sh
[ "$(id -u)" = 0 ] || die "this needs root, to run servers as postgres"
install_packages patroni etcd-server python3-psycopg2 python3-etcd

bin=$("${PG_CONFIG:-pg_config}" --bindir)
work=$(mktemp -d "${TMPDIR:-/tmp}/randflake-patroni.XXXXXX")
chmod 755 "$work"
user() { runuser -u postgres -- env PATH="$bin:$PATH" "$@"; }
# Ends all processes of this run: only theirs have $work in their arguments.
processes() { pgrep -f -- "$work/" | grep -vx $$ || true; }
finish() {
    local pids
    for signal in CONT TERM INT KILL; do
        pids=$(processes)
        # shellcheck disable=SC2086 # a list
        [ -z "$pids" ] || { kill -"$signal" $pids 2>/dev/null || true; sleep 1; }
    done
    if [ -n "${keep-}" ]; then echo "everything is left in $work"; else rm -rf "$work"; fi
}
trap finish EXIT

# example FILE NAME: prints the code block of a page that has this name.
example() {
    awk -v name="scripts/patroni.sh runs the $2" '/^```/ && index($0, name) {on = 1; next} on && /^```$/ {exit} on' "docs/$1"
}
example containers.md callback >"$work/when_primary"
example containers.md parameters >"$work/parameters"
grep -q psql "$work/when_primary" || die "the page lacks the callback"
grep -q node_count "$work/parameters" || die "the page lacks the parameters"
chmod 755 "$work/when_primary"
mkdir "$work/etc"
head -c 16 /dev/urandom | od -An -tx1 | tr -d ' \n' >"$work/secret"
chown -R postgres "$work"
chmod 600 "$work/secret"

first_port=${RANDFLAKE_PORT:-7300}
etcd=$((first_port + 90))
loopback=127.0.0.1
url() { printf 'http://%s:%d' "$loopback" "$1"; }
client=$(url "$etcd") peer=$(url $((etcd + 1)))
user etcd --data-dir "$work/etcd" --listen-client-urls "$client" --advertise-client-urls "$client" \
    --listen-peer-urls "$peer" --initial-advertise-peer-urls "$peer" --initial-cluster "default=$peer" \
    >"$work/etcd.log" 2>&1 &

declare -A base=([static]=0 [leased]=10 [ids]=20)
first_call='SELECT randflake_generate(), randflake_acknowledge_copy()'
declare -A on_promotion=([static]=$first_call [leased]=$first_call
    [ids]='SELECT randflake_lease_configure(nothing_lost => true)')
port_of() { echo $((first_port + base[$1] + $2)); }
conninfo() { echo "host=$work/run/$1$2 port=$(port_of "$1" "$2") user=boss dbname=app"; }
hosts() { echo "host=$work/run/${1}1,$work/run/${1}2,$work/run/${1}3 port=$(port_of "$1" 1),$(port_of "$1" 2),$(port_of "$1" 3) user=boss dbname=app"; }
ctl() { user patronictl -c "$work/etc/${1}1.yml" "${@:2}"; }
sql() { user psql -XAtqd "$1" -c "$2"; }
leader_of() { user patronictl -c "$work/etc/${1}1.yml" list -f tsv 2>/dev/null | awk -F'\t' '$4 == "Leader" && $5 == "running" {print substr($2, length($2))}'; }

# until_true SECONDS COMMAND...: what the command said last explains a failure.
until_true() {
    local end=$((SECONDS + $1)) said
    until said=$("${@:2}" 2>&1); do
        [ $SECONDS -lt $end ] || { echo "not within $1 s: ${*:2}: $said" >&2; return 1; }
        sleep 0.5
    done
}

# configure CLUSTER N PARAMETER...: writes the member's file.
configure() {
    local name=$1$2 port parameter
    port=$(port_of "$1" "$2")
    mkdir -p "$work/run/$name"
    chown postgres "$work/run" "$work/run/$name"
    {
        cat <<YAML
scope: $1
name: $name
etcd3: {host: "$loopback:$etcd"}
restapi: {listen: "127.0.0.1:$((port + 40))", connect_address: "127.0.0.1:$((port + 40))"}
bootstrap:
  dcs:
    ttl: 20
    loop_wait: 5
    retry_timeout: 5
    synchronous_mode: $([ "$1" = ids ] && echo true || echo false)
    postgresql:
      use_pg_rewind: true
      parameters:
$(for parameter in "${@:3}"; do echo "        $parameter"; done)
  initdb: [{encoding: UTF8}, data-checksums]
  pg_hba: [local all all trust, host all all 127.0.0.1/32 trust, host replication all 127.0.0.1/32 trust]
postgresql:
  listen: 127.0.0.1:$port
  connect_address: 127.0.0.1:$port
  data_dir: $work/data/$name
  bin_dir: $bin
  pgpass: $work/etc/$name.pgpass
  basebackup: [{checkpoint: fast}]
  authentication: {superuser: {username: boss, password: a}, replication: {username: rep, password: b}}
  parameters: {unix_socket_directories: $work/run/$name, max_connections: 40, shared_buffers: 16MB}
  callbacks:
    on_role_change: $work/when_primary "$(conninfo "$1" "$2")" "${on_promotion[$1]}"
YAML
    } >"$work/etc/$name.yml"
    chown postgres "$work/etc/$name.yml"
}
start() { user patroni "$work/etc/$1$2.yml" >>"$work/$1$2.log" 2>&1 & }
# running CLUSTER: both replicas stream, too. Patroni 3.0 makes their slots up to loop_wait after
# they have started, and switches over to one that does not stream yet, which loses what it lacks.
running() {
    [ "$(user patronictl -c "$work/etc/${1}1.yml" list -f tsv 2>/dev/null | grep -Ec $'\t(running|streaming)\t')" = 3 ] &&
        [ "$(sql "$(hosts "$1") target_session_attrs=read-write" "SELECT count(*) FROM pg_stat_replication WHERE state = 'streaming'")" = 2 ]
}
has_leader() { [ -n "$(leader_of "$1")" ]; }
# no_problem CLUSTER: the leader's generator has none.
no_problem() {
    local problem
    problem=$(sql "$(hosts "$1") target_session_attrs=read-write" "SELECT coalesce(problem, 'none') FROM randflake_status")
    [ "$problem" = none ] || { echo "$problem"; return 1; }
}

make_cluster() {
    local n
    mkdir -p "$work/data"
    chown postgres "$work/data" "$work/etc"
    for n in 1 2 3; do configure "$1" "$n" "${@:2}"; done
    start "$1" 1
    until_true 120 has_leader "$1"
    sql "$(conninfo "$1" 1) dbname=postgres" 'CREATE DATABASE app'
    start "$1" 2
    start "$1" 3
    until_true 180 running "$1"
}

cat >"$work/client.py" <<'PY'
# Writes the time and the identifiers of each call: client.py CONNECTION FILE COUNT
import psycopg2, sys, time
out = open(sys.argv[2], "a", buffering=1)
while True:
    try:
        with psycopg2.connect(sys.argv[1], connect_timeout=1, options="-c randflake.max_wait=500") as session:
            session.autocommit = True
            cursor = session.cursor()
            while True:
                cursor.execute("SELECT randflake_generate(%s)", [int(sys.argv[3])])
                now = time.time()
                out.write("".join("%.3f %d\n" % (now, row[0]) for row in cursor.fetchall()))
                time.sleep(0.01)
    except psycopg2.Error:
        time.sleep(0.05)
PY
load() {
    user /usr/bin/python3 "$work/client.py" "$(hosts "$1") target_session_attrs=read-write" "$work/leader.$1" 1 &
    for n in 1 2 3; do user /usr/bin/python3 "$work/client.py" "$(conninfo "$1" "$n")" "$work/member$n.$1" 100 & done
    until_true 60 test -s "$work/leader.$1"
}

# event TEXT CLUSTER COMMAND...: runs the command, waits until all is well again, and prints the
# longest time without an identifier since the command began.
event() {
    local text=$1 cluster=$2 from
    from=$(date +%s.%3N)
    "${@:3}" >>"$work/events.log" 2>&1
    sleep 2
    until_true 180 running "$cluster"
    until_true 120 no_problem "$data"
    sleep 3
    awk -v from="$from" -v text="$text" '$1 < from {last = $1; next} {if (last && $1 - last > gap) gap = $1 - last; last = $1}
        END {printf "%-42s %5.1f s\n", text, gap}' "$work/leader.$data"
}
another() { local n; n=$(leader_of "$1"); echo $((n % 3 + 1)); }
switchover() { ctl "$1" switchover --force --leader "$1$(leader_of "$1")" --candidate "$1$(another "$1")"; }
postmaster_of() { head -1 "$work/data/$1$2/postmaster.pid"; }
kill_leader() {  # Patroni and PostgreSQL at once, as if the machine died; then the member comes back and is rewound
    local n
    n=$(leader_of "$1")
    pkill -KILL -f "patroni $work/etc/$1$n.yml" || true
    kill -KILL -- "-$(postmaster_of "$1" "$n")" || kill -KILL "$(postmaster_of "$1" "$n")"
    until_true 120 other_leads "$1" "$n"
    sleep 5
    start "$1" "$n"
}
other_leads() { local n; n=$(leader_of "$1"); [ -n "$n" ] && [ "$n" != "$2" ]; }
kill_postmaster() { kill -KILL "$(postmaster_of "$1" "$(leader_of "$1")")"; sleep 10; }
reinit() { ctl "$1" reinit "$1" "$1$(another "$1")" --force --wait; }
two_primaries() {
    local n primaries=0
    for n in 1 2 3; do [ "$(sql "$(conninfo "$1" "$n")" 'SELECT pg_is_in_recovery()')" != f ] || primaries=$((primaries + 1)); done
    [ $primaries = 2 ]
}
hang() {  # Patroni alone; without a watchdog the leader goes on beside the promoted member
    local n
    n=$(leader_of "$1")
    pkill -STOP -f "patroni $work/etc/$1$n.yml"
    until_true 120 two_primaries "$1"
    sleep 15
    pkill -CONT -f "patroni $work/etc/$1$n.yml"
}
repeats() { cat "$work"/*."$1" | cut -d' ' -f2 | sort | uniq -d | wc -l; }
total() { cat "$work"/*."$1" | wc -l; }

members() {
    event "$data: switchover" "$data" switchover "$data"
    event "$data: switchover back" "$data" switchover "$data"
    event "$data: the postmaster is killed" "$data" kill_postmaster "$data"
    event "$data: the leader is killed, and rewound" "$data" kill_leader "$data"
    event "$data: a member is made anew" "$data" reinit "$data"
    event "$data: switchover to it" "$data" switchover "$data"
}
verdict() {
    local repeated
    repeated=$(repeats "$data")
    echo "$data: $(total "$data") identifiers, $repeated twice"
    [ "$repeated" = 0 ] || { keep=1; die "identifiers repeat"; }
}
mapfile -t page < <(sed -n 's/^ *\(randflake\.node_[a-z]*: .*\)/\1/p' "$work/parameters")
common=("shared_preload_libraries: randflake" "randflake.secret_file: $work/secret" "max_worker_processes: 12")

if [ "${1-static}" = static ]; then
    data=static
    make_cluster static "${common[@]}" "${page[@]}"
    sql "$(hosts static) target_session_attrs=read-write" 'CREATE EXTENSION randflake'
    load static
    members
    verdict
    # docs/containers.md says that this repeats identifiers.
    event "static: Patroni hangs, without a watchdog" static hang static
    echo "static: $(repeats static) identifiers twice after that"
    pids=$(processes | grep -vx "$(pgrep -f "etcd --data-dir $work/etcd")")  # runuser and etcd
    # shellcheck disable=SC2086 # a list
    kill $pids 2>/dev/null || true
    sleep 3
fi
if [ "${1-leased}" = leased ]; then
    data=leased
    make_cluster ids "shared_preload_libraries: ''" "synchronous_commit: 'on'"
    sql "$(hosts ids) target_session_attrs=read-write" 'CREATE EXTENSION randflake_coordinator; SELECT randflake_lease_configure(never_leased => true)'
    make_cluster leased "${common[@]}" "randflake.coordinator: \"$(hosts ids)\""
    sql "$(hosts leased) target_session_attrs=read-write" 'CREATE EXTENSION randflake'
    load leased
    members
    event "leased: the coordinator switches over" ids switchover ids
    event "leased: the coordinator's leader is killed" ids kill_leader ids
    event "leased: Patroni hangs, without a watchdog" leased hang leased
    verdict
fi
