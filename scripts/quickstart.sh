#!/bin/bash
# From a fresh Debian machine to a server full of identifiers.
#
#   scripts/quickstart.sh        build, install, start a private server, fill a table, leave it up
#   scripts/quickstart.sh stop   stop that server and remove its folder
#
# The folder is ./quickstart: secret, data and socket, closed to all but the server's user. The
# server listens on that socket alone, so the folder's permissions decide who may connect. Where
# the server's user cannot work in the checkout, ./quickstart is a link to a temporary folder.
# PG_CONFIG chooses the PostgreSQL; default is the newest one installed.

set -euo pipefail
self=$0
cd "$(dirname "$(realpath "$0")")/.."
. scripts/lib.sh
for variable in "${!PG@}"; do # PGHOST, PGOPTIONS, ... are meant for other servers
    [ "$variable" = PG_CONFIG ] || unset "$variable"
done

rows=1000000
sessions=8
node_count=4
partitions=8
socket_path_max=107 # bytes, of a Unix socket's address
socket=/.s.PGSQL.5432

thousands() {
    sed ':again; s/\B[0-9]\{3\}\>/,&/; t again' <<<"$1"
}

step() {
    printf '  %s%-14s%s' "$bold" "$1" "$plain"
    unfinished_line=1
}

result() {
    echo "$*"
    unfinished_line=
}

microseconds() {
    echo "${EPOCHREALTIME/./}"
}

seconds_since() {
    local tenths=$((($(microseconds) - $1 + 50000) / 100000))
    echo "$((tenths / 10)).$((tenths % 10)) s"
}

# Runs a program of the chosen PostgreSQL as the server's user.
pg() {
    local program=$1
    shift
    as_user "$user" "$bindir/$program" "$@"
}

query() {
    pg psql -X -q -v ON_ERROR_STOP=1 -h "$folder" -p 5432 -U postgres -d "${database:-demo}" "$@"
}

# A result set as an indented table.
table() {
    query -P border=0 -P footer=off "$@" | sed 's/^./    &/'
}

has_previous() {
    [ -e quickstart ] || [ -L quickstart ]
}

# Stops and removes what an earlier run left.
remove_previous() {
    local user folder
    folder=$(realpath -m quickstart)
    if [ -d "$folder" ]; then
        user=$(stat -c %U "$folder")
        if [ -n "$(as_user "$user" ls -A "$folder")" ]; then
            as_user "$user" test -e "$folder/secret" ||
                die "$folder was not made by this script; please move it away"
            if pg pg_ctl -D "$folder/data" status >/dev/null 2>&1; then
                pg pg_ctl -D "$folder/data" -m fast -w -s stop
            fi
            as_user "$user" find "$folder" -mindepth 1 -delete
        fi
        rmdir "$folder" 2>/dev/null || as_user "$user" rmdir "$folder"
    fi
    [ ! -L quickstart ] || rm quickstart
}

