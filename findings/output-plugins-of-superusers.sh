#!/bin/bash
# PostgreSQL 15.20 (Debian bookworm) refuses output plugins to superusers too, and pglogical 2.4.2
# does not tell the subscriber.
#
# Guess: `output_plugin_libraries` binds roles with REPLICATION; a superuser may use any library.
# Seen:  a superuser gets the error about wal2json and about pglogical_output as well. A list in one
#        string is one name, so it changes nothing. create_subscription() succeeds; only the log
#        and the status `down` tell that no row will ever arrive.
. findings/lib.sh
start_server postgresql-15-wal2json=2.5-1+b1 postgresql-15-pglogical=2.4.2-3 -- \
    -c wal_level=logical -c shared_preload_libraries=pglogical
slot="SELECT slot_name FROM pg_create_logical_replication_slot('s', 'wal2json')"
{
    sql postgres -c "SELECT rolsuper FROM pg_roles WHERE rolname = current_user" -c "$slot"
    sql postgres -c "ALTER SYSTEM SET output_plugin_libraries = 'pgoutput, wal2json'" \
        -c 'SELECT pg_reload_conf()' -c 'SELECT pg_sleep(1)' -c "$slot"
    sql postgres -c 'CREATE DATABASE b' -c 'CREATE EXTENSION pglogical' \
        -c "SELECT 'node' FROM pglogical.create_node('a', 'host=$folder/d user=boss dbname=postgres')"
    sql b -c 'CREATE EXTENSION pglogical' \
        -c "SELECT 'node' FROM pglogical.create_node('b', 'host=$folder/d user=boss dbname=b')" \
        -c "SELECT 'created' FROM pglogical.create_subscription('s', 'host=$folder/d user=boss dbname=postgres')" \
        -c 'SELECT pg_sleep(3)' -c 'SELECT status FROM pglogical.show_subscription_status()'
    sed -n '/ERROR:  library "pglogical/{s/.*ERROR/log/p;q}' d/log
} | grep -v '^HINT' | grep . | seen 3<<'SEEN'
t
ERROR:  library "wal2json" may not be used as an output plugin
t
ERROR:  library "wal2json" may not be used as an output plugin
node
node
created
down
log:  library "pglogical_output" may not be used as an output plugin
SEEN
