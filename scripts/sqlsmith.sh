#!/bin/bash
# Random queries over the functions, types, tables and views of the three extensions: sqlsmith, against
# the installed extensions, on a server of its own. Fails if a process of the server crashes. Functions
# that return sets are called by the views only, since sqlsmith calls none.
#
#   scripts/sqlsmith.sh [SECONDS]      default 600
#
# The role that asks is no superuser, and was granted everything that the extensions have.

set -euo pipefail
cd "$(dirname "$(realpath "$0")")/.." || exit
. scripts/lib.sh

seconds=${1:-600}
install_packages sqlsmith
find_postgresql
bindir=$("$PG_CONFIG" --bindir)
user=$(server_user)
work=$(mktemp -d "${TMPDIR:-/tmp}/randflake-sqlsmith.XXXXXX")
[ "$(id -u)" -ne 0 ] || chown "$user" "$work"
progress=$(mktemp)
trap 'as_user "$user" "$bindir/pg_ctl" -D "$work/data" -m immediate stop >/dev/null || true
    rm -r "$work" "$progress"' EXIT

as_user "$user" "$bindir/initdb" -D "$work/data" --auth=trust --no-sync --username=postgres --encoding=UTF8 \
    >/dev/null
as_user "$user" tee -a "$work/data/postgresql.conf" >/dev/null <<'CONF'
listen_addresses = ''
shared_preload_libraries = 'randflake'
randflake.node_id = 0
randflake.node_count = 4
randflake.secret = '000102030405060708090a0b0c0d0e0f'
randflake.max_wait = 100ms
restart_after_crash = on
fsync = off
log_min_messages = log
track_functions = all
log_min_error_statement = panic
parallel_setup_cost = 0
parallel_tuple_cost = 0
min_parallel_table_scan_size = 0
CONF
as_user "$user" "$bindir/pg_ctl" -D "$work/data" -l "$work/log" -o "-k $work" -w start >/dev/null ||
    die "the server does not start: $(as_user "$user" cat "$work/log")"
run_sql() {
    as_user "$user" "$bindir/psql" -XqAt -v ON_ERROR_STOP=1 -h "$work" -U postgres postgres "$@"
}

# Of PostgreSQL's own functions one in ten is enough: sqlsmith looks for `pg_proc` in the search path.
run_sql <<'SQL'
SET client_min_messages = warning;
SET randflake.max_wait = '1min';
CREATE EXTENSION randflake_type CASCADE;
CREATE EXTENSION randflake_coordinator;
SELECT FROM randflake_lease_configure(max_clock_skew => 0, never_leased => true);
CREATE TABLE item (id bigint PRIMARY KEY DEFAULT randflake_generate(), label text DEFAULT randflake_generate_text(),
                   number bigint DEFAULT snowflake_generate(), made timestamptz DEFAULT now(), n integer);
CREATE TABLE parcel (id randflake PRIMARY KEY DEFAULT randflake_next(), others randflake[], n integer);
CREATE INDEX ON parcel USING hash (id);
CREATE INDEX ON parcel USING brin (id randflake_bloom_ops);
CREATE TABLE part (id randflake DEFAULT randflake_next(), n integer) PARTITION BY RANGE (id);
CREATE TABLE part_1 PARTITION OF part FOR VALUES FROM (MINVALUE) TO (randflake_lower('2026-01-01'));
CREATE TABLE part_2 PARTITION OF part FOR VALUES FROM (randflake_lower('2026-01-01')) TO (MAXVALUE);
INSERT INTO item (n) SELECT n FROM generate_series(1, 1000) AS n;
INSERT INTO parcel (others, n) SELECT ARRAY[randflake_next(), NULL], n FROM generate_series(1, 1000) AS n;
INSERT INTO part (n) SELECT n FROM generate_series(1, 1000) AS n;
CREATE ROLE smith LOGIN IN ROLE pg_monitor;
GRANT ALL ON ALL FUNCTIONS IN SCHEMA public TO smith;
GRANT ALL ON ALL TABLES IN SCHEMA public TO smith;
GRANT ALL ON ALL SEQUENCES IN SCHEMA public TO smith;
GRANT ALL ON TYPE randflake_lease_internal, randflake_key_internal TO smith;
CREATE SCHEMA smith;
CREATE VIEW smith.pg_proc AS
SELECT * FROM pg_catalog.pg_proc WHERE pronamespace = 'public'::regnamespace OR oid::bigint % 10 = 0;
GRANT ALL ON SCHEMA smith TO smith;
GRANT SELECT ON smith.pg_proc TO smith;
ALTER ROLE smith SET search_path = smith, pg_catalog, public;
ALTER ROLE smith SET statement_timeout = '5s';
SQL

# It has no limit of time, and tells now and then how far it is.
status=0
as_user "$user" timeout "$seconds" sqlsmith --verbose --exclude-catalog --target="host=$work user=smith dbname=postgres" \
    >/dev/null 2>"$progress" || status=$?
grep '^queries' "$progress" | tail -n 1
crashes=$(as_user "$user" grep -E 'terminated by signal|PANIC|TRAP|Sanitizer|runtime error|reinitializing' "$work/log" || true)
[ -z "$crashes" ] || die "the server crashed: $crashes"
[ $status -eq 124 ] || die "sqlsmith ended by itself, with exit status $status"

echo "functions of the extensions that were called, and how often:"
run_sql -c "SELECT count(*), sum(calls) FROM pg_stat_user_functions WHERE schemaname = 'public'" | tee "$progress"
[[ $(<"$progress") =~ ^[1-9] ]] || die "none was called"
run_sql -c 'SELECT count(DISTINCT id) FROM randflake_generate(100000) AS id' | grep -qx 100000 ||
    die "the server makes no identifiers any more"
