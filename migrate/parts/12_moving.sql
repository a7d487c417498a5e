-- The columns that move

-- Returns the current role, as whom statements act if no other role is named.
CREATE FUNCTION randflake_migrate.me() RETURNS regrole
LANGUAGE sql STABLE RETURN quote_ident(current_user)::regrole;

-- Returns the extension's or the managed script's function with this name and number of arguments.
-- Ignores functions of the same name that other roles own.
CREATE FUNCTION randflake_migrate.ours(name name, arguments integer) RETURNS regproc
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
    SELECT p.oid FROM pg_proc AS p LEFT JOIN (pg_depend AS d JOIN pg_extension AS e
            ON d.refclassid = 'pg_extension'::regclass AND e.oid = d.refobjid)
        ON d.classid = 'pg_proc'::regclass AND d.objid = p.oid
            AND d.deptype = 'e' AND e.extname LIKE 'randflake%'
    WHERE p.proname = $1 AND p.pronargs = $2
        AND (e.oid IS NOT NULL OR p.pronamespace = to_regnamespace('randflake')
            AND p.proowner IN (randflake_migrate.me(),
                (SELECT b.datdba FROM pg_database AS b WHERE b.datname = current_database())))
    ORDER BY e.oid LIMIT 1
$$;

-- Returns the type of the new keys and the call that generates a key.
CREATE FUNCTION randflake_migrate.target(target text, OUT to_type regtype, OUT generator text)
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    wanted text := CASE target WHEN 'bigint' THEN 'randflake_generate'
        WHEN '53' THEN 'randflake53_generate' WHEN 'randflake' THEN 'randflake_next' END;
BEGIN
    IF wanted IS NULL THEN
        RAISE invalid_parameter_value USING MESSAGE = format('unknown target: "%s"', target),
            HINT = 'Targets are bigint, 53 and randflake; for masks see randflake_migrate.masks().';
    END IF;
    SELECT p.prorettype, p.oid::regproc || '()' INTO to_type, generator
    FROM pg_proc AS p WHERE p.oid = randflake_migrate.ours(wanted, 0);
    IF NOT FOUND THEN
        RAISE undefined_function USING
            MESSAGE = format('this database has no function %s()', wanted),
            HINT = format('CREATE EXTENSION %s CASCADE;',
                CASE target WHEN 'randflake' THEN 'randflake_type' ELSE 'randflake' END);
    END IF;
END $$;

-- Returns the columns of all tables but those of the system, of extensions and of this script.
CREATE FUNCTION randflake_migrate.own_columns()
RETURNS TABLE (rel oid, relnamespace oid, att smallint, name name, type oid, inherited boolean)
LANGUAGE sql STABLE ROWS 1000 BEGIN ATOMIC
    SELECT c.oid, c.relnamespace, a.attnum, a.attname, a.atttypid, a.attinhcount > 0
    FROM pg_attribute AS a JOIN pg_class AS c ON c.oid = a.attrelid
    WHERE c.relkind IN ('r', 'p') AND c.relpersistence <> 't'
        AND a.attnum > 0 AND NOT a.attisdropped
        AND c.relnamespace::regnamespace::text
            !~ '^(pg_catalog|pg_toast|information_schema|randflake_migrate)$'
        AND NOT EXISTS (SELECT FROM pg_depend AS d
            WHERE d.classid = 'pg_class'::regclass AND d.objid = c.oid AND d.deptype = 'e');
END;

-- Returns the columns that refer to others by foreign keys. Partitions and inheriting tables move
-- with their topmost table, so the topmost tables' columns stand for theirs.
CREATE FUNCTION randflake_migrate.referring()
RETURNS TABLE (rel oid, att smallint, to_rel oid, to_att smallint)
LANGUAGE sql STABLE ROWS 100 SET search_path = pg_catalog, pg_temp AS $$
    WITH RECURSIVE topmost (rel, att, top_rel, top_att, inherited) AS (
        SELECT c.rel, c.att, c.rel, c.att, c.inherited FROM randflake_migrate.own_columns() AS c
        UNION ALL SELECT t.rel, t.att, p.attrelid, p.attnum, p.attinhcount > 0 FROM topmost AS t
        JOIN pg_attribute AS a ON a.attrelid = t.top_rel AND a.attnum = t.top_att
        JOIN pg_inherits AS i ON i.inhrelid = t.top_rel
        JOIN pg_attribute AS p
            ON p.attrelid = i.inhparent AND p.attname = a.attname AND NOT p.attisdropped
        WHERE t.inherited
    )
    SELECT DISTINCT c.top_rel, c.top_att, p.top_rel, p.top_att
    FROM pg_constraint AS f, unnest(f.conkey, f.confkey) AS k (child, parent),
        topmost AS c, topmost AS p
    WHERE f.contype = 'f' AND f.conparentid = 0 AND NOT c.inherited AND NOT p.inherited
        AND c.rel = f.conrelid AND c.att = k.child AND p.rel = f.confrelid AND p.att = k.parent
