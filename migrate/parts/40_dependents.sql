-- Dependent objects

-- Returns what directly depends on an object or a column. Instead of a view's rule, returns the
-- view. For a column, omits those dependents of the table's row type that are not columns.
CREATE FUNCTION randflake_migrate.dependents(INOUT class oid, INOUT object oid, INOUT subid integer)
RETURNS SETOF record LANGUAGE sql STABLE ROWS 10 SET search_path = pg_catalog, pg_temp AS $$
    SELECT DISTINCT f.class, f.object, f.subid
    FROM (SELECT $1, $2, $3
        UNION ALL SELECT 'pg_type'::regclass, v.type, 0
        FROM pg_type AS y, unnest(ARRAY[y.oid, nullif(y.typarray, 0)]) AS v (type)
        WHERE $1 = 'pg_class'::regclass AND y.typrelid = $2 AND $2 <> 0) AS o (class, object, subid)
    JOIN pg_depend AS d ON d.refclassid = o.class AND d.refobjid = o.object
        AND (o.subid = 0 OR d.refobjsubid = o.subid)
    LEFT JOIN pg_rewrite AS r
        ON d.classid = 'pg_rewrite'::regclass AND r.oid = d.objid AND r.rulename = '_RETURN'
    LEFT JOIN pg_class AS c ON d.classid = 'pg_class'::regclass AND c.oid = d.objid,
    LATERAL (SELECT CASE WHEN r.oid IS NULL THEN d.classid ELSE 'pg_class'::regclass END,
        coalesce(r.ev_class, d.objid),
        CASE WHEN r.oid IS NULL THEN d.objsubid ELSE 0 END) AS f (class, object, subid)
    WHERE (f.class, f.object) <> ($1, $2) AND c.relkind IS DISTINCT FROM 't'
        AND f.class <> 'pg_type'::regclass
        AND (o.class = $1 OR $3 = 0 OR c.relkind IN ('r', 'p', 'm') AND f.subid > 0)
        AND NOT EXISTS (SELECT FROM pg_proc AS p
            WHERE f.class = 'pg_proc'::regclass AND p.oid = f.object
                AND p.pronamespace = 'randflake_migrate'::regnamespace)
        AND NOT EXISTS (SELECT FROM pg_constraint AS k
            WHERE f.class = 'pg_constraint'::regclass AND k.oid = f.object AND k.conparentid <> 0)
        AND NOT EXISTS (SELECT FROM pg_trigger AS t
            WHERE f.class = 'pg_trigger'::regclass AND t.oid = f.object
                AND (t.tgisinternal OR t.tgparentid <> 0))
$$;

-- Returns the given columns, and the columns that inherit from them.
CREATE FUNCTION randflake_migrate.places(rels oid[], atts smallint[], OUT rel oid, OUT att smallint)
RETURNS SETOF record LANGUAGE sql STABLE ROWS 100 SET search_path = pg_catalog, pg_temp AS $$
    WITH RECURSIVE place (rel, att) AS (
        SELECT p.rel, p.att FROM unnest($1, $2) AS p (rel, att)
        UNION SELECT c.attrelid, c.attnum
        FROM place AS p JOIN pg_attribute AS a ON a.attrelid = p.rel AND a.attnum = p.att
        JOIN pg_inherits AS i ON i.inhparent = p.rel
        JOIN pg_attribute AS c
            ON c.attrelid = i.inhrelid AND c.attname = a.attname AND NOT c.attisdropped
    ) SELECT p.rel, p.att FROM place AS p
$$;

-- Returns a table and all its partitions. Only tables without partitions (`leaf`) hold rows.
CREATE FUNCTION randflake_migrate.tree(rel oid, OUT rel oid, OUT leaf boolean) RETURNS SETOF record
LANGUAGE sql STABLE ROWS 2 SET search_path = pg_catalog, pg_temp AS $$
    SELECT t.relid::oid, t.isleaf FROM pg_partition_tree($1) AS t
    UNION ALL SELECT $1, true WHERE NOT EXISTS (SELECT FROM pg_partition_tree($1))
$$;

-- Returns the functions that the triggers of these tables run, also through other functions, and
-- those that mention a table. The source of a function tells, not pg_depend.
CREATE FUNCTION randflake_migrate.functions_of(rels oid[], OUT fn oid, OUT runs boolean)
RETURNS SETOF record LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
    WITH RECURSIVE p AS MATERIALIZED (
        SELECT p.oid, p.proname, regexp_replace(lower(p.prosrc), '"?\s*\(', '(', 'g') AS source
        FROM pg_proc AS p JOIN pg_language AS g ON g.oid = p.prolang
        WHERE g.lanname NOT IN ('internal', 'c') AND p.pronamespace::regnamespace::text NOT IN (
              'pg_catalog', 'information_schema', 'randflake_migrate')
          AND NOT EXISTS (SELECT FROM pg_depend AS e
              WHERE e.classid = 'pg_proc'::regclass AND e.objid = p.oid AND e.deptype = 'e')
    ), run (fn) AS (
        SELECT g.tgfoid FROM unnest($1) AS r (rel), randflake_migrate.tree(r.rel) AS t
        JOIN pg_trigger AS g ON g.tgrelid = t.rel AND NOT g.tgisinternal
        UNION SELECT o.oid FROM run JOIN p ON p.oid = run.fn
        JOIN p AS o ON strpos(p.source, lower(o.proname) || '(') > 0
    )
    SELECT p.oid, p.oid IN (SELECT run.fn FROM run) FROM p
    WHERE p.oid IN (SELECT run.fn FROM run) OR EXISTS (
        SELECT FROM pg_class AS c WHERE c.oid = ANY ($1) AND strpos(p.source, lower(c.relname)) > 0)
$$;

-- Returns statements that change nothing, after which open sessions compile these functions again.
-- Otherwise NEW.id has its former type in their plans, and each call fails.
CREATE FUNCTION randflake_migrate.compiled_again(rels oid[]) RETURNS SETOF text
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
    SELECT randflake_migrate.by(p.proowner, format('ALTER ROUTINE %s SECURITY %s;',
        p.oid::regprocedure, CASE WHEN p.prosecdef THEN 'DEFINER' ELSE 'INVOKER' END))
    FROM randflake_migrate.functions_of($1) AS f JOIN pg_proc AS p ON p.oid = f.fn
    JOIN pg_language AS g ON g.oid = p.prolang AND g.lanname = 'plpgsql'
    WHERE pg_has_role(p.proowner, 'USAGE') ORDER BY p.oid
$$;
