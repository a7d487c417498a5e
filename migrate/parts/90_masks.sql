-- Prints functions for tables whose keys do not move. Each function takes the mask of a key and
-- returns the key's row, in which masks replace the key and the references. So roles that may not
-- read the tables see no number. The label of a mask is the name of the key's table.
CREATE FUNCTION randflake_migrate.masks(api name DEFAULT 'api') RETURNS SETOF text
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp SET jit = off AS $$
    SELECT format(E'CREATE FUNCTION %1$s RETURNS TABLE (%2$s)\n'
            'LANGUAGE sql STABLE SECURITY DEFINER BEGIN ATOMIC\n'
            '    SELECT %3$s FROM %4$s AS t WHERE t.%5$I = %6$s.randflake_unmask($1, %4$L);\nEND;\n'
            'REVOKE EXECUTE ON FUNCTION %1$s FROM PUBLIC;%7$s', f.name,
        string_agg(format('%I %s', a.attname, CASE WHEN m.root IS NULL
            THEN format_type(a.atttypid, a.atttypmod) ELSE 'bigint' END), ', ' ORDER BY a.attnum),
        string_agg(format(CASE WHEN m.root IS NULL THEN 't.%I'
            ELSE '%2$s.randflake_mask(t.%1$I, %3$L)' END, a.attname, s.name, m.root), ', '
            ORDER BY a.attnum), k.rel, k.name, s.name,
        CASE WHEN c.relowner <> randflake_migrate.me()
            THEN format(E'\nALTER FUNCTION %s OWNER TO %s;', f.name, c.relowner::regrole) END)
    FROM randflake_migrate.moving('bigint', 'all') AS k JOIN pg_class AS c ON c.oid = k.rel
    JOIN pg_attribute AS a ON a.attrelid = k.rel AND a.attnum > 0 AND NOT a.attisdropped
    LEFT JOIN randflake_migrate.moving('bigint', 'all') AS m ON m.rel = k.rel AND m.att = a.attnum
    JOIN pg_proc AS p ON p.oid = randflake_migrate.ours('randflake_unmask', 2),
    CAST(p.pronamespace::regnamespace AS text) AS s (name),
    format('%I.%I(bigint)', $1, c.relname) AS f (name)
    WHERE k.source <> 'reference' GROUP BY f.name, c.relowner, k.rel, k.name, s.name ORDER BY k.rel
$$;

-- The statements that these functions print must not depend on the caller's settings.
DO $$
BEGIN
    EXECUTE (SELECT string_agg(format('ALTER FUNCTION %s SET standard_conforming_strings = on '
            'SET datestyle = ISO SET intervalstyle = postgres SET extra_float_digits = 1 '
            'SET quote_all_identifiers = off;', p.oid::regprocedure), '')
        FROM pg_proc AS p WHERE p.pronamespace = 'randflake_migrate'::regnamespace AND p.proname
            IN ('plan', 'transaction', 'start', 'todo', 'undo', 'unchanged', 'done', 'begin'));
END $$;

-- Sets search_path to the session's default for later statements in the transaction.
SET LOCAL search_path TO DEFAULT;
