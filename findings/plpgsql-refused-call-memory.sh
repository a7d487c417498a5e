#!/bin/bash
# PostgreSQL 15.20 (Debian bookworm) keeps memory of each refused call of a PL/pgSQL trigger function
# until the session ends.
#
# Guess: the compilation that fails is freed with its transaction, or is kept once for each function.
# Seen:  each refused call leaves one more memory context "PL/pgSQL function", a few kB, so a
#        session of a pooler that repeats the call grows without end. A function that fails
#        while it runs keeps what its first call made, however often the call is repeated.
set -euo pipefail
folder=$(mktemp -d)
bin=$folder/usr/lib/postgresql/15/bin
user() { if [ "$(id -u)" = 0 ]; then runuser -u postgres -- "$@"; else "$@"; fi; }
trap 'user "$bin/pg_ctl" -D "$folder/d/data" -m immediate stop >/dev/null || true; rm -rf "$folder"' EXIT
cd "$folder"
apt-get download postgresql-15=15.20-0+deb12u1 postgresql-client-15=15.20-0+deb12u1 >/dev/null 2>&1
for package in *.deb; do dpkg -x "$package" .; done
mkdir d
chmod 755 .
[ "$(id -u)" != 0 ] || chown postgres d
user "$bin/initdb" -D d/data -A trust -U boss >/dev/null
user "$bin/pg_ctl" -D d/data -l d/log -w start \
    -o "-c listen_addresses= -c unix_socket_directories=$folder/d" >/dev/null
{
    echo "CREATE FUNCTION refused() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END';"
    echo "CREATE FUNCTION fails() RETURNS integer LANGUAGE plpgsql AS 'BEGIN RETURN 1 / 0; END';"
    for function in fails refused; do
        for ((i = 0; i < 50; i++)); do echo "SELECT $function();"; done
        echo "SELECT '$function', count(*), sum(total_bytes) > 150000
            FROM pg_backend_memory_contexts WHERE name = 'PL/pgSQL function';"
    done
} | user "$bin/psql" -h "$folder/d" -U boss -XAtq postgres 2>&1 | grep -E 'ERROR|[|]' | sort | uniq -c | tee seen
diff -w - seen <<'SEEN'
50 ERROR:  division by zero
50 ERROR:  trigger functions can only be called as triggers
1 fails|2|f
1 refused|52|t
SEEN
