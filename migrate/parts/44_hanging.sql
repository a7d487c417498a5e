-- What a move does with dependent objects

-- Returns a generated column's expression, and the statements that make the column again.
CREATE FUNCTION randflake_migrate.generated(d pg_attrdef, OUT expression text, OUT remedy text)
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
    SELECT e, format(E'ALTER TABLE %s DROP COLUMN %I;  -- and afterwards:\n', c.oid::regclass,
        a.attname) || randflake_migrate.by(c.relowner, format(
            'ALTER TABLE %s ADD COLUMN %I %s GENERATED ALWAYS AS (%s) %s;', c.oid::regclass,
            a.attname, format_type(a.atttypid, a.atttypmod), e,
            CASE a.attgenerated WHEN 'v' THEN 'VIRTUAL' ELSE 'STORED' END))
    FROM pg_class AS c JOIN pg_attribute AS a ON a.attrelid = c.oid,
        pg_get_expr(($1).adbin, ($1).adrelid) AS e
    WHERE c.oid = ($1).adrelid AND a.attnum = ($1).adnum
$$;

-- Returns how a move treats an object, and why. `type` is that of pg_identify_object().
CREATE FUNCTION randflake_migrate.fate(
    class oid, object oid, type text, OUT how text, OUT note text, OUT remedy text)
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
    SELECT y[1], y[2], y[3] FROM (SELECT CASE WHEN EXISTS (SELECT FROM pg_depend AS e
            WHERE e.classid = $1 AND e.objid = $2 AND e.deptype = 'e')
            THEN ARRAY['blocker', 'belongs to an extension', NULL]
        WHEN $3 IN ('view', 'materialized view', 'rule', 'trigger', 'policy', 'function',
            'procedure', 'publication relation') OR k.contype = 'f' OR t.relkind = 'm'
            OR a.of_view THEN ARRAY['made again', NULL, NULL]
        WHEN k.contype = 'c' THEN ARRAY['kept', pg_get_constraintdef(k.oid) || ': must be true of '
            'new keys, half of which are negative unless they have 53 bits', NULL]
        WHEN $1 = 'pg_constraint'::regclass OR c.relkind IN ('i', 'I')
            OR $3 = 'statistics object' THEN ARRAY['kept', NULL, NULL]
        WHEN c.relkind = 'S' THEN ARRAY['dropped', (SELECT 'with its grants to '
                || string_agg(DISTINCT g.grantee::regrole::text, ', ')
            FROM aclexplode(c.relacl) AS g WHERE g.grantee NOT IN (0, c.relowner)), NULL]
        WHEN a.attgenerated <> '' THEN (
            SELECT ARRAY['blocker', 'a generated column is computed from it: ' || g.expression,
                g.remedy] FROM randflake_migrate.generated(d) AS g)
        WHEN d.oid IS NOT NULL THEN ARRAY['dropped', NULL, NULL]
        WHEN $3 = 'table column' THEN ARRAY['blocker', 'has the row type of the table or view, '
            'whose columns cannot change their types meanwhile', NULL]
        ELSE ARRAY['blocker', 'depends on the column in a way that this script does not know', NULL]
        END
    FROM (SELECT) AS x LEFT JOIN pg_class AS c ON $1 = 'pg_class'::regclass AND c.oid = $2
    LEFT JOIN pg_index AS n ON n.indexrelid = c.oid LEFT JOIN pg_class AS t ON t.oid = n.indrelid
    LEFT JOIN pg_constraint AS k ON $1 = 'pg_constraint'::regclass AND k.oid = $2
    LEFT JOIN pg_attrdef AS d ON $1 = 'pg_attrdef'::regclass AND d.oid = $2
    LEFT JOIN (SELECT a.*, v.relkind = 'v' AS of_view
        FROM pg_attribute AS a JOIN pg_class AS v ON v.oid = a.attrelid) AS a
        ON a.attrelid = d.adrelid AND a.attnum = d.adnum) AS v (y)
$$;

CREATE TYPE randflake_migrate.hung AS (grp regclass, class oid, object oid, subid integer,
    owner oid, level integer, how text, kind text, identity text, note text, remedy text);

-- Returns, in order of creation, all objects that depend on these columns or on columns that
-- inherit from them. `how` says what a move does with the object.
CREATE FUNCTION randflake_migrate.hanging(rels oid[], atts smallint[], grp regclass DEFAULT NULL)
RETURNS SETOF randflake_migrate.hung
LANGUAGE sql STABLE ROWS 100 SET search_path = pg_catalog, pg_temp AS $$
    WITH RECURSIVE hang (class, object, subid, level) AS (
        SELECT d.class, d.object, d.subid, 1 FROM randflake_migrate.places($1, $2) AS p,
            randflake_migrate.dependents('pg_class'::regclass, p.rel, p.att) AS d
        UNION SELECT d.class, d.object, d.subid, h.level + 1
        FROM hang AS h, randflake_migrate.dependents(h.class, h.object, 0) AS d
        WHERE h.level < 64 AND (h.class = 'pg_proc'::regclass OR EXISTS (SELECT FROM pg_class AS c
            WHERE h.class = 'pg_class'::regclass AND c.oid = h.object AND c.relkind IN ('v', 'm')))
    )
    SELECT $3, h.class, h.object, h.subid, randflake_migrate.owner_of(h.object, h.class), h.level,
        f.how, i.type, i.identity, f.note, f.remedy
    FROM (SELECT h.class, h.object, h.subid, max(h.level) AS level
        FROM hang AS h GROUP BY h.class, h.object, h.subid) AS h,
        pg_identify_object(h.class, h.object, h.subid) AS i,
        randflake_migrate.fate(h.class, h.object, i.type) AS f
    ORDER BY h.level, h.class, h.object
$$;

-- Returns what depends on the given columns of each group.
CREATE FUNCTION randflake_migrate.hanging(columns randflake_migrate.moved[])
RETURNS SETOF randflake_migrate.hung
LANGUAGE sql STABLE ROWS 100 SET search_path = pg_catalog, pg_temp AS $$
    SELECT h.* FROM (SELECT m.grp, array_agg(m.rel::oid) AS rels, array_agg(m.att) AS atts
        FROM unnest($1) AS m GROUP BY m.grp) AS g,
    randflake_migrate.hanging(g.rels, g.atts, g.grp) AS h
$$;
