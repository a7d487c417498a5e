-- Rules about dependent objects

CREATE FUNCTION randflake_migrate.blocked_objects(s randflake_migrate.subject)
RETURNS SETOF randflake_migrate.finding
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    RETURN QUERY SELECT f.grp, f.identity, 'online: refers to a partitioned table', 'transaction()'
    FROM randflake_migrate.constraints(s.hanging) AS f
    JOIN randflake_migrate.tables(s.columns) AS t ON t.rel = (f.k).confrelid
    WHERE (f.k).contype = 'f' AND ((t.c).relkind = 'p' OR (t.c).relispartition);
    RETURN QUERY SELECT f.grp, f.identity, 'online: sets single columns to NULL',
        'transaction(), or ON DELETE SET NULL without columns'
    FROM randflake_migrate.constraints(s.hanging) AS f WHERE (f.k).confdelsetcols IS NOT NULL;
    RETURN QUERY SELECT f.grp, f.identity,
        'online: no index makes an exclusion constraint afterwards',
        'transaction(), or ' || randflake_migrate.removal(f.class, (f.k).oid)
    FROM randflake_migrate.constraints(s.hanging) AS f WHERE (f.k).contype = 'x';
    RETURN QUERY SELECT h.grp, h.identity, format('the operator class %s of its %s index does not '
            'take %s', o.opcname, i.amname, x.to_type), randflake_migrate.removal(h.class, h.object)
            || '  -- and afterwards one without the key, or of another class'
    FROM unnest(s.hanging) AS h
    LEFT JOIN pg_constraint AS k ON h.class = 'pg_constraint'::regclass AND k.oid = h.object
    JOIN pg_index AS n ON k.contype IS DISTINCT FROM 'f' AND n.indexrelid
        = CASE h.class WHEN 'pg_class'::regclass THEN h.object ELSE k.conindid END
    CROSS JOIN LATERAL unnest(n.indkey::int2[], n.indclass::oid[]) AS c (att, class)
    JOIN randflake_migrate.places(ARRAY(SELECT m.rel::oid FROM unnest(s.columns) AS m),
        ARRAY(SELECT m.att FROM unnest(s.columns) AS m)) AS q
        ON q.rel = n.indrelid AND q.att = c.att
    JOIN pg_opclass AS o ON o.oid = c.class JOIN pg_am AS i ON i.oid = o.opcmethod
    CROSS JOIN randflake_migrate.target(s.target) AS x
    WHERE o.opcintype <> x.to_type AND NOT (o.opcdefault AND EXISTS (SELECT FROM pg_opclass AS d
        WHERE d.opcdefault AND d.opcmethod = o.opcmethod AND d.opcintype = x.to_type));
    RETURN QUERY SELECT h.grp, h.identity, 'its WHERE cannot have a column of the type',
        format(E'%s\n%s', randflake_migrate.removal(h.class, h.object),
            (SELECT left(string_agg(d, ''),
                -length(format(' WHERE (%s);', pg_get_expr(p.prqual, p.prrelid)))) || ';'
            FROM randflake_migrate.definition(h.class, h.object) AS d))
    FROM unnest(s.hanging) AS h JOIN pg_publication_rel AS p
        ON h.class = 'pg_publication_rel'::regclass AND p.oid = h.object
    WHERE s.target = 'randflake' AND p.prqual IS NOT NULL;
END $$;

-- Finds expressions that mean something else with new keys. `what` is blocker or look.
CREATE FUNCTION randflake_migrate.expressions(s randflake_migrate.subject)
RETURNS TABLE (what text, grp regclass, object text, note text, remedy text)
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
    WITH tree AS MATERIALIZED (  -- also dependents of keys whose default alone changes
        SELECT h.*, h.kind || ' ' || h.identity AS shown,
            randflake_migrate.tree(h.class, h.object, k.keys) AS tree
        FROM (SELECT d.*, true AS moves FROM unnest(($1).hanging) AS d
            UNION ALL SELECT d.*, false FROM randflake_migrate.hanging(ARRAY(
                SELECT m FROM unnest(($1).columns) AS m WHERE NOT m.changes)) AS d) AS h,
        (SELECT array_agg(p.rel || '.' || p.att) FROM randflake_migrate.places(
            ARRAY(SELECT m.rel::oid FROM unnest(($1).columns) AS m),
            ARRAY(SELECT m.att FROM unnest(($1).columns) AS m)) AS p) AS k (keys)
    )
    SELECT 'blocker', t.grp, t.shown, 'does with a key what the type cannot: ' || x.what,
        randflake_migrate.removal(t.class, t.object) || '  -- and afterwards one that compares '
            'identifiers. Or a foreign key, by which the other column moves too'
    FROM tree AS t, randflake_migrate.target(($1).target) AS g,
    LATERAL (SELECT concat_ws(', ', randflake_migrate.lacking(t.tree, g.to_type),
        CASE WHEN t.kind = 'index' AND t.tree LIKE '%{COERCEVIAIO :arg KEY%'
            THEN 'a cast in an index' END)) AS x (what)
    WHERE ($1).target = 'randflake' AND t.how <> 'blocker' AND x.what <> ''
        AND t.kind <> 'publication relation'
    UNION ALL SELECT 'blocker', t.grp, t.shown,
        'compares a key with a constant, and new keys are on both sides of it',
        randflake_migrate.removal(t.class, t.object)
            || '  -- or the target 53, whose keys are positive'
    FROM tree AS t WHERE ($1).target = 'bigint' AND ($1).rows = 'all' AND t.moves
        AND t.class = 'pg_constraint'::regclass AND EXISTS (SELECT FROM regexp_matches(t.tree,
            ':opno (\d+) [^{}]*:args \((?:KEY CONST|CONST KEY)', 'g') AS r
            JOIN pg_operator AS o ON o.oid = r[1]::oid WHERE o.oprname ~ '^[<>]=?$')
    UNION ALL SELECT 'look', t.grp, t.shown, 'compares a key with a constant: '
        || CASE ($1).target WHEN '53' THEN 'new keys are of no order'
            ELSE 'half of all new keys are negative' END, NULL
    FROM tree AS t WHERE ($1).target <> 'randflake' AND t.tree ~ ':args \((KEY CONST|CONST KEY)'
        AND NOT (t.moves AND t.class = 'pg_constraint'::regclass)
$$;
