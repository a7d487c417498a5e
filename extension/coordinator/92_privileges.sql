-- Only the owner may call the coordinator's functions, until the owner grants others this right. A
-- view calls randflake_lease_stops_at for its reader.
DO $$
DECLARE
    made regprocedure;
BEGIN
    FOR made IN
        SELECT oid FROM pg_catalog.pg_proc
        WHERE pronamespace OPERATOR(pg_catalog.=) '@extschema@'::regnamespace
          AND pg_catalog.pg_get_userbyid(proowner) OPERATOR(pg_catalog.=) CURRENT_USER
          AND proname::text OPERATOR(pg_catalog.~) '^randflake_(lease|coordinator)_'
          AND proname OPERATOR(pg_catalog.<>) 'randflake_lease_stops_at'
    LOOP
        EXECUTE pg_catalog.format('REVOKE ALL ON FUNCTION %s FROM PUBLIC', made);
    END LOOP;
END $$;
REVOKE ALL ON randflake_lease_announcement, randflake_lease, randflake_lease_hold,
    randflake_lease_pool, randflake_leases, randflake_pool FROM PUBLIC;
--@ use default_privileges
GRANT EXECUTE ON FUNCTION randflake_lease_pool_state() TO pg_monitor;
GRANT SELECT ON randflake_leases, randflake_pool TO pg_monitor;
--@ use end_of_file
