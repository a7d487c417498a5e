-- Rules about the owners as whom a move acts

CREATE FUNCTION randflake_migrate.other_owners(s randflake_migrate.subject)
RETURNS TABLE (grp regclass, owner oid)
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
    SELECT t.grp, t.owner FROM randflake_migrate.tables(($1).columns) AS t
    WHERE t.owner <> randflake_migrate.me()
    UNION SELECT h.grp, h.owner FROM unnest(($1).hanging) AS h
    WHERE h.how = 'made again' AND h.owner <> randflake_migrate.me()
$$;

CREATE FUNCTION randflake_migrate.blocked_owners(s randflake_migrate.subject)
RETURNS SETOF randflake_migrate.finding
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    generators pg_proc[] := ARRAY(SELECT p FROM randflake_migrate.target(s.target) AS g
        JOIN pg_proc AS p ON p.oid::regproc || '()' = g.generator);
BEGIN
    IF current_setting('server_version_num')::integer >= 160000 THEN
        RETURN QUERY SELECT o.grp, o.owner::regrole::text,
            'owns tables, and this role cannot act in its name',
            format('GRANT %s TO %I WITH SET TRUE;', o.owner::regrole, current_user)
        FROM randflake_migrate.other_owners(s) AS o WHERE NOT pg_has_role(o.owner, 'SET');
    END IF;
    RETURN QUERY SELECT DISTINCT o.grp, o.owner::regrole::text,
        format('lacks %s on %s', x.privilege, x.what),
        format('GRANT %s ON %s TO %s;', x.privilege, x.what, o.owner::regrole)
    FROM randflake_migrate.other_owners(s) AS o, LATERAL (
        SELECT y.privilege, 'SCHEMA ' || y.schema::regnamespace FROM (
            SELECT 'USAGE', (t.c).relnamespace FROM randflake_migrate.tables(s.columns) AS t
            WHERE t.grp = o.grp AND t.owner = o.owner
            UNION SELECT 'USAGE', p.pronamespace FROM unnest(generators) AS p
            UNION SELECT v.p, coalesce(c.relnamespace, f.pronamespace, e.stxnamespace)
            FROM unnest(s.hanging) AS h
            LEFT JOIN pg_class AS c ON h.class = 'pg_class'::regclass AND c.oid = h.object
            LEFT JOIN pg_proc AS f ON h.class = 'pg_proc'::regclass AND f.oid = h.object
            LEFT JOIN pg_statistic_ext AS e
                ON h.class = 'pg_statistic_ext'::regclass AND e.oid = h.object,
            (VALUES ('USAGE'), ('CREATE')) AS v (p)
            WHERE h.grp = o.grp AND h.owner = o.owner AND h.how = 'made again'
        ) AS y (privilege, schema)
        WHERE y.schema IS NOT NULL AND NOT has_schema_privilege(o.owner, y.schema, y.privilege)
        UNION SELECT 'EXECUTE', 'FUNCTION ' || p.oid::regprocedure FROM (
            SELECT p.oid FROM unnest(generators) AS p
            UNION SELECT g.tgfoid FROM unnest(s.hanging) AS h
            JOIN pg_trigger AS g ON h.class = 'pg_trigger'::regclass AND g.oid = h.object
            WHERE h.grp = o.grp AND h.owner = o.owner) AS p
        WHERE NOT has_function_privilege(o.owner, p.oid, 'EXECUTE')
        UNION SELECT 'REFERENCES', (f.k).confrelid::regclass::text
        FROM unnest(s.hanging) AS h JOIN randflake_migrate.constraints(s.hanging) AS f
            ON h.class = f.class AND h.object = (f.k).oid AND (f.k).contype = 'f',
        unnest((f.k).confkey) AS u (att)
        WHERE h.grp = o.grp AND h.owner = o.owner
            AND NOT has_column_privilege(o.owner, (f.k).confrelid, u.att, 'REFERENCES')
    ) AS x (privilege, what);
    -- Input functions of types run while a statement is parsed, by the role that sends it.
    RETURN QUERY SELECT h.grp, h.identity,
        'online: uses the type ' || format_type(y.oid, NULL)
            || ', whose code would run as this role', 'transaction()'
    FROM unnest(s.hanging) AS h
    JOIN pg_depend AS d ON d.classid = 'pg_class'::regclass AND d.objid = h.object
        AND d.refclassid = 'pg_type'::regclass
    JOIN pg_type AS y ON y.oid = d.refobjid
    WHERE h.kind = 'index' AND h.how = 'kept' AND y.typowner NOT IN (10, randflake_migrate.me());
END $$;
