-- What the rules of the plan are about: the columns that move, and what depends on them

CREATE TYPE randflake_migrate.subject AS (target text, rows text,
    columns randflake_migrate.moved[], hanging randflake_migrate.hung[]);
CREATE TYPE randflake_migrate.finding AS (grp regclass, object text, note text, remedy text);

CREATE FUNCTION randflake_migrate.subject(target text, rows text) RETURNS randflake_migrate.subject
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    columns randflake_migrate.moved[] := ARRAY(
        SELECT m FROM randflake_migrate.moving(target, rows) AS m);
BEGIN
    RETURN ROW(target, rows, columns, ARRAY(SELECT h FROM randflake_migrate.hanging(
        ARRAY(SELECT m FROM unnest(columns) AS m WHERE m.changes)) AS h));
END $$;

-- Returns the tables of these columns, and their partitions.
CREATE FUNCTION randflake_migrate.tables(columns randflake_migrate.moved[])
RETURNS TABLE (grp regclass, rel regclass, owner oid, c pg_class)
LANGUAGE sql STABLE ROWS 100 SET search_path = pg_catalog, pg_temp AS $$
    SELECT x.grp, c.oid, c.relowner, c FROM pg_class AS c
    JOIN (SELECT DISTINCT m.grp, t.rel FROM unnest($1) AS m, randflake_migrate.tree(m.rel) AS t)
        AS x ON x.rel = c.oid
$$;

-- Returns dependent constraints.
CREATE FUNCTION randflake_migrate.constraints(hanging randflake_migrate.hung[])
RETURNS TABLE (grp regclass, identity text, class oid, k pg_constraint)
LANGUAGE sql STABLE ROWS 100 SET search_path = pg_catalog, pg_temp AS $$
    SELECT h.grp, h.identity, h.class, k FROM unnest($1) AS h
    JOIN pg_constraint AS k ON h.class = 'pg_constraint'::regclass AND k.oid = h.object
$$;

-- Rules about columns. In these files, each query of a function finds what stops a move. A note
-- that begins with "online:" stops only start().

CREATE FUNCTION randflake_migrate.blocked_columns(s randflake_migrate.subject)
RETURNS SETOF randflake_migrate.finding
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    RETURN QUERY SELECT m.grp, m.shown, 'is the partition key: new keys belong to other partitions',
        'copy the rows into a new table'
    FROM unnest(s.columns) AS m, randflake_migrate.places(ARRAY[m.rel::oid], ARRAY[m.att]) AS q
    JOIN pg_partitioned_table AS p ON p.partrelid = q.rel
    WHERE (m.changes OR p.partstrat <> 'h') AND EXISTS (SELECT FROM pg_depend AS d
        WHERE d.classid = 'pg_class'::regclass AND d.objid = q.rel AND d.objsubid = q.att
            AND d.refclassid = 'pg_class'::regclass AND d.refobjid = q.rel AND d.refobjsubid = 0
            AND d.deptype = 'i');
    RETURN QUERY SELECT m.grp, m.shown, CASE WHEN d.number IS NOT NULL
            THEN 'online: has the default ' || d.number || ', a key of '
            ELSE 'has a default of its own, which is no key of ' END || m.root,
        CASE WHEN d.number IS NOT NULL THEN 'transaction()'
            ELSE format('ALTER TABLE %s ALTER COLUMN %I DROP %s;', m.rel, m.name,
                CASE a.attidentity WHEN '' THEN 'DEFAULT' ELSE 'IDENTITY' END)
                || '  -- and afterwards SET DEFAULT with a key of ' || m.root END
    FROM unnest(s.columns) AS m JOIN pg_attribute AS a ON a.attrelid = m.rel AND a.attnum = m.att,
        randflake_migrate.constant(m.rel, m.att) AS d (number)
    WHERE m.source = 'reference' AND (m.changes AND a.atthasdef OR a.attidentity <> '');
    RETURN QUERY SELECT m.grp, m.shown, 'refers to several keys: '
            || string_agg(m.root::text, ', '), 'drop all its foreign keys but one'
    FROM unnest(s.columns) AS m GROUP BY m.grp, m.shown, m.rel, m.att
    HAVING count(*) > 1 AND bool_or(m.source = 'reference');
    RETURN QUERY SELECT m.grp, m.shown, 'has the domain ' || format_type(m.type, NULL),
        randflake_migrate.by(randflake_migrate.owner_of(m.rel),
            format('ALTER TABLE %s ALTER COLUMN %I TYPE %s;', m.rel, m.name,
                y.typbasetype::regtype))
    FROM unnest(s.columns) AS m JOIN pg_type AS y ON y.oid = m.type
    WHERE y.typtype = 'd' AND m.changes;
    RETURN QUERY SELECT m.grp, m.shown, 'old numbers are no values of the type: 42 would be an '
        'identifier of an arbitrary second', $r$rows => 'all', or the target bigint$r$
    FROM unnest(s.columns) AS m
    WHERE s.target = 'randflake' AND m.keeps AND m.source IN ('identity', 'serial');
    RETURN QUERY SELECT m.grp, m.shown, 'online: its default is more than nextval(), so that no '
        'number can be made apart from it', 'transaction(), or a default that is nextval() alone'
    FROM unnest(s.columns) AS m WHERE m.source IN ('identity', 'serial') AND m.changes
        AND randflake_migrate.sequence_of(m.rel, m.att) IS NULL;
    RETURN QUERY SELECT m.grp, m.shown, 'online: is unique with other columns only, and what '
        'refers to it cannot tell its rows apart',
        format('CREATE UNIQUE INDEX CONCURRENTLY ON %s (%I);', m.rel, m.name)
    FROM unnest(s.columns) AS m WHERE m.source <> 'reference' AND NOT m.keeps
        AND EXISTS (SELECT FROM unnest(s.columns) AS o
            WHERE o.source = 'reference' AND o.root = m.rel AND o.root_name = m.name)
        AND NOT EXISTS (SELECT FROM pg_index AS i WHERE i.indrelid = m.rel AND i.indisunique
            AND i.indimmediate AND i.indisvalid AND i.indpred IS NULL AND i.indnkeyatts = 1
            AND i.indkey[0] = m.att);
