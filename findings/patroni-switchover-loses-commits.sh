#!/bin/bash
# A switchover of Patroni 3.0.2 (Debian bookworm, etcd 3.4.23) to a running replica loses commits.
#
# Guess: a switchover loses nothing. Patroni stops the leader, and gives the lead to the candidate
#        only when the candidate has the leader's last WAL, or it refuses.
# Seen:  the leader makes a new member's slot up to loop_wait after the member runs. Until then the
#        member streams nothing. `patronictl list` shows it as running with a lag of 0 MB, the
#        switchover succeeds at once, and what was committed since the base backup is gone: the
#        former leader is rewound.
. findings/lib.sh
modules=(cdiff click dateutil dnspython etcd pkg-resources prettytable psutil psycopg2 six urllib3 wcwidth yaml)
# Patroni makes servers of its own with these binaries.
start_server patroni=3.0.2-1 etcd-server=3.4.23-4+b4 "${modules[@]/#/python3-}" -- -c max_connections=10
chmod 777 .
member() {
    cat >"$1.yml" <<YAML
scope: c
name: $1
etcd3: {host: "127.0.0.1:7391"}
restapi: {listen: "127.0.0.1:$((2 + $2))", connect_address: "127.0.0.1:$((2 + $2))"}
bootstrap:
  dcs: {loop_wait: 30, ttl: 60, retry_timeout: 10, postgresql: {use_pg_rewind: true}}
  initdb: [data-checksums]
  pg_hba: [local all all trust, host all all 127.0.0.1/32 trust, host replication all 127.0.0.1/32 trust]
postgresql:
  listen: 127.0.0.1:$2
  connect_address: 127.0.0.1:$2
  data_dir: $folder/d/$1
  bin_dir: $folder/usr/lib/postgresql/15/bin
  pgpass: $folder/d/$1.pgpass
  basebackup: [{checkpoint: fast}]
  authentication: {superuser: {username: boss, password: a}, replication: {username: rep, password: b}}
  parameters: {unix_socket_directories: $folder/d}
YAML
}
member one 7301
member two 7311
python() { user env PYTHONPATH="$folder/usr/lib/python3/dist-packages" /usr/bin/python3 "$@"; }
patroni() { python -c "from patroni.__main__ import main; main()" "$folder/$1.yml" >>"d/$1.log" 2>&1 & }
ctl() { python -c "from patroni.ctl import ctl; ctl()" -c "$folder/one.yml" "$@"; }
until_seen() { timeout 120 bash -c "until grep -q '$1' '$2'; do sleep 0.1; done"; }
trap 'pkill -KILL -f "$folder/" || true; sleep 1; rm -rf "$folder"' EXIT
user usr/bin/etcd --data-dir "$folder/d/etcd" --listen-client-urls http://127.0.0.1:7391 \
    --advertise-client-urls http://127.0.0.1:7391 --listen-peer-urls http://127.0.0.1:7392 >d/etcd.log 2>&1 &
patroni one
until_seen 'I am (one), the leader with the lock' d/one.log
patroni two
until_seen 'ready to accept read-only connections' d/two.log
sleep 2
{
    sql 'port=7301 dbname=postgres' -c 'CREATE TABLE kept AS SELECT 1; SELECT count(*) FROM kept'
    ctl list -f tsv c | sed -n 's/.*two\t.*\tReplica\t\([a-z]*\)\t.*\t\(.*\)/two: \1, lag \2/p'
    ctl switchover --force --leader one --candidate two | grep -o 'Success.*'
    sleep 5
    sql 'port=7311 dbname=postgres' -c 'SELECT count(*) FROM kept'
} | seen 3<<'SEEN'
1
two: running, lag 0
Successfully switched over to "two"
ERROR:  relation "kept" does not exist
LINE 1: SELECT count(*) FROM kept
                             ^
SEEN