# Whether the server's user can keep data and a socket in a folder; says why not.
usable() {
    if [ $((${#1} + ${#socket})) -gt $socket_path_max ]; then
        echo "the path of $1 is too long for a socket"
        return 1
    elif ! as_user "$user" test -w "$1" -a -x "$1"; then
        echo "user $user cannot write to $1"
        return 1
    fi
}

# Makes the folder; sets `folder`, and `reason` where it is not in the checkout.
make_folder() {
    folder=$PWD/quickstart
    mkdir -m 700 quickstart
    [ "$(id -un)" = "$user" ] || chown "$user:" quickstart
    reason=$(usable "$folder") && return
    rmdir quickstart

    local place
    for place in "${TMPDIR:-/tmp}" /tmp; do
        folder=$(as_user "$user" mktemp -d "$place/randflake-quickstart.XXXXXX" 2>/dev/null) ||
            continue
        if usable "$folder" >/dev/null; then
            ln -s "$folder" quickstart
            return
        fi
        as_user "$user" rmdir "$folder"
    done
    die "$reason, and /tmp does not do either"
}

start_server() {
    od -An -N16 -tx1 /dev/urandom | tr -d ' \n' |
        as_user "$user" sh -c 'umask 077 && cat >"$1"' - "$folder/secret"
    pg initdb -D "$folder/data" -U postgres -A trust -E UTF8 --no-locale -N >/dev/null
    as_user "$user" sh -c 'cat >>"$1"' - "$folder/data/postgresql.conf" <<-END
		shared_preload_libraries = 'randflake'
		randflake.secret_file = '../secret'
		randflake.node_id = 0
		randflake.node_count = $node_count
		listen_addresses = ''
		port = 5432
		unix_socket_directories = '..'
	END
    if ! pg pg_ctl -D "$folder/data" -l "$folder/log" -w -s start; then
        result failed
        as_user "$user" tail -n 20 "$folder/log" >&2
        die "the server did not start"
    fi
    trap 'pg pg_ctl -D "$folder/data" -m fast -s stop' EXIT # a failure leaves nothing running
}

create_table() {
    database=postgres query -c 'CREATE DATABASE demo'
    query -v partitions=$partitions <<'END'
CREATE EXTENSION randflake;
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
    local session pids=() pid errors=build/quickstart-sessions.log
    for ((session = 1; session <= sessions; session++)); do
        query -c "INSERT INTO item (session, n)
                  SELECT $session, n FROM generate_series(1, $((rows / sessions))) n" &
        pids+=($!)
    done 2>$errors
    for pid in "${pids[@]}"; do
        wait "$pid" || {
            result failed
            cat $errors >&2
            die "a session failed"
        }
    done
}

# Counts what is in the table, every id decoded, and fails if an id or its content comes twice.
count_table() {
    local stored ids contents nodes first last busiest
    IFS='|' read -r stored ids contents nodes first last busiest < <(
        query -At <<'END'
SET work_mem = '128MB';
CREATE TEMP TABLE decoded AS SELECT id, d.* FROM item, randflake_decode(id) d;
SELECT count(*), count(DISTINCT id), count(DISTINCT (generated_at, node_id, sequence)),
       string_agg(DISTINCT node_id::text, ', '),
       to_char(min(generated_at), 'HH24:MI:SS'), to_char(max(generated_at), 'HH24:MI:SS'),
       (SELECT max(n) FROM (SELECT count(*) n FROM decoded GROUP BY generated_at, node_id) busy)
FROM decoded;
END
    ) || die "could not count the rows"
    [ "$stored" = $rows ] || die "$stored rows instead of $rows"
    [ "$ids" = $rows ] && [ "$contents" = $rows ] ||
        die "not unique: $ids distinct ids with $contents distinct contents in $rows rows"
    printf '    %-26s%s\n' \
        rows "$(thousands "$stored")" \
        "distinct ids" "$(thousands "$ids")" \
        "distinct contents" "$(thousands "$contents")" \
        "node ids inside" "$nodes" \
        "seconds inside" "$first to $last" \
        "busiest second of a node" "$(thousands "$busiest") of 131,072 possible ids"
}

show_neighbours() {
    table <<'END'
SELECT id, randflake_to_text(id) AS "text form",
       generated_at AS "generated at", node_id AS node, sequence
FROM (SELECT id FROM item WHERE session = 1 AND n BETWEEN 50001 AND 50005 ORDER BY n) neighbour,
     randflake_decode(id)
END
}

show_partitions() {
    table -v rows=$rows -v partitions=$partitions <<'END'
SELECT tableoid::regclass AS partition, count(*) AS rows,
       to_char(100.0 * count(*) * :partitions / :rows - 100, 'S90.99') || ' %' AS "off an even split"
FROM item GROUP BY 1 ORDER BY 1
END
}

case ${1:-start} in
start) ;;
stop)
    find_postgresql
    bindir=$("$PG_CONFIG" --bindir)
    if has_previous; then
        remove_previous
        echo "stopped and removed"
    else
        echo "nothing to stop"
    fi
    exit
    ;;
*) die "usage: $self [stop]" ;;
esac

headline "randflake quickstart"

install_packages make g++
find_postgresql
bindir=$("$PG_CONFIG" --bindir)
user=$(server_user)
id "$user" >/dev/null 2>&1 || die "servers do not run as root, and there is no user \"$user\""

step build
began=$(microseconds)
mkdir -p build
build_and_install >build/quickstart.log 2>&1 || {
    result failed
    tail -n 20 build/quickstart.log >&2
    die "the build failed; all of its output is in build/quickstart.log"
}
result "$("$PG_CONFIG" --version), built and installed in $(seconds_since "$began")"

step server
if has_previous; then
    remove_previous
fi
make_folder
start_server
create_table
result "$node_count node ids, fresh secret, in $folder"
[ -z "$reason" ] || printf '%16s(%s)\n' "" "$reason"

step fill
began=$(microseconds)
fill_table
result "$(thousands $rows) rows from $sessions concurrent sessions in $(seconds_since "$began")"

printf '\n  %sAll rows, decoded with the secret%s\n' "$bold" "$plain"
count_table
printf '\n  %sFive consecutive rows of one session%s\n' "$bold" "$plain"
show_neighbours
printf '  %sThe %s hash partitions%s\n' "$bold" "$partitions" "$plain"
show_partitions

trap - EXIT
psql=$(command -v psql || echo "$bindir/psql")
[ "$psql" != /usr/bin/psql ] || psql=psql
cat <<END
  ${green}The server is running.$plain

    connect   ${bold}$(printf '%q -h %q' "$psql" "$folder") -p 5432 -U postgres demo$plain
    stop      ${bold}$(printf %q "$self") stop$plain   (removes the folder, too)

END
