-- Apart from the grants to PUBLIC and pg_monitor below, only the owner may use new objects. So this
-- block revokes what default privileges granted. The script keeps earlier views, because replacing
-- a view could deadlock with a session that has read the view and waits for randflake_state.
DO $do$
DECLARE
    known  constant text[] := string_to_array(current_setting('randflake_managed.known'), ',');
    public constant text[] := ARRAY['generate', 'generate_text', 'to_text', 'from_text',
        'from_digits', 'prefixed', 'shard', 'shard_ranges'];
    made record;
    other oid;
BEGIN
    IF to_regclass('randflake.randflake_status') IS NULL THEN
        CREATE VIEW randflake.randflake_status AS SELECT * FROM randflake.randflake_status();
        CREATE VIEW randflake.randflake_secrets AS SELECT * FROM randflake.randflake_secrets();
    END IF;
    FOR made IN
        SELECT format('FUNCTION %s', p.oid::regprocedure) AS object, 'EXECUTE' AS privilege,
            'pg_proc'::regclass::oid::text || ' ' || p.oid AS id, p.proowner AS owner,
            coalesce(p.proacl, acldefault('f', p.proowner)) AS acl,
            CASE WHEN p.proname IN ('randflake_status', 'randflake_secrets') THEN 'pg_monitor'
                WHEN regexp_replace(p.proname, '^randflake(53)?_', '') = ANY (public)
                THEN 'PUBLIC' END AS grantee
        FROM pg_proc AS p WHERE p.pronamespace = 'randflake'::regnamespace
        UNION ALL
        SELECT format('TABLE randflake.%I', c.relname), 'SELECT',
            'pg_class'::regclass::oid::text || ' ' || c.oid, c.relowner, c.relacl,
            CASE c.relkind WHEN 'v' THEN 'pg_monitor' END
        FROM pg_class AS c
        WHERE c.relnamespace = 'randflake'::regnamespace AND c.relkind IN ('r', 'v')
        UNION ALL
        SELECT 'SCHEMA randflake', 'USAGE', CASE WHEN known <> '{}' THEN known[1] END,
            n.nspowner, n.nspacl, 'PUBLIC'
        FROM pg_namespace AS n WHERE n.nspname = 'randflake'
    LOOP
        CONTINUE WHEN made.id = ANY (known);
        FOR other IN
            SELECT DISTINCT a.grantee FROM aclexplode(made.acl) AS a
            WHERE a.grantee <> made.owner
        LOOP
            EXECUTE format('REVOKE ALL ON %s FROM %s', made.object,
                CASE other WHEN 0 THEN 'PUBLIC' ELSE other::regrole::text END);
        END LOOP;
        IF made.grantee IS NOT NULL THEN
            EXECUTE format('GRANT %s ON %s TO %s', made.privilege, made.object, made.grantee);
        END IF;
    END LOOP;
END $do$;
