-- Returns the statement that sets the state of a trigger or a rule, unless it is the default.
CREATE FUNCTION randflake_migrate.enabled(rel regclass, kind text, name name, letter "char")
RETURNS text LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
    SELECT format(E'\nALTER TABLE %s %s %s %I;', $1, s.state, $2, $3)
    FROM (VALUES ('D', 'DISABLE'), ('R', 'ENABLE REPLICA'), ('A', 'ENABLE ALWAYS'))
        AS s (letter, state) WHERE s.letter = $4::text
$$;

-- Returns the statements that recreate an object, with its owner, grants, comments and state. They
-- omit an operator's schema if the search_path has it, so that PostgreSQL finds the new operator.
CREATE FUNCTION randflake_migrate.definition(class oid, object oid) RETURNS SETOF text
LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN QUERY SELECT format('ALTER TABLE %s ADD CONSTRAINT %I %s;', c.conrelid::regclass,
        c.conname, pg_get_constraintdef(c.oid))
    FROM pg_constraint AS c WHERE $1 = 'pg_constraint'::regclass AND c.oid = $2;
    RETURN QUERY SELECT pg_get_indexdef(c.oid) || ';'
    FROM pg_class AS c WHERE $1 = 'pg_class'::regclass AND c.oid = $2 AND c.relkind = 'i';
    RETURN QUERY SELECT v.sql FROM pg_class AS c, pg_identify_object($1, $2, 0) AS i, LATERAL (
        SELECT format(E'CREATE %s %s%s%s AS\n%s%s;', upper(i.type), i.identity,
            (SELECT format(' USING %I', m.amname) FROM pg_am AS m WHERE m.oid = c.relam),
            ' WITH (' || array_to_string(c.reloptions, ', ') || ')',
            rtrim(pg_get_viewdef(c.oid), ';'),
            CASE WHEN NOT c.relispopulated THEN ' WITH NO DATA' END)
        UNION ALL SELECT randflake_migrate.grants(i.identity, i.type, c.relowner, c.relacl)
        UNION ALL SELECT randflake_migrate.column_grants(c.oid)) AS v (sql)
    WHERE $1 = 'pg_class'::regclass AND c.oid = $2 AND c.relkind IN ('v', 'm');
    RETURN QUERY SELECT format('ALTER VIEW %s ALTER COLUMN %I SET DEFAULT %s;',
        a.attrelid::regclass, a.attname, pg_get_expr(d.adbin, d.adrelid))
    FROM pg_attrdef AS d JOIN pg_attribute AS a ON a.attrelid = d.adrelid AND a.attnum = d.adnum
    WHERE $1 = 'pg_attrdef'::regclass AND d.oid = $2;
    RETURN QUERY SELECT concat(rtrim(pg_get_ruledef(r.oid), ';'), ';',
        randflake_migrate.enabled(r.ev_class, 'RULE', r.rulename, r.ev_enabled))
    FROM pg_rewrite AS r WHERE $1 = 'pg_rewrite'::regclass AND r.oid = $2;
    RETURN QUERY SELECT concat(pg_get_triggerdef(t.oid), ';',
        randflake_migrate.enabled(t.tgrelid, 'TRIGGER', t.tgname, t.tgenabled))
    FROM pg_trigger AS t WHERE $1 = 'pg_trigger'::regclass AND t.oid = $2;
    RETURN QUERY SELECT format('CREATE POLICY %I ON %s AS %s FOR %s TO %s%s%s;', p.polname,
        p.polrelid::regclass, CASE WHEN p.polpermissive THEN 'PERMISSIVE' ELSE 'RESTRICTIVE' END,
        CASE p.polcmd WHEN 'r' THEN 'SELECT' WHEN 'a' THEN 'INSERT' WHEN 'w' THEN 'UPDATE'
            WHEN 'd' THEN 'DELETE' ELSE 'ALL' END,
        (SELECT string_agg(randflake_migrate.grantee(r.role), ', ')
        FROM unnest(p.polroles) AS r (role)),
        ' USING (' || pg_get_expr(p.polqual, p.polrelid) || ')',
        ' WITH CHECK (' || pg_get_expr(p.polwithcheck, p.polrelid) || ')')
    FROM pg_policy AS p WHERE $1 = 'pg_policy'::regclass AND p.oid = $2;
    RETURN QUERY SELECT f.sql FROM pg_proc AS p, pg_identify_object($1, $2, 0) AS i, LATERAL (
        SELECT rtrim(pg_get_functiondef(p.oid), E'\n') || ';'
        UNION ALL SELECT randflake_migrate.grants(i.identity, i.type, p.proowner, p.proacl))
        AS f (sql)
    WHERE $1 = 'pg_proc'::regclass AND p.oid = $2;
    RETURN QUERY SELECT format('ALTER PUBLICATION %I ADD TABLE %s%s%s;', p.pubname,
        r.prrelid::regclass,
        (SELECT ' (' || string_agg(quote_ident(a.attname), ', ' ORDER BY n.ordinality) || ')'
        FROM unnest(r.prattrs::int2[]) WITH ORDINALITY AS n (att)
        JOIN pg_attribute AS a ON a.attrelid = r.prrelid AND a.attnum = n.att),
        ' WHERE (' || pg_get_expr(r.prqual, r.prrelid) || ')')
    FROM pg_publication_rel AS r JOIN pg_publication AS p ON p.oid = r.prpubid
    WHERE $1 = 'pg_publication_rel'::regclass AND r.oid = $2;
    RETURN QUERY SELECT concat(pg_get_statisticsobjdef(s.oid), ';',
        E'\nALTER STATISTICS ' || i.identity || ' OWNER TO ' || s.stxowner::regrole || ';',
        E'\nALTER STATISTICS ' || i.identity || ' SET STATISTICS '
            || nullif(s.stxstattarget, -1) || ';')
    FROM pg_statistic_ext AS s, pg_identify_object($1, $2, 0) AS i
    WHERE $1 = 'pg_statistic_ext'::regclass AND s.oid = $2;
    RETURN QUERY SELECT randflake_migrate.comments($1, $2);
END $$;
