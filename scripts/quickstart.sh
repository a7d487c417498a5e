#!/bin/bash
# Builds the extension on a fresh Debian machine, and starts a server with a filled table.
#
#   scripts/quickstart.sh        build, install, start a private server, fill a table, leave it up
#   scripts/quickstart.sh stop   stop that server and remove its folder
#
# The link ./quickstart leads to a folder in /tmp, which contains the secret, the data and the
# socket. The server listens only on this socket, and only the server's user may enter the folder.
# PG_CONFIG chooses the PostgreSQL installation. The default is the newest one on the machine.

set -euo pipefail
self=$0
cd "$(dirname "$(realpath "$0")")/.."
. scripts/lib.sh
for variable in "${!PG@}"; do # PGHOST, PGOPTIONS, ... are meant for other servers
    [ "$variable" = PG_CONFIG ] || unset "$variable"
done
rows=1000000 sessions=8 node_count=4 partitions=8

step() {
    printf '  %s%-10s%s' "$bold" "$1" "$plain"
    SECONDS=0
}

# Runs a program of the chosen PostgreSQL installation as the server's user.
pg() { as_user "$user" "$bindir/$1" "${@:2}"; }

query() {
    pg psql -X -q -v ON_ERROR_STOP=1 -P border=0 -P footer=off -h "$folder" -p 5432 -U postgres \
        -d demo "$@"
}

# Stops the server of an earlier run, and removes its folder.
stop() {
    [ -L quickstart ] || return 0
    folder=$(readlink quickstart)
    if [ -d "$folder" ]; then
        user=$(stat -c %U "$folder")
        ! pg pg_ctl -D "$folder/data" status >/dev/null 2>&1 || pg pg_ctl -D "$folder/data" -m fast -s stop
        as_user "$user" rm -r "$folder"
    fi
    rm quickstart
}

# Prints every ten seconds how many files have been compiled. A slow build takes minutes.
build_extension() {
    mkdir -p build
    while sleep 10 >/dev/null; do
        printf '%s of %s files, ' "$(find src -name '*.o' | wc -l)" "$(find src -name '*.cpp' | wc -l)"
    done &
    build_and_install >build/quickstart.log 2>&1 || {
        kill $!
        echo
        tail -n 20 build/quickstart.log >&2
        die "the build failed; all of its output is in build/quickstart.log"
    }
    kill $!
}

start_server() {
    folder=$(as_user "$user" mktemp -d /tmp/randflake-quickstart.XXXXXX)
    ln -s "$folder" quickstart
    trap stop EXIT # a failure leaves nothing running
    od -An -N16 -tx1 /dev/urandom | tr -d ' \n' |
        as_user "$user" sh -c 'umask 077 && cat >"$1"' - "$folder/secret"
    pg initdb -D "$folder/data" -U postgres -A trust -E UTF8 --no-locale -N >/dev/null
    as_user "$user" sh -c 'cat >>"$1"' - "$folder/data/postgresql.conf" <<-END
		shared_preload_libraries = 'randflake'
		randflake.secret_file = '../secret'
		randflake.node_id = 0
		randflake.node_count = $node_count
		search_path = '"\$user", public, randflake'
		listen_addresses = ''
		port = 5432
		unix_socket_directories = '..'
	END
    pg pg_ctl -D "$folder/data" -l "$folder/log" -w -s start || {
        echo
        as_user "$user" tail -n 20 "$folder/log" >&2
        die "the server did not start"
    }
    pg createdb -h "$folder" -p 5432 -U postgres demo
    query -v partitions=$partitions <<'END'
CREATE SCHEMA randflake;
GRANT USAGE ON SCHEMA randflake TO PUBLIC;
CREATE EXTENSION randflake SCHEMA randflake;
CREATE TABLE item (
    id      bigint PRIMARY KEY DEFAULT randflake_generate(),
    session integer,
    n       integer
) PARTITION BY HASH (id);
SELECT format('CREATE TABLE item_%s PARTITION OF item FOR VALUES WITH (MODULUS %s, REMAINDER %1$s)',
              i, :partitions)
FROM generate_series(0, :partitions - 1) i \gexec
-- A new server takes a few seconds before its first identifier; they are not the table's.
SELECT randflake_generate() \g /dev/null
END
}

fill_table() {
    pg pgbench -n -c $sessions -t 1 -f - -h "$folder" -p 5432 -U postgres demo >/dev/null <<END
INSERT INTO item (session, n) SELECT :client_id, n FROM generate_series(1, $((rows / sessions))) n;
END
}

# Decodes all identifiers, and fails if two have the same time, node id and sequence.
show_table() {
    query -v rows=$rows -v partitions=$partitions <<'END' | sed 's/^./    &/'
\echo '\nAll rows, decoded with the secret'
SET work_mem = '128MB';
CREATE TEMP TABLE decoded AS SELECT id, d.* FROM item, randflake_decode(id) d;
\x on \t on
SELECT count(*) AS rows, count(DISTINCT id) AS "distinct ids",
       count(DISTINCT (generated_at, node_id, sequence)) AS "distinct contents",
       string_agg(DISTINCT node_id::text, ', ') AS "node ids inside",
       (SELECT max(n) FROM (SELECT count(*) n FROM decoded GROUP BY generated_at, node_id) busy)
           AS "busiest second of a node"
FROM decoded;
\x off \t off
CREATE UNIQUE INDEX ON decoded (generated_at, node_id, sequence);
\echo 'Five consecutive rows of one session'
SELECT id, randflake_to_text(id) AS "text form",
       generated_at AS "generated at", node_id AS node, sequence
FROM (SELECT id FROM item WHERE session = 0 AND n BETWEEN 50001 AND 50005 ORDER BY n) neighbour,
     randflake_decode(id);
\echo 'The hash partitions'
SELECT tableoid::regclass AS partition, count(*) AS rows,
       to_char(100.0 * count(*) * :partitions / :rows - 100, 'S90.99') || ' %' AS "off an even split"
FROM item GROUP BY 1 ORDER BY 1
END
}

case ${1:-start} in
    start | stop) ;;
    *) die "usage: $self [stop]" ;;
esac
[ "${1-}" = stop ] || { headline "randflake quickstart" && install_packages make g++; }
find_postgresql
bindir=$("$PG_CONFIG" --bindir)
if [ "${1-}" = stop ]; then
    [ -L quickstart ] && done="stopped and removed" || done="nothing to stop"
    stop
    echo "$done"
    exit
fi
stop
user=$(server_user)
id "$user" >/dev/null 2>&1 || die "servers do not run as root, and there is no user \"$user\""

step build
build_extension
echo "$("$PG_CONFIG" --version), built and installed in $SECONDS s"
step server
start_server
echo "$node_count node ids, fresh secret, in $folder"
step fill
fill_table
echo "$rows rows from $sessions concurrent sessions in $SECONDS s"
show_table

trap - EXIT
psql=$(command -v psql || echo "$bindir/psql")
[ "$psql" != /usr/bin/psql ] || psql=psql
cat <<END
  ${green}The server is running.$plain

    connect   ${bold}$(printf '%q -h %q' "$psql" "$folder") -p 5432 -U postgres demo$plain
    stop      ${bold}$(printf %q "$self") stop$plain   (removes the folder, too)

END