$$;

-- Returns the generated keys: identity, serial, randflake or randflake53.
CREATE FUNCTION randflake_migrate.keys() RETURNS TABLE (rel oid, att smallint, source text)
LANGUAGE sql STABLE ROWS 100 SET search_path = pg_catalog, pg_temp AS $$
    SELECT t.rel, t.att, CASE WHEN a.attidentity <> '' THEN 'identity' ELSE coalesce(
        substring(e.expression FROM '\y(randflake(?:53)?)_generate\(\)'), 'serial') END
    FROM randflake_migrate.own_columns() AS t
    JOIN pg_attribute AS a ON a.attrelid = t.rel AND a.attnum = t.att
    JOIN pg_type AS y ON y.oid = t.type
    LEFT JOIN pg_attrdef AS d ON d.adrelid = t.rel AND d.adnum = t.att
    LEFT JOIN LATERAL pg_get_expr(d.adbin, d.adrelid) AS e (expression) ON true
    WHERE NOT t.inherited AND coalesce(nullif(y.typbasetype, 0), y.oid)
            IN ('int2'::regtype, 'int4'::regtype, 'int8'::regtype)
        AND (a.attidentity <> '' OR e.expression ~ '\yrandflake(53)?_generate\(\)' OR EXISTS (
            SELECT FROM pg_depend AS n JOIN pg_class AS s ON s.oid = n.refobjid AND s.relkind = 'S'
            WHERE n.classid = 'pg_attrdef'::regclass AND n.objid = d.oid
                AND n.refclassid = 'pg_class'::regclass))
        AND EXISTS (SELECT FROM pg_index AS i
            WHERE i.indrelid = t.rel AND i.indisunique AND t.att = ANY (i.indkey::int2[]))
$$;

CREATE TYPE randflake_migrate.moved AS (
    grp regclass,                   -- the group
    root regclass, root_name name,  -- the key: this column, or what it refers to
    rel regclass, att smallint, name name, type regtype,
    shown text,                     -- the column with its table
    source text,                    -- identity, serial, randflake or reference
    keeps boolean,                  -- values stay the same
    to_type regtype, generator text,
    changes boolean,                -- the column's type or its values
    checked boolean                 -- doubt() looks at its values
);

-- Returns the columns that move. With `rows` = all, existing rows get new keys. With `rows` = new,
-- they keep their keys. A column that already has identifiers keeps them, and can only move to the
-- type randflake, unless they have 53 bits. doubt() looks at the values.
CREATE FUNCTION randflake_migrate.moving(target text, rows text)
RETURNS SETOF randflake_migrate.moved
LANGUAGE sql STABLE ROWS 100 SET search_path = pg_catalog, pg_temp AS $$
    WITH RECURSIVE reference AS MATERIALIZED (SELECT * FROM randflake_migrate.referring()),
    key AS MATERIALIZED (SELECT * FROM randflake_migrate.keys()),
    member (root, root_att, rel, att, source) AS (
        SELECT k.rel, k.att, k.rel, k.att, k.source FROM key AS k
        UNION SELECT m.root, m.root_att, r.rel, r.att, 'reference'
        FROM member AS m JOIN reference AS r ON r.to_rel = m.rel AND r.to_att = m.att
        WHERE (r.rel, r.att) <> (m.root, m.root_att)
    ), link (rel, other) AS (
        SELECT m.rel, m.root FROM member AS m UNION SELECT m.root, m.rel FROM member AS m
    ), reach (rel, other) AS (
        SELECT l.rel, l.rel FROM link AS l
        UNION SELECT r.rel, l.other FROM reach AS r JOIN link AS l ON l.rel = r.other
    ), first AS (SELECT r.rel, min(r.other::oid) AS grp FROM reach AS r GROUP BY r.rel)
    SELECT f.grp, m.root, ra.attname, m.rel, m.att, a.attname, a.atttypid,
        m.rel::regclass || '.' || quote_ident(a.attname), m.source, c.keeps, t.to_type, t.generator,
        NOT c.keeps OR a.atttypid <> t.to_type,
        a.atttypid = 'int8'::regtype
            AND CASE WHEN c.keeps THEN k.source = 'randflake' ELSE m.source <> 'reference' END
    FROM randflake_migrate.target($1) AS t, member AS m JOIN first AS f ON f.rel = m.rel
    JOIN key AS k ON k.rel = m.root AND k.att = m.root_att
    JOIN pg_attribute AS ra ON ra.attrelid = m.root AND ra.attnum = m.root_att
    JOIN pg_attribute AS a ON a.attrelid = m.rel AND a.attnum = m.att,
    LATERAL (SELECT k.source = 'randflake' OR $2 = 'new') AS c (keeps)
    WHERE k.source NOT LIKE 'randflake%' OR k.source = 'randflake' AND $1 = 'randflake'
    ORDER BY f.grp, m.source = 'reference', m.rel, m.att
$$;
