-- Rules about tables and names

CREATE FUNCTION randflake_migrate.blocked_tables(s randflake_migrate.subject)
RETURNS SETOF randflake_migrate.finding
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    RETURN QUERY SELECT t.grp, t.rel::text,
        format('subscription %I fills it, with the numbers of its publisher', u.subname),
        format('DROP SUBSCRIPTION %I;  -- and, when the publisher''s table has moved, a new one '
            'into an empty table', u.subname)
    FROM randflake_migrate.tables(s.columns) AS t JOIN pg_subscription_rel AS x ON x.srrelid = t.rel
    JOIN pg_subscription AS u ON u.oid = x.srsubid;
    RETURN QUERY SELECT DISTINCT m.grp, 'publication ' || quote_ident(u.name),
        'would send the state of the move to subscribers, and they would stop', u.remedy
    FROM unnest(s.columns) AS m, randflake_migrate.publications() AS u WHERE m.changes;
    RETURN QUERY SELECT t.grp, t.rel::text, 'belongs to ' || t.owner::regrole,
        format('GRANT %s TO %I;', t.owner::regrole, current_user)
    FROM randflake_migrate.tables(s.columns) AS t WHERE NOT pg_has_role(t.owner, 'USAGE');
    RETURN QUERY SELECT t.grp, t.rel::text, 'hides rows from its owner, and so from this move',
        format('ALTER TABLE %s NO FORCE ROW LEVEL SECURITY;', t.rel)
    FROM randflake_migrate.tables(s.columns) AS t JOIN pg_roles AS r ON r.oid = t.owner
    WHERE (t.c).relforcerowsecurity AND NOT (r.rolsuper OR r.rolbypassrls);
    RETURN QUERY SELECT t.grp, t.rel::text, 'is a typed table',
        format('ALTER TABLE %s NOT OF;', t.rel)
    FROM randflake_migrate.tables(s.columns) AS t WHERE (t.c).reloftype <> 0;
    RETURN QUERY SELECT DISTINCT t.grp, t.rel::text, 'online: others inherit from it',
        'transaction()'
    FROM randflake_migrate.tables(s.columns) AS t
    JOIN pg_inherits AS i ON t.rel IN (i.inhparent, i.inhrelid)
    WHERE (t.c).relkind = 'r' AND NOT (t.c).relispartition;
    RETURN QUERY SELECT t.grp, t.rel::text, 'online: its triggers would run for each row that is '
            'filled: ' || string_agg(quote_ident(g.tgname), ', '),
        format('GRANT SET ON PARAMETER session_replication_role TO %I;', current_user)
    FROM randflake_migrate.tables(s.columns) AS t JOIN pg_trigger AS g ON g.tgrelid = t.rel
    WHERE NOT g.tgisinternal AND g.tgparentid = 0 AND g.tgtype & 16 <> 0
        AND g.tgenabled IN ('O', 'D')
        AND NOT has_parameter_privilege('session_replication_role', 'SET') GROUP BY t.grp, t.rel;
    RETURN QUERY SELECT DISTINCT t.grp, format('trigger %I on %s', g.tgname, t.rel),
        'online: runs for each row that is filled, and would wait for the end of the transaction',
        format('ALTER TABLE %s ENABLE TRIGGER %I;', t.rel, g.tgname)
    FROM randflake_migrate.tables(s.columns) AS t JOIN pg_trigger AS g ON g.tgrelid = t.rel
    WHERE t.owner <> randflake_migrate.me() AND NOT g.tgisinternal AND g.tgtype & 16 <> 0
        AND g.tgparentid = 0 AND g.tgenabled IN ('A', 'R') AND g.tgdeferrable;
END $$;

-- Finds names that the next move needs.
CREATE FUNCTION randflake_migrate.taken_names(s randflake_migrate.subject)
RETURNS SETOF randflake_migrate.finding
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
    SELECT m.grp, m.rel || '.' || quote_ident(a.attname), 'online: has a name that the steps need',
        format('transaction(), or ALTER TABLE %s RENAME COLUMN %I TO %I;', m.rel, a.attname,
            randflake_migrate.beside('its_', a.attname, a.attnum))
    FROM unnest(($1).columns) AS m
    JOIN pg_attribute AS a ON a.attrelid = m.rel AND a.attnum > 0 AND NOT a.attisdropped
        AND a.attname IN (randflake_migrate.beside('new_', m.name, m.att),
            randflake_migrate.beside('old_', m.name, m.att))
    UNION ALL (
    WITH t AS (SELECT * FROM randflake_migrate.tables(($1).columns)),
    next AS (SELECT format('^(zzz_)?randflake_%s_', randflake_migrate.next_move()) AS pattern)
    SELECT DISTINCT t.grp, n.object, 'online: has a name that the steps need', n.remedy
    FROM t, next, LATERAL (
        SELECT format('constraint %I on %s', k.conname, t.rel),
            format('ALTER TABLE %s RENAME CONSTRAINT %I TO %I;', t.rel, k.conname,
                'its_' || k.conname)
        FROM pg_constraint AS k WHERE k.conrelid = t.rel AND k.conname ~ next.pattern
        UNION ALL SELECT format('trigger %I on %s', g.tgname, t.rel),
            format('ALTER TRIGGER %I ON %s RENAME TO %I;', g.tgname, t.rel, 'its_' || g.tgname)
        FROM pg_trigger AS g WHERE g.tgrelid = t.rel AND g.tgname ~ next.pattern
        UNION ALL SELECT format('relation %s', c.oid::regclass),
            format('ALTER TABLE %s RENAME TO %I;', c.oid::regclass, 'its_' || c.relname)
        FROM pg_class AS c WHERE c.relnamespace = (t.c).relnamespace AND c.relname ~ next.pattern
    ) AS n (object, remedy))
$$;
