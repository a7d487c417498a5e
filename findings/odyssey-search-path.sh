#!/bin/bash
# Odyssey 1.5.2 (Debian sid, PostgreSQL 18.6) makes one schema of a search_path of two, and drops settings.
#
# Guess: options of the startup are applied as PostgreSQL applies them, or refused. In transaction
#        mode a SET search_path holds, or is lost with the server's connection, as with PgBouncer.
# Seen:  in both, `a, b` becomes one schema. A startup setting with a dot, as extensions have, is dropped
#        with all behind it. In transaction mode a SET of other settings ends with its statement.
. findings/lib.sh
start_server_of_sid odyssey=1.5.2-1 libcap2 -- -c listen_addresses=127.0.0.1 -c port=7401
cat >odyssey.conf <<'END'
log_format "%m\n" listen { host "127.0.0.1" port 7402 } storage "s" { type "remote" host "127.0.0.1" port 7401 }
database default { user default { authentication "none" storage "s" storage_db "postgres" pool "session" } }
database "each" { user default { authentication "none" storage "s" storage_db "postgres" pool "transaction" } }
END
lib=later/usr/lib/x86_64-linux-gnu
$lib/ld-linux-x86-64.so.2 --library-path $lib later/usr/bin/odyssey odyssey.conf >log &
sleep 3
show="SELECT current_setting('work_mem'), current_setting('my.key', true), current_setting('search_path')"
{
    for options in '-c search_path=a,b' '-c my.key=on -c work_mem=9MB' '-c work_mem=9MB -c my.key=on'; do
        for port in 7401 7402; do PGOPTIONS=$options sql "host=127.0.0.1 port=$port dbname=postgres" -c "$show"; done | paste -sd/
    done
    sql "host=127.0.0.1 port=7402 dbname=each" -c "SET work_mem = '9MB'" -c 'SET search_path = a, b' -c "$show"
} | seen 3<<'SEEN'
4MB||a,b/4MB||"a,b"
9MB|on|"$user", public/4MB||"$user", public
9MB|on|"$user", public/9MB||"$user", public
4MB||"a, b"
SEEN
