-- Makes a coordinator that needs no library. See docs/managed.md. Leases last up to `duration`
-- seconds. The clocks of two coordinators differ by at most `skew` seconds.
--
--   psql -X -v ON_ERROR_STOP=1 -v duration=60 -v skew=2 -f managed/coordinator.sql
--
-- Each start of the server counts as a takeover, because the disk may have been rolled back before
-- the start. Duration and skew are constants, because a rollback could restore smaller values.

BEGIN;
SET LOCAL client_min_messages = warning;
SET LOCAL search_path = pg_catalog, pg_temp;
\if :{?duration}
\else
\set duration 60
\endif
\if :{?skew}
\else
\set skew 2
\endif
SELECT set_config('randflake.times', :'duration' || ' ' || :'skew', true) AS times \gset
DO $$
DECLARE
    times CONSTANT text := current_setting('randflake.times');
BEGIN
    IF times !~ '^[0-9]{1,5} [0-9]{1,4}$'
        OR split_part(times, ' ', 1)::integer NOT BETWEEN 1 AND 86400
        OR split_part(times, ' ', 2)::integer > 3600 THEN
        RAISE invalid_parameter_value USING
            MESSAGE = 'duration must be from 1 to 86400 seconds, and skew from 0 to 3600',
            HINT = 'Set both as variables of psql: -v duration=60 -v skew=2';
    END IF;
END $$;
CREATE SCHEMA @extschema@;
SET LOCAL search_path = @extschema@, pg_temp;

--@ define max_duration
max_duration integer NOT NULL DEFAULT :duration CHECK (max_duration = :duration),
--@ end
--@ define max_clock_skew
max_clock_skew integer NOT NULL DEFAULT :skew CHECK (max_clock_skew = :skew),
--@ end
--@ define dumped
--@ end
--@ define server
-- Return the longest lease and the greatest clock difference, in seconds. In the body of a
-- function, psql would not replace the variables.
CREATE FUNCTION randflake_lease_duration(own randflake_lease_internal) RETURNS integer
LANGUAGE sql IMMUTABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp RETURN :duration;
CREATE FUNCTION randflake_lease_skew(own randflake_lease_internal) RETURNS integer
LANGUAGE sql IMMUTABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp RETURN :skew;

-- Returns the identity: system identifier / timeline /@ start of the server / database.
CREATE FUNCTION randflake_coordinator_identity(own randflake_lease_internal) RETURNS text
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
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
    RETURN format('%s/@%s/%s', server, extract(epoch FROM pg_postmaster_start_time()),
                  (SELECT oid FROM pg_database WHERE datname = current_database()));
END $$;

-- A server without the library uses no static node ids.
CREATE FUNCTION randflake_coordinator_static_nodes(
    own randflake_lease_internal, OUT first_node_id integer, OUT node_count integer)
LANGUAGE plpgsql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
END $$;
--@ end
--@ define may_end
AND (pg_has_role(usesysid, 'USAGE') OR pg_has_role('pg_signal_backend', 'USAGE'))
AND (SELECT rolsuper FROM pg_roles WHERE rolname = current_user)
    >= (SELECT rolsuper FROM pg_roles WHERE oid = usesysid)
--@ end
--@ define limits
IF duration <> @extschema@.randflake_lease_duration(own) THEN
    RAISE invalid_parameter_value USING
        MESSAGE = format('longest lease of this coordinator is %s seconds',
                         @extschema@.randflake_lease_duration(own)),
        HINT = 'To change it, make the coordinator anew, as docs/managed.md says.';
END IF;
IF skew <> @extschema@.randflake_lease_skew(own) THEN
    RAISE invalid_parameter_value USING
        MESSAGE = format('clock skew of this coordinator is %s seconds',
                         @extschema@.randflake_lease_skew(own)),
        HINT = 'To change it, make the coordinator anew, as docs/managed.md says.';
END IF;
--@ end
--@ define defaults
longest CONSTANT integer := @extschema@.randflake_lease_duration(own);
widest CONSTANT integer := @extschema@.randflake_lease_skew(own);
--@ end
--@ define default_privileges

-- Default privileges of the owner may have given others more.
DO $$
DECLARE
    grants text;
BEGIN
    FOR grants IN
        SELECT format('%s FROM %s', made,
                      CASE grantee WHEN 0 THEN 'PUBLIC' ELSE grantee::regrole::text END)
        FROM (SELECT format('SCHEMA %I', nspname), oid, nspacl FROM pg_namespace
              UNION ALL SELECT format('TABLE %s', oid::regclass), relnamespace, relacl FROM pg_class
              UNION ALL SELECT format('FUNCTION %s', oid::regprocedure), pronamespace, proacl
                        FROM pg_proc
              UNION ALL SELECT format('TYPE %s', oid::regtype), typnamespace, typacl
                        FROM pg_type) AS objects (made, namespace, acl),
             aclexplode(acl)
        WHERE namespace = '@extschema@'::regnamespace
          AND pg_get_userbyid(grantee) <> current_user
          AND NOT (grantee = 0 AND made LIKE 'FUNCTION%') -- which was said above
    LOOP
        EXECUTE format('REVOKE ALL ON %s', grants);
    END LOOP;
END $$;
--@ end
--@ define end_of_file

COMMIT;
--@ end
