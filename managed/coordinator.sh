#!/bin/sh
# Prints the SQL of a lease coordinator that needs no library (docs/managed.md). DURATION is the
# longest lease in seconds (default 60). SKEW is the greatest clock difference (default 2).
#
#   managed/coordinator.sh [DURATION [SKEW]] | psql -X -v ON_ERROR_STOP=1 -d "$DATABASE_URL"
#
# The text after awk's program lists all changes to the extension's script. Each start of the server
# counts as a takeover, because the disk may have been rolled back before the start. Duration and
# skew are constants, because a rollback of the disk could restore smaller values. The program fails
# if the extension has an unknown C function, or lacks a text that must change.

set -eu
duration=${1-60} skew=${2-2}
case $duration$skew in *[!0-9]*) duration=0 ;; esac
if [ $# -gt 2 ] || [ "${duration:-0}" -lt 1 ] || [ "$duration" -gt 86400 ] || [ "${skew:-3601}" -gt 3600 ]; then
    echo 'coordinator.sh: not a duration from 1 to 86400 seconds, and a skew from 0 to 3600' >&2 && exit 2
fi
cd "$(dirname "$0")/../extension"
exec awk -v duration="$duration" -v skew="$skew" '
function fail(text) {
    print "coordinator.sh: the extension\047s script " text >"/dev/stderr"
    exit failed = 1
}
FNR == NR { # the changes below
    gsub(/:duration/, duration)
    gsub(/:skew/, skew)
    gsub(/@extschema@/, "randflake_coordinator")
    if (/^== /)
        part = $2
    else if (part != "changes")
        text[part] = text[part] "\n" $0
    else if (at = index($0, " ==> ")) {
        was[++changes] = substr($0, 1, at - 1)
        is[changes] = substr($0, at + 5)
    }
    next
}
FNR == 1 { $0 = substr(text["first"], 2) }
/pg_extension_config_dump/ { next }
{
    gsub(/@extschema@/, "randflake_coordinator")
    for (i = 1; i <= changes; i++)
        if (at = index($0, was[i])) {
            $0 = substr($0, 1, at - 1) is[i] substr($0, at + length(was[i]))
            changed[i] = 1
        }
}
/^AS .MODULE_PATHNAME/ && split($0, words, "\047") { name = words[4] }
/^LANGUAGE C / {
    if (!(name in text))
        fail("has another C function: " name)
    sub(/LANGUAGE C/, "LANGUAGE plpgsql")
    sub(/;$/, "\nSET search_path = pg_catalog, pg_temp\nAS $$" text[name] "\n$$;")
}
/^GRANT / { grants = grants "\n" $0 }
!/^AS .MODULE_PATHNAME/
END {
    for (i = 1; i <= changes && !failed; i++)
        if (!changed[i])
            fail("does not have: " was[i])
    if (!failed)
        print text["last"] grants "\n\nCOMMIT;"
}' - randflake_coordinator--*.sql <<'CHANGES'
== changes
nullif(split_part(former, '/', 2), '')::bigint + 1 = split_part(identity, '/', 2)::bigint, ==> nullif(split_part(identity, '/', 2), '')::bigint - nullif(split_part(former, '/', 2), '')::bigint IN (0, 1),
DEFAULT 60 CHECK (max_duration BETWEEN 1 AND 86400) ==> DEFAULT :duration CHECK (max_duration = :duration)
DEFAULT 2 CHECK (max_clock_skew BETWEEN 0 AND 3600) ==> DEFAULT :skew CHECK (max_clock_skew = :skew)
coalesce(pool.max_duration, 60) ==> :duration
coalesce(pool.max_clock_skew, 2) ==> :skew
duration NOT BETWEEN 1 AND 86400 ==> duration <> :duration
'longest lease must be from 1 to 86400 seconds' ==> 'longest lease of this coordinator is :duration seconds', HINT = 'To change it, make the coordinator anew, as docs/managed.md says.'
skew NOT BETWEEN 0 AND 3600 ==> skew <> :skew
'clock skew must be from 0 to 3600 seconds' ==> 'clock skew of this coordinator is :skew seconds', HINT = 'To change it, make the coordinator anew, as docs/managed.md says.'
AND granted AND pid <> pg_backend_pid() ==> AND granted AND pid <> pg_backend_pid() AND (pg_has_role(usesysid, 'USAGE') OR pg_has_role('pg_signal_backend', 'USAGE')) AND (SELECT rolsuper FROM pg_roles WHERE rolname = current_user) >= (SELECT rolsuper FROM pg_roles WHERE oid = usesysid)
did not take over by a promotion ==> did not take over by a start or a promotion of its server
Only a standby of the coordinator that changed the pool last, promoted once since, ==> Only the server that changed the pool last, and a standby of it that was promoted once since,
nothing_lost states, after a promotion, that ==> nothing_lost states, after a start or a promotion, that
data directory, timeline ==> server, its start, timeline
== first
-- managed/coordinator.sh :duration :skew made this from the extension randflake_coordinator.

BEGIN;
SET LOCAL client_min_messages = warning;
CREATE SCHEMA @extschema@;
SET LOCAL search_path = @extschema@, pg_temp;
== randflake_coordinator_identity
DECLARE
    server text := '/';
BEGIN
    IF pg_is_in_recovery() THEN
        RAISE read_only_sql_transaction USING
            MESSAGE = 'cannot lease node ids during recovery',
            HINT = 'Lease them from the primary server.';
    END IF;
    BEGIN
        server := format('%s/%s', (SELECT system_identifier FROM pg_control_system()),
                         ('x' || left(pg_walfile_name(pg_current_wal_insert_lsn()), 8))::bit(32)::bigint);
    EXCEPTION WHEN insufficient_privilege OR feature_not_supported THEN
        NULL; -- A service may not allow it. Each start has its time, that of a standby too.
    END;
    BEGIN
        -- PostgreSQL does not prepare a transaction after LISTEN. No session holds the locks of a
        -- prepared transaction, so a change of the pool could not end it.
        LISTEN randflake_lease;
        UNLISTEN randflake_lease;
    EXCEPTION WHEN feature_not_supported THEN
        NULL; -- a background worker
    END;
    RETURN format('%s/%s/%s', server, extract(epoch FROM pg_postmaster_start_time()),
                  (SELECT oid FROM pg_database WHERE datname = current_database()));
END
== randflake_coordinator_static_nodes
BEGIN
    NULL; -- A server without the library uses none.
END
== last

-- Default privileges of the owner may have given others more.
DO $$
DECLARE
    grants text;
BEGIN
    FOR grants IN
        SELECT format('%s FROM %s', made, CASE grantee WHEN 0 THEN 'PUBLIC' ELSE grantee::regrole::text END)
        FROM (SELECT format('SCHEMA %I', nspname), oid, nspacl FROM pg_namespace
              UNION ALL SELECT format('TABLE %s', oid::regclass), relnamespace, relacl FROM pg_class
              UNION ALL SELECT format('FUNCTION %s', oid::regprocedure), pronamespace, proacl FROM pg_proc
              UNION ALL SELECT format('TYPE %s', oid::regtype), typnamespace, typacl FROM pg_type) AS objects (made, namespace, acl),
             aclexplode(acl)
        WHERE namespace = '@extschema@'::regnamespace AND pg_get_userbyid(grantee) <> current_user
          AND NOT (grantee = 0 AND made LIKE 'FUNCTION%') -- which was said above
    LOOP
        EXECUTE format('REVOKE ALL ON %s', grants);
    END LOOP;
END
$$;
CHANGES
