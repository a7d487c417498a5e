-- Parts of the statements that a move prints

-- Returns a column's default if it is a number.
CREATE FUNCTION randflake_migrate.constant(rel oid, att smallint) RETURNS bigint
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
    SELECT substring(pg_get_expr(d.adbin, d.adrelid)
        FROM '^\(?''?(-?\d{1,18})''?\)?(?:::(?:smallint|integer|bigint))?$')::bigint
    FROM pg_attrdef AS d WHERE d.adrelid = $1 AND d.adnum = $2
$$;

-- Makes the new key of `number` the default of a column whose default was this number.
CREATE FUNCTION randflake_migrate.set_default(rel regclass, name name, number bigint, key text)
RETURNS void LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF key IS NULL THEN
        RAISE foreign_key_violation USING
            MESSAGE = format('the default of column %I of table %s, %s, is no key',
                name, rel, number),
            HINT = format('ALTER TABLE %s ALTER COLUMN %I DROP DEFAULT;', rel, name);
    END IF;
    EXECUTE format('ALTER TABLE %s ALTER COLUMN %I SET DEFAULT %L', rel, name, key);
END $$;

-- Returns the search_path that statements need to find the operators of these types.
CREATE FUNCTION randflake_migrate.path(VARIADIC types regtype[]) RETURNS text
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
    SELECT concat_ws(', ', 'pg_catalog',
        (SELECT string_agg(DISTINCT y.typnamespace::regnamespace::text, ', ') FROM pg_type AS y
        WHERE y.oid = ANY ($1) AND y.typnamespace <> 'pg_catalog'::regnamespace
            AND y.typtype <> 'd'), 'pg_temp')
$$;

-- Returns a LOCK TABLE statement that times out before deadlock_timeout. After deadlock_timeout, a
-- waiting program would check for deadlocks, and might fail.
CREATE FUNCTION randflake_migrate.lock(relations text, mode text) RETURNS text
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
    SELECT format(E'SET LOCAL statement_timeout = %s;\n'
        'LOCK TABLE %s IN %s MODE;\nSET LOCAL statement_timeout TO DEFAULT;',
        least(2000, (SELECT s.setting::integer * 7 / 10 FROM pg_settings AS s
            WHERE s.name = 'deadlock_timeout')), $1, $2)
$$;

-- Returns the views for a LOCK TABLE. The statement must list views before their tables. LOCK TABLE
-- requires that a view's owner has rights on its tables. If an owner lacks these rights, returns
-- nothing.
CREATE FUNCTION randflake_migrate.views(views oid[]) RETURNS text
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
    SELECT string_agg(v.oid::regclass::text, ', ' ORDER BY v.n)
    FROM unnest($1) WITH ORDINALITY AS v (oid, n)
    WHERE NOT EXISTS (SELECT FROM pg_rewrite AS r JOIN pg_class AS c ON c.oid = r.ev_class
        JOIN pg_depend AS d ON d.classid = 'pg_rewrite'::regclass AND d.objid = r.oid
        JOIN pg_class AS u ON d.refclassid = 'pg_class'::regclass AND u.oid = d.refobjid
            AND u.relkind IN ('r', 'p', 'v')
        WHERE r.ev_class = ANY ($1)
            AND NOT has_table_privilege(c.relowner, u.oid, 'UPDATE, DELETE, TRUNCATE'))
$$;

-- Returns tables for LOCK TABLE, with referenced tables first, because most programs lock tables in
-- this order. `roots` has the tables to which the columns of `rels` refer.
CREATE FUNCTION randflake_migrate.in_order(rels regclass[], roots regclass[]) RETURNS text
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
    SELECT string_agg(t.rel::text, ', ' ORDER BY t.parents, t.rel)
    FROM (SELECT x.rel, count(DISTINCT x.root) FILTER (WHERE x.root <> x.rel) AS parents
        FROM unnest($1, $2) AS x (rel, root) GROUP BY x.rel) AS t
$$;

-- Each key has a table and a function that map old numbers to new ones. Returns their common name.
CREATE FUNCTION randflake_migrate.map(rel regclass, key name) RETURNS name
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
    SELECT CASE WHEN octet_length(n) < 64 THEN n
        ELSE format('%s.%s', $1::oid, (SELECT a.attnum FROM pg_attribute AS a
            WHERE a.attrelid = $1 AND a.attname = $2)) END::name
    FROM concat($1, '.', quote_ident($2)) AS n
$$;