END $$;

-- Finds columns with values of another kind, and prints what a person may choose to do with them.
CREATE FUNCTION randflake_migrate.doubtful_columns(s randflake_migrate.subject)
RETURNS SETOF randflake_migrate.finding
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
    SELECT m.grp, m.shown, d.note, concat_ws(E'\n',
        'INSERT INTO randflake_migrate.node VALUES (' || replace(d.nodes, ', ', '), (')
            || ') ON CONFLICT DO NOTHING;  -- if servers with these node ids made them',
        CASE WHEN NOT m.keeps AND d.bits IS NOT NULL THEN format(
            'ALTER TABLE %s ALTER %I DROP %s, ALTER %2$I SET DEFAULT %4$s();'
            '  -- or rows => ''new''', m.rel, m.name,
            CASE m.source WHEN 'identity' THEN 'IDENTITY' ELSE 'DEFAULT' END, g.make) END,
        CASE WHEN m.source = 'reference' THEN format('-- change %s, to which it refers', m.root)
            WHEN m.keeps OR d.bits IS NOT NULL THEN format(
                'UPDATE %s SET %I = %s() WHERE %2$I IN (SELECT k.n FROM randflake_migrate.kinds('
                'ARRAY(SELECT t.%2$I FROM %1$s AS t)) AS k WHERE k.kind <> %4$L);'
                '  -- references: ON UPDATE CASCADE',
                m.rel, m.name, g.make, coalesce(nullif(d.bits, ''), '64'))
            WHEN q.sequence IS NULL THEN $r$rows => 'new'$r$
            ELSE format('%sSELECT setval(%L, max(%I)) FROM %s;  -- if its sequence made them',
                CASE WHEN d.nodes IS NOT NULL THEN '-- otherwise: ' END, q.sequence::regclass,
                m.name, m.rel) END)
    FROM unnest(($1).columns) AS m,
        randflake_migrate.doubt(m.rel, m.name, CASE WHEN m.checked
            THEN randflake_migrate.sample(m.rel, m.name) END, m.keeps) AS d,
        randflake_migrate.ours('randflake' || coalesce(d.bits, '') || '_generate', 0) AS g (make),
        randflake_migrate.sequence_of(m.rel, m.att) AS q (sequence)
    WHERE d.note IS NOT NULL
$$;
