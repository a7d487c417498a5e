-- Moves a database from serial and identity keys to identifiers. See docs/migrating.md.
--
--   psql -X -1 -v ON_ERROR_STOP=1 -f migrate/randflake_migrate.sql
--
-- plan() lists what moves and what depends on it, and changes nothing. transaction() prints one
-- transaction that moves a group of tables. start() plans the steps of a move during which programs
-- can use the group. todo() prints the remaining steps, and undo() replaces them by steps that
-- reverse the move. The operator runs the printed statements. After all moves the operator runs
-- DROP SCHEMA randflake_migrate CASCADE, which removes this script's objects.
--
-- How the script finds columns and objects
--
-- moving() returns the columns that move: generated keys, and columns that refer to them by foreign
-- keys. A group consists of tables that are connected by foreign keys. A group has the name of its
-- first table. hanging() finds what depends on the columns that move, even through views and
-- functions. "kept" means that PostgreSQL keeps an object through ALTER COLUMN TYPE. "made again"
-- means that the move drops an object and creates it with the SQL that PostgreSQL prints for it.
-- Any other object is a blocker.
--
-- How start() exchanges columns while programs write
--
-- Each column gets a shadow column (new_…). A trigger sets the shadow in every row that a program
-- writes, and fill() sets it in all other rows. Step 7 gives the column's name to the shadow, and
-- renames the column (old_…). After step 7, triggers set the old column in new rows, so undo() can
-- swap the columns back. Before step 7, undo() drops what the steps made.
--
-- A shadow belongs to a number, not to a row, because references to a number remain when another
-- row takes the number. So when an UPDATE or DELETE removes a number from a row, a table of the
-- move keeps the number's shadow for the next row with this number.
--
-- The move makes columns, triggers and checks on a partitioned table, so that later partitions get
-- them. It makes indexes and foreign keys on each partition, because PostgreSQL can make them there
-- while programs write. Later the move builds the partitioned table's indexes and keys from those
-- of the partitions. A check refuses rows without a shadow, even if a program attaches a partition
-- or disables a trigger.
--
-- The names of a move's objects contain the number of the move: randflake_1_… and zzz_randflake_1_…
-- in the schemas of the tables, m1_… in this schema. Only the names of columns lack the number. The
-- steps record the oid of each object that they make, and drop no other objects.
--
-- Security: %I quotes names in SQL, and %L quotes values. Functions and generated SQL set
-- search_path = pg_catalog, pg_temp, and generated SQL qualifies the names of objects in all other
-- schemas. A table's owner can attach code to the table, or replace it by a view. So as_owner()
-- runs, as the owner, all statements that may run such code or parse the owner's text. A move's
-- functions run as the owner too.

SET LOCAL search_path = pg_catalog, pg_temp;

CREATE SCHEMA randflake_migrate;
COMMENT ON SCHEMA randflake_migrate IS 'moves a database to identifiers of randflake; see docs/migrating.md';

-- --- the columns --------------------------------------------------------------------------------

-- Returns the extension's or the managed script's function with this name and number of arguments.
-- Ignores functions of the same name that other roles own.
CREATE FUNCTION randflake_migrate.ours(name name, arguments integer) RETURNS regproc
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
    SELECT p.oid
    FROM pg_proc AS p LEFT JOIN (pg_depend AS d JOIN pg_extension AS e ON d.refclassid = 'pg_extension'::regclass AND e.oid = d.refobjid)
        ON d.classid = 'pg_proc'::regclass AND d.objid = p.oid AND d.deptype = 'e' AND e.extname LIKE 'randflake%'
    WHERE p.proname = $1 AND p.pronargs = $2 AND (e.oid IS NOT NULL OR p.pronamespace = to_regnamespace('randflake')
        AND p.proowner IN ((SELECT b.datdba FROM pg_database AS b WHERE b.datname = current_database()), quote_ident(current_user)::regrole))
    ORDER BY e.oid LIMIT 1
$$;

-- Returns the type of the new keys and the call that generates a key.
CREATE FUNCTION randflake_migrate.target(target text, OUT to_type regtype, OUT generator text)
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    wanted text := CASE target WHEN 'bigint' THEN 'randflake_generate' WHEN '53' THEN 'randflake53_generate'
                               WHEN 'randflake' THEN 'randflake_next' END;
BEGIN
    IF wanted IS NULL THEN
        RAISE invalid_parameter_value USING MESSAGE = format('unknown target: "%s"', target),
            HINT = 'Targets are bigint, 53 and randflake; for masks see randflake_migrate.masks().';
    END IF;
    SELECT p.prorettype, p.oid::regproc || '()' INTO to_type, generator FROM pg_proc AS p WHERE p.oid = randflake_migrate.ours(wanted, 0);
    IF NOT FOUND THEN
        RAISE undefined_function USING MESSAGE = format('this database has no function %s()', wanted),
            HINT = format('CREATE EXTENSION %s CASCADE;',
                CASE target WHEN 'randflake' THEN 'randflake_type' ELSE 'randflake' END);
    END IF;
END
$$;

-- Returns the columns that move. With `rows` = all, existing rows get new keys. With `rows` = new,
-- they keep their keys. A column that already has identifiers keeps them, and can only move to the
-- type randflake. Partitions and inheriting tables move with their topmost table.
CREATE FUNCTION randflake_migrate.moving(
    target text, rows text,
    OUT grp regclass,                           -- the group
    OUT root regclass, OUT root_name name,      -- the key: this column, or what it refers to
    OUT rel regclass, OUT att smallint, OUT name name, OUT type regtype,
    OUT source text,                            -- identity, serial, randflake or reference
    OUT keeps boolean,                          -- values stay the same
    OUT to_type regtype, OUT generator text,
    OUT changes boolean                         -- the column's type or its values
) RETURNS SETOF record LANGUAGE sql STABLE ROWS 100 SET search_path = pg_catalog, pg_temp SET jit = off AS $$
    WITH RECURSIVE topmost (rel, att, top_rel, top_att, inherited) AS (
        SELECT a.attrelid, a.attnum, a.attrelid, a.attnum, a.attinhcount > 0
        FROM pg_attribute AS a JOIN pg_class AS c ON c.oid = a.attrelid
        WHERE c.relkind IN ('r', 'p') AND c.relpersistence <> 't' AND a.attnum > 0 AND NOT a.attisdropped
          AND c.relnamespace::regnamespace::text !~ '^(pg_catalog|pg_toast|information_schema|randflake_migrate)$'
          AND NOT EXISTS (SELECT FROM pg_depend AS d WHERE d.classid = 'pg_class'::regclass AND d.objid = c.oid
                          AND d.deptype = 'e')
      UNION ALL
        SELECT t.rel, t.att, p.attrelid, p.attnum, p.attinhcount > 0
        FROM topmost AS t JOIN pg_attribute AS a ON a.attrelid = t.top_rel AND a.attnum = t.top_att
        JOIN pg_inherits AS i ON i.inhrelid = t.top_rel
        JOIN pg_attribute AS p ON p.attrelid = i.inhparent AND p.attname = a.attname AND NOT p.attisdropped
        WHERE t.inherited
    ), reference AS (
        SELECT DISTINCT c.top_rel AS rel, c.top_att AS att, p.top_rel AS to_rel, p.top_att AS to_att
        FROM pg_constraint AS f, unnest(f.conkey, f.confkey) AS k (child, parent), topmost AS c, topmost AS p
        WHERE f.contype = 'f' AND f.conparentid = 0 AND NOT c.inherited AND NOT p.inherited
          AND c.rel = f.conrelid AND c.att = k.child AND p.rel = f.confrelid AND p.att = k.parent
    ), key AS (
        SELECT t.rel, t.att, CASE WHEN a.attidentity <> '' THEN 'identity'
                                  WHEN e.expression ~ 'randflake(53)?_generate\(\)$' THEN 'randflake' ELSE 'serial' END AS source
        FROM topmost AS t JOIN pg_attribute AS a ON a.attrelid = t.rel AND a.attnum = t.att
        JOIN pg_type AS y ON y.oid = a.atttypid
        LEFT JOIN pg_attrdef AS d ON d.adrelid = t.rel AND d.adnum = t.att
        LEFT JOIN LATERAL pg_get_expr(d.adbin, d.adrelid) AS e (expression) ON true
        WHERE NOT t.inherited AND t.rel = t.top_rel
          AND coalesce(nullif(y.typbasetype, 0), y.oid) IN ('int2'::regtype, 'int4'::regtype, 'int8'::regtype)
          AND (a.attidentity <> '' OR e.expression ~ 'randflake(53)?_generate\(\)$' OR EXISTS (
              SELECT FROM pg_depend AS n JOIN pg_class AS s ON s.oid = n.refobjid AND s.relkind = 'S'
              WHERE n.classid = 'pg_attrdef'::regclass AND n.objid = d.oid AND n.refclassid = 'pg_class'::regclass))
          AND EXISTS (SELECT FROM pg_index AS i WHERE i.indrelid = t.rel AND i.indisunique AND t.att = ANY (i.indkey::int2[]))
    ), member (root, root_att, rel, att, source) AS (
        SELECT k.rel, k.att, k.rel, k.att, k.source FROM key AS k
      UNION
        SELECT m.root, m.root_att, r.rel, r.att, 'reference'
        FROM member AS m JOIN reference AS r ON r.to_rel = m.rel AND r.to_att = m.att
        WHERE (r.rel, r.att) <> (m.root, m.root_att)
    ), link (rel, other) AS (
        SELECT m.rel, m.root FROM member AS m UNION SELECT m.root, m.rel FROM member AS m
    ), reach (rel, other) AS (
        SELECT l.rel, l.rel FROM link AS l UNION SELECT r.rel, l.other FROM reach AS r JOIN link AS l ON l.rel = r.other
    ), first AS (
        SELECT r.rel, min(r.other::oid) AS grp FROM reach AS r GROUP BY r.rel
    )
    SELECT f.grp, m.root, ra.attname, m.rel, m.att, a.attname, a.atttypid, m.source, c.keeps, t.to_type, t.generator,
           NOT c.keeps OR a.atttypid <> t.to_type
    FROM randflake_migrate.target($1) AS t, member AS m JOIN first AS f ON f.rel = m.rel
    JOIN key AS k ON k.rel = m.root AND k.att = m.root_att
    JOIN pg_attribute AS ra ON ra.attrelid = m.root AND ra.attnum = m.root_att
    JOIN pg_attribute AS a ON a.attrelid = m.rel AND a.attnum = m.att,
    LATERAL (SELECT k.source = 'randflake' OR $2 = 'new') AS c (keeps)
    WHERE k.source <> 'randflake' OR $1 = 'randflake'
    ORDER BY f.grp, m.source = 'reference', m.rel, m.att
$$;

-- Returns the search_path that statements need to find the operators of these types.
CREATE FUNCTION randflake_migrate.path(VARIADIC types regtype[]) RETURNS text
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
    SELECT concat_ws(', ', 'pg_catalog', (SELECT string_agg(DISTINCT y.typnamespace::regnamespace::text, ', ') FROM pg_type AS y
        WHERE y.oid = ANY ($1) AND y.typnamespace <> 'pg_catalog'::regnamespace AND y.typtype <> 'd'), 'pg_temp')
$$;

-- Returns a LOCK TABLE statement that times out before deadlock_timeout. After deadlock_timeout, a
-- waiting program would check for deadlocks, and might fail.
CREATE FUNCTION randflake_migrate.lock(relations text, mode text) RETURNS text
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
    SELECT format(E'SET LOCAL statement_timeout = %s;\nLOCK TABLE %s IN %s MODE;\nSET LOCAL statement_timeout TO DEFAULT;',
        least(2000, (SELECT s.setting::integer * 7 / 10 FROM pg_settings AS s WHERE s.name = 'deadlock_timeout')), $1, $2)
$$;

-- Returns the views for a LOCK TABLE. The statement must list views before their tables. LOCK TABLE
-- requires that a view's owner has rights on its tables. If an owner lacks these rights, returns
-- nothing.
CREATE FUNCTION randflake_migrate.views(views oid[]) RETURNS text
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
    SELECT string_agg(v.oid::regclass::text, ', ' ORDER BY v.n) FROM unnest($1) WITH ORDINALITY AS v (oid, n) WHERE NOT EXISTS (
        SELECT FROM pg_rewrite AS r JOIN pg_class AS c ON c.oid = r.ev_class JOIN pg_depend AS d ON d.classid = 'pg_rewrite'::regclass AND d.objid = r.oid
        JOIN pg_class AS u ON d.refclassid = 'pg_class'::regclass AND u.oid = d.refobjid AND u.relkind IN ('r', 'p', 'v')
        WHERE r.ev_class = ANY ($1) AND NOT has_table_privilege(c.relowner, u.oid, 'UPDATE, DELETE, TRUNCATE'))
$$;

-- Returns tables for LOCK TABLE, with referenced tables first, because most programs lock tables in
-- this order. `roots` has the tables to which the columns of `rels` refer.
CREATE FUNCTION randflake_migrate.in_order(rels regclass[], roots regclass[]) RETURNS text
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
    SELECT string_agg(t.rel::text, ', ' ORDER BY t.parents, t.rel)
    FROM (SELECT x.rel, count(DISTINCT x.root) FILTER (WHERE x.root <> x.rel) AS parents FROM unnest($1, $2) AS x (rel, root) GROUP BY x.rel) AS t
$$;

-- --- other owners -------------------------------------------------------------------------------

CREATE FUNCTION randflake_migrate.run() RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    rows bigint := 0;
    statement text := pg_catalog.current_setting('randflake_migrate.statement', true);
BEGIN
    IF statement OPERATOR(pg_catalog.<>) '' THEN
        PERFORM pg_catalog.set_config('search_path', pg_catalog.current_setting('randflake_migrate.path'), true);
        EXECUTE statement;
        GET DIAGNOSTICS rows = ROW_COUNT;
    END IF;
    RETURN rows;
END
$$;

-- Runs a statement as another role, and returns the number of rows. SET ROLE would be unsafe,
-- because the role's code could run RESET ROLE, and deferred triggers would run after the reset.
-- While PostgreSQL refreshes a materialized view, it refuses RESET ROLE and deferred triggers. So
-- this function runs the statement in a refresh of a materialized view that the role owns.
CREATE FUNCTION randflake_migrate.as_owner(owner name, statement text) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    role oid := (SELECT r.oid FROM pg_catalog.pg_roles AS r WHERE r.rolname OPERATOR(pg_catalog.=) $1);
    view name := pg_catalog.format('as_%s', role);
    path text := pg_catalog.current_setting('search_path');
    rows bigint;
BEGIN
    IF $1 OPERATOR(pg_catalog.=) current_user THEN
        EXECUTE $2;
        GET DIAGNOSTICS rows = ROW_COUNT;
        RETURN rows;
    ELSIF role IS NULL THEN
        RAISE undefined_object USING MESSAGE = pg_catalog.format('role "%s" does not exist', $1);
    ELSIF NOT EXISTS (SELECT FROM pg_catalog.pg_class AS c WHERE c.relname OPERATOR(pg_catalog.=) view
                      AND c.relnamespace OPERATOR(pg_catalog.=) 'randflake_migrate'::pg_catalog.regnamespace
                      AND c.relowner OPERATOR(pg_catalog.=) role) THEN
        EXECUTE pg_catalog.format('DROP MATERIALIZED VIEW IF EXISTS randflake_migrate.%I', view);
        EXECUTE pg_catalog.format('CREATE MATERIALIZED VIEW randflake_migrate.%I AS SELECT randflake_migrate.run() AS n WITH NO DATA', view);
        EXECUTE pg_catalog.format('GRANT EXECUTE ON FUNCTION randflake_migrate.run() TO %I', $1);
        PERFORM randflake_migrate.hand_over($1, view);
    END IF;
    PERFORM pg_catalog.set_config('randflake_migrate.path', CASE WHEN path OPERATOR(pg_catalog.~) '^pg_catalog, ' THEN path
                                                            ELSE 'pg_catalog, pg_temp' END, true),
            pg_catalog.set_config('randflake_migrate.statement', $2, true);
    EXECUTE pg_catalog.format('REFRESH MATERIALIZED VIEW randflake_migrate.%I', view);
    PERFORM pg_catalog.set_config('randflake_migrate.statement', '', true);
    EXECUTE pg_catalog.format('SELECT v.n FROM randflake_migrate.%I AS v', view) INTO rows;
    RETURN rows;
END
$$;

-- Makes a role the owner of objects in this schema. At the end, revokes CREATE on the schema.
CREATE FUNCTION randflake_migrate.hand_over(owner name, VARIADIC names name[]) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    statement text;
BEGIN
    FOR statement IN
        SELECT format('GRANT USAGE, CREATE ON SCHEMA randflake_migrate TO %I', $1)
      UNION ALL SELECT format('ALTER %s %s OWNER TO %I', CASE c.relkind WHEN 'm' THEN 'MATERIALIZED VIEW' ELSE 'TABLE' END, c.oid::regclass, $1)
        FROM pg_class AS c WHERE c.relnamespace = 'randflake_migrate'::regnamespace AND c.relkind IN ('r', 'm') AND c.relname = ANY (names)
      UNION ALL SELECT format('ALTER FUNCTION %s OWNER TO %I', p.oid::regprocedure, $1)
        FROM pg_proc AS p WHERE p.pronamespace = 'randflake_migrate'::regnamespace AND p.proname = ANY (names)
      UNION ALL SELECT format('REVOKE CREATE ON SCHEMA randflake_migrate FROM %I', $1) LOOP
        EXECUTE statement;
    END LOOP;
END
$$;

-- Returns SQL that runs a statement as the role `owner`.
CREATE FUNCTION randflake_migrate.by(owner oid, statement text) RETURNS text
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
    SELECT CASE WHEN r.rolname = current_user THEN $2 ELSE format('SELECT randflake_migrate.as_owner(%L, %L);', r.rolname, $2) END
    FROM pg_roles AS r WHERE r.oid = $1
$$;

-- Returns SQL that makes the role `owner` the owner of objects in this schema.
CREATE FUNCTION randflake_migrate.given(owner oid, VARIADIC names name[]) RETURNS text
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
    SELECT CASE WHEN r.rolname = current_user THEN ''
                ELSE format(E'SELECT randflake_migrate.hand_over(%L, %s);\n', r.rolname, (SELECT string_agg(quote_literal(n), ', ') FROM unnest($2) AS n)) END
    FROM pg_roles AS r WHERE r.oid = $1
$$;

-- Returns the owner of an object, or of the table to which the object belongs.
CREATE FUNCTION randflake_migrate.owner_of(class oid, object oid) RETURNS oid
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
    SELECT coalesce((SELECT p.proowner FROM pg_proc AS p WHERE $1 = 'pg_proc'::regclass AND p.oid = $2),
        (SELECT c.relowner FROM pg_class AS c WHERE c.oid = (
            SELECT $2 WHERE $1 = 'pg_class'::regclass
            UNION ALL SELECT k.conrelid FROM pg_constraint AS k WHERE $1 = 'pg_constraint'::regclass AND k.oid = $2
            UNION ALL SELECT t.tgrelid FROM pg_trigger AS t WHERE $1 = 'pg_trigger'::regclass AND t.oid = $2
            UNION ALL SELECT r.ev_class FROM pg_rewrite AS r WHERE $1 = 'pg_rewrite'::regclass AND r.oid = $2
            UNION ALL SELECT p.polrelid FROM pg_policy AS p WHERE $1 = 'pg_policy'::regclass AND p.oid = $2
            UNION ALL SELECT d.adrelid FROM pg_attrdef AS d WHERE $1 = 'pg_attrdef'::regclass AND d.oid = $2
            UNION ALL SELECT s.stxrelid FROM pg_statistic_ext AS s WHERE $1 = 'pg_statistic_ext'::regclass AND s.oid = $2)), quote_ident(current_user)::regrole)
$$;

-- Raises an error if the current role is not `mover`, or if a table has another name or owner.
CREATE FUNCTION randflake_migrate.same(mover name, tables oid[], names text[], owners name[]) RETURNS void
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    other text;
BEGIN
    IF current_user <> $1 THEN
        RAISE insufficient_privilege USING MESSAGE = format('these statements are for role "%s"', $1),
            HINT = 'Run them as that role, or print them as this one.';
    END IF;
    SELECT min(x.name) INTO other FROM unnest($2, $3, $4) AS x (rel, name, owner) LEFT JOIN pg_class AS c ON c.oid = x.rel
    WHERE (c.oid::regclass::text, pg_get_userbyid(c.relowner)) IS DISTINCT FROM (x.name, x.owner);
    IF other IS NOT NULL THEN
        RAISE object_not_in_prerequisite_state USING MESSAGE = format('table %s is not the one that these statements are for', other),
            HINT = 'It has another name or owner now, or is gone. Give it back what it had.';
    END IF;
END
$$;

CREATE FUNCTION randflake_migrate.same_tables(rels regclass[]) RETURNS text
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
    SELECT format('SELECT randflake_migrate.same(%L, %L, %L, %L);', current_user, array_agg(c.oid), array_agg(c.oid::regclass::text), array_agg(r.rolname))
    FROM pg_class AS c JOIN pg_roles AS r ON r.oid = c.relowner WHERE c.oid = ANY ($1)
$$;

-- Each key has a table and a function that map old numbers to new ones. Returns their common name.
CREATE FUNCTION randflake_migrate.map(rel regclass, key name) RETURNS name
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
    SELECT CASE WHEN octet_length(n) < 64 THEN n ELSE format('%s.%s', $1::oid, (SELECT a.attnum FROM pg_attribute AS a
        WHERE a.attrelid = $1 AND a.attname = $2)) END::name
    FROM concat($1, '.', quote_ident($2)) AS n
$$;

-- Returns a name in snake case: orderID becomes order_id.
CREATE FUNCTION randflake_migrate.plain(name name) RETURNS text
LANGUAGE sql IMMUTABLE SET search_path = pg_catalog, pg_temp AS $$ SELECT lower(regexp_replace($1, '([a-z0-9])([A-Z])', '\1_\2', 'g')) $$;

-- --- dependent objects --------------------------------------------------------------------------

-- Returns what directly depends on an object or a column. Instead of a view's rule, returns the
-- view. For a column, omits those dependents of the table's row type that are not columns.
CREATE FUNCTION randflake_migrate.dependents(INOUT class oid, INOUT object oid, INOUT subid integer)
RETURNS SETOF record LANGUAGE sql STABLE ROWS 10 SET search_path = pg_catalog, pg_temp AS $$
    SELECT DISTINCT f.class, f.object, f.subid
    FROM (SELECT $1, $2, $3
          UNION ALL SELECT 'pg_type'::regclass, y.oid, 0 FROM pg_type AS y
          WHERE $1 = 'pg_class'::regclass AND y.typrelid = $2 AND $2 <> 0
          UNION ALL SELECT 'pg_type'::regclass, y.typarray, 0 FROM pg_type AS y
          WHERE $1 = 'pg_class'::regclass AND y.typrelid = $2 AND y.typarray <> 0) AS o (class, object, subid)
    JOIN pg_depend AS d ON d.refclassid = o.class AND d.refobjid = o.object AND (o.subid = 0 OR d.refobjsubid = o.subid)
    LEFT JOIN pg_rewrite AS r ON d.classid = 'pg_rewrite'::regclass AND r.oid = d.objid AND r.rulename = '_RETURN'
    LEFT JOIN pg_class AS c ON d.classid = 'pg_class'::regclass AND c.oid = d.objid,
    LATERAL (SELECT CASE WHEN r.oid IS NULL THEN d.classid ELSE 'pg_class'::regclass END, coalesce(r.ev_class, d.objid),
                    CASE WHEN r.oid IS NULL THEN d.objsubid ELSE 0 END) AS f (class, object, subid)
    WHERE (f.class, f.object) <> ($1, $2) AND c.relkind IS DISTINCT FROM 't' AND f.class <> 'pg_type'::regclass
      AND (o.class = $1 OR $3 = 0 OR c.relkind IN ('r', 'p', 'm') AND f.subid > 0)
      AND NOT EXISTS (SELECT FROM pg_proc AS p WHERE f.class = 'pg_proc'::regclass AND p.oid = f.object
                      AND p.pronamespace = 'randflake_migrate'::regnamespace)
      AND NOT EXISTS (SELECT FROM pg_constraint AS k WHERE f.class = 'pg_constraint'::regclass AND k.oid = f.object
                      AND k.conparentid <> 0)
      AND NOT EXISTS (SELECT FROM pg_trigger AS t WHERE f.class = 'pg_trigger'::regclass AND t.oid = f.object
                      AND (t.tgisinternal OR t.tgparentid <> 0))
$$;

-- Returns the given columns, and the columns that inherit from them.
CREATE FUNCTION randflake_migrate.places(rels oid[], atts smallint[], OUT rel oid, OUT att smallint)
RETURNS SETOF record LANGUAGE sql STABLE ROWS 100 SET search_path = pg_catalog, pg_temp AS $$
    WITH RECURSIVE place (rel, att) AS (
        SELECT p.rel, p.att FROM unnest($1, $2) AS p (rel, att)
      UNION
        SELECT c.attrelid, c.attnum
        FROM place AS p JOIN pg_attribute AS a ON a.attrelid = p.rel AND a.attnum = p.att
        JOIN pg_inherits AS i ON i.inhparent = p.rel
        JOIN pg_attribute AS c ON c.attrelid = i.inhrelid AND c.attname = a.attname AND NOT c.attisdropped
    ) SELECT p.rel, p.att FROM place AS p
$$;

-- Returns a table and all its partitions. Only tables without partitions (`leaf`) hold rows.
CREATE FUNCTION randflake_migrate.tree(rel oid, OUT rel oid, OUT leaf boolean) RETURNS SETOF record
LANGUAGE sql STABLE ROWS 2 SET search_path = pg_catalog, pg_temp AS $$
    SELECT t.relid::oid, t.isleaf FROM pg_partition_tree($1) AS t
    UNION ALL SELECT $1, true WHERE NOT EXISTS (SELECT FROM pg_partition_tree($1))
$$;

-- Returns an object's expressions as PostgreSQL stores them, but leaves out implicit casts. The
-- word KEY replaces each given column ("table.number"), OTHER replaces any other column, and CONST
-- replaces any constant. Each UNION gets a number, which the result columns of its branches also
-- get: "{SETOPERATIONSTMT/1", ":resno 3/1".
CREATE FUNCTION randflake_migrate.tree(class oid, object oid, keys text[]) RETURNS text
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    tree text;
    token text;
    v text[];
    nodes text[] := '{}';     -- open ones
    queries integer[] := '{0}';  -- of these; their numbers; the count of relations before each
    numbers integer[] := '{0}';
    before integer[] := '{0}';
    last integer := 0;
    relations oid[];             -- in the range tables of these queries
    result text[] := '{}';
BEGIN
    SELECT x.tree, ARRAY[x.rel, x.rel] INTO tree, relations FROM (
        SELECT c.conbin::text, c.conrelid FROM pg_constraint AS c WHERE $1 = 'pg_constraint'::regclass AND c.oid = $2
      UNION ALL SELECT concat(i.indexprs, i.indpred), i.indrelid FROM pg_index AS i WHERE $1 = 'pg_class'::regclass AND i.indexrelid = $2
      UNION ALL SELECT concat(r.ev_qual, r.ev_action), r.ev_class FROM pg_rewrite AS r WHERE $1 = 'pg_rewrite'::regclass AND r.oid = $2
                OR $1 = 'pg_class'::regclass AND r.ev_class = $2 AND r.rulename = '_RETURN'
      UNION ALL SELECT concat(p.polqual, p.polwithcheck), p.polrelid FROM pg_policy AS p WHERE $1 = 'pg_policy'::regclass AND p.oid = $2
      UNION ALL SELECT t.tgqual::text, t.tgrelid FROM pg_trigger AS t WHERE $1 = 'pg_trigger'::regclass AND t.oid = $2
      UNION ALL SELECT p.prosqlbody::text, 0 FROM pg_proc AS p WHERE $1 = 'pg_proc'::regclass AND p.oid = $2
      UNION ALL SELECT r.prqual::text, r.prrelid FROM pg_publication_rel AS r WHERE $1 = 'pg_publication_rel'::regclass AND r.oid = $2
      UNION ALL SELECT s.stxexprs::text, s.stxrelid FROM pg_statistic_ext AS s WHERE $1 = 'pg_statistic_ext'::regclass AND s.oid = $2
    ) AS x (tree, rel);
    FOR token IN SELECT m[1] FROM regexp_matches(tree, '(\{VAR [^{}]*\}|\{\w*|\}|:relid \d+|(?:[^{}:\\]|\\.|:(?!relid ))+)', 'g') AS m LOOP
        IF token LIKE '{VAR %' THEN
            v := regexp_match(token, ':varno (\d+) :varattno (-?\d+) .*:varlevelsup (\d+)');
            v[1] := relations[before[cardinality(before) - v[3]::integer] + v[1]::integer];
            token := CASE WHEN v[1] || '.' || v[2] = ANY ($3) THEN 'KEY'
                WHEN EXISTS (SELECT FROM pg_class AS c WHERE c.oid = v[1]::oid AND c.relkind IN ('r', 'p')) THEN 'OTHER' ELSE token END;
        ELSIF token LIKE '{%' THEN
            nodes := nodes || token;
            IF token = '{QUERY' THEN
                last := last + 1;
                queries := queries || cardinality(nodes);
                numbers := numbers || last;
                before := before || cardinality(relations);
            ELSIF token = '{RANGETBLENTRY' THEN
                relations := relations || 0::oid;
            ELSIF token = '{SETOPERATIONSTMT' THEN
                token := token || '/' || numbers[cardinality(numbers)];
            END IF;
        ELSIF token LIKE ':relid %' AND nodes[cardinality(nodes)] = '{RANGETBLENTRY' THEN
            relations[cardinality(relations)] := substr(token, 8)::oid;
        ELSIF queries[cardinality(queries)] = cardinality(nodes) - 1 AND token LIKE ' :resno %' THEN
            token := regexp_replace(token, '(\d+)', '\1/' || numbers[cardinality(numbers) - 1]);
        ELSIF token = '}' THEN
            IF queries[cardinality(queries)] = cardinality(nodes) THEN
                relations := relations[:before[cardinality(before)]];
                queries := trim_array(queries, 1);
                numbers := trim_array(numbers, 1);
                before := trim_array(before, 1);
            END IF;
            nodes := trim_array(nodes, 1);
        END IF;
        result := result || token;
    END LOOP;
    RETURN regexp_replace(regexp_replace(regexp_replace(regexp_replace(array_to_string(result, ''), '\{CONST [^{}]*\}', 'CONST', 'g'),
        '\{FUNCEXPR [^{}]*:args \(CONST\)[^{}]*\}', 'CONST', 'g'), '\{ARRAY(?:EXPR)? [^{}]*:elements \(CONST[^{}]*\}', 'CONST', 'g'),
        '\{FUNCEXPR [^{}]*:funcformat 2 [^{}]*:args \((KEY|OTHER)\)[^{}]*\}', '\1', 'g');
END
$$;

-- Returns the operations that this expression applies to a key, but that the type does not support.
CREATE FUNCTION randflake_migrate.lacking(tree text, type regtype) RETURNS text
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
    SELECT string_agg(DISTINCT x.what, ', ') FROM (
        SELECT format('%s with %s', o.oprname, format_type(CASE r[2] WHEN 'KEY' THEN o.oprright ELSE o.oprleft END, NULL))
        FROM regexp_matches($1, ':opno (\d+) [^{}]*:args \((KEY|CONST|OTHER|\{[^{}]*\}) ?(KEY|CONST|OTHER)?', 'g') AS r JOIN pg_operator AS o ON o.oid = r[1]::oid
        WHERE 'KEY' IN (r[2], r[3]) AND ('CONST' IN (r[2], r[3]) OR 'OTHER' IN (r[2], r[3])
            OR NOT EXISTS (SELECT FROM pg_operator AS n WHERE n.oprname = o.oprname AND n.oprright = $2 AND n.oprresult = 'bool'::regtype))
      UNION ALL
        SELECT p.oid::regprocedure::text
        FROM regexp_matches($1, '\{(?:FUNCEXPR :funcid|AGGREF :aggfnoid) (\d+) [^{}]*:args \((?:[^{}]*|\{TARGETENTRY :expr )KEY', 'g') AS r
        JOIN pg_proc AS p ON p.oid = r[1]::oid
        WHERE p.proargtypes::oid[] && '{int2,int4,int8,numeric,float8}'::regtype[]::oid[] AND p.proname <> 'int8'
          AND NOT EXISTS (SELECT FROM pg_proc AS n WHERE n.proname = p.proname AND $2 = ANY (n.proargtypes::oid[]))
      UNION ALL
        SELECT lower(r[1]) || ' with a number'
        FROM regexp_matches($1, '\{(COALESCE|MINMAX)(?:EXPR)? [^{}]*:args \([^{}]*(?:KEY CONST|CONST KEY)', 'g') AS r
      UNION ALL
        SELECT 'UNION with what is no key' FROM regexp_matches($1, '\{SETOPERATIONSTMT/(\d+)', 'g') AS s WHERE EXISTS (
            SELECT FROM regexp_matches($1, '(KEY)? :resno (\d+)/(\d+)', 'g') AS r WHERE r[3] = s[1] GROUP BY r[2] HAVING count(r[1]) BETWEEN 1 AND count(*) - 1)
    ) AS x (what)
$$;

-- Returns, in order of creation, all objects that depend on these columns or on columns that
-- inherit from them. `how` says what a move does with the object.
CREATE FUNCTION randflake_migrate.hanging(
    rels oid[], atts smallint[],
    OUT class oid, OUT object oid, OUT subid integer, OUT level integer,
    OUT how text, OUT kind text, OUT identity text, OUT note text, OUT remedy text
) RETURNS SETOF record LANGUAGE sql STABLE ROWS 100 SET search_path = pg_catalog, pg_temp SET jit = off AS $$
    WITH RECURSIVE hang (class, object, subid, level) AS (
        SELECT d.class, d.object, d.subid, 1
        FROM randflake_migrate.places($1, $2) AS p, randflake_migrate.dependents('pg_class'::regclass, p.rel, p.att) AS d
      UNION
        SELECT d.class, d.object, d.subid, h.level + 1
        FROM hang AS h, randflake_migrate.dependents(h.class, h.object, 0) AS d
        WHERE (h.class = 'pg_proc'::regclass OR EXISTS (SELECT FROM pg_class AS c WHERE h.class = 'pg_class'::regclass
               AND c.oid = h.object AND c.relkind IN ('v', 'm'))) AND h.level < 64
    )
    SELECT h.class, h.object, h.subid, max(h.level), x.how, i.type, i.identity, x.note, x.remedy
    FROM hang AS h CROSS JOIN LATERAL pg_identify_object(h.class, h.object, h.subid) AS i
    LEFT JOIN pg_class AS c ON h.class = 'pg_class'::regclass AND c.oid = h.object
    LEFT JOIN pg_index AS n ON n.indexrelid = c.oid
    LEFT JOIN pg_class AS t ON t.oid = n.indrelid
    LEFT JOIN pg_constraint AS k ON h.class = 'pg_constraint'::regclass AND k.oid = h.object
    LEFT JOIN pg_attrdef AS d ON h.class = 'pg_attrdef'::regclass AND d.oid = h.object
    LEFT JOIN pg_class AS dc ON dc.oid = d.adrelid
    LEFT JOIN pg_attribute AS a ON a.attrelid = d.adrelid AND a.attnum = d.adnum,
    LATERAL (SELECT CASE
            WHEN EXISTS (SELECT FROM pg_depend AS e WHERE e.classid = h.class AND e.objid = h.object AND e.deptype = 'e')
                THEN ARRAY['blocker', 'belongs to an extension', NULL]
            WHEN i.type IN ('view', 'materialized view', 'rule', 'trigger', 'policy', 'function', 'procedure',
                            'publication relation') OR k.contype = 'f' OR t.relkind = 'm' OR dc.relkind = 'v'
                THEN ARRAY['made again', NULL, NULL]
            WHEN k.contype = 'c' THEN ARRAY['kept', pg_get_constraintdef(k.oid) || ': must be true of new keys, half of which '
                || 'are negative unless they have 53 bits', NULL]
            WHEN h.class = 'pg_constraint'::regclass OR c.relkind IN ('i', 'I') OR i.type = 'statistics object'
                THEN ARRAY['kept', NULL, NULL]
            WHEN c.relkind = 'S' THEN ARRAY['dropped', (SELECT 'with its grants to ' || string_agg(DISTINCT g.grantee::regrole::text, ', ')
                FROM aclexplode(c.relacl) AS g WHERE g.grantee NOT IN (0, c.relowner)), NULL]
            WHEN a.attgenerated <> '' THEN ARRAY['blocker', 'a generated column is computed from it: ' || pg_get_expr(d.adbin, d.adrelid),
                format(E'ALTER TABLE %s DROP COLUMN %I;  -- and afterwards:\n', d.adrelid::regclass, a.attname) || randflake_migrate.by(dc.relowner,
                    format('ALTER TABLE %s ADD COLUMN %I %s GENERATED ALWAYS AS (%s) %s;', d.adrelid::regclass, a.attname, format_type(a.atttypid, a.atttypmod),
                        pg_get_expr(d.adbin, d.adrelid), CASE a.attgenerated WHEN 'v' THEN 'VIRTUAL' ELSE 'STORED' END))]
            WHEN d.oid IS NOT NULL THEN ARRAY['dropped', NULL, NULL]
            WHEN i.type = 'table column' THEN ARRAY['blocker',
                'has the row type of the table or view, whose columns cannot change their types meanwhile', NULL]
            ELSE ARRAY['blocker', 'depends on the column in a way that this script does not know', NULL] END) AS y (y),
    LATERAL (SELECT y[1], y[2], y[3]) AS x (how, note, remedy)
    GROUP BY h.class, h.object, h.subid, x.how, i.type, i.identity, x.note, x.remedy
    ORDER BY max(h.level), h.class, h.object
$$;

CREATE FUNCTION randflake_migrate.comments(class oid, object oid) RETURNS SETOF text
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
    SELECT format('COMMENT ON %s %s IS %L;',
        CASE i.type WHEN 'statistics object' THEN 'STATISTICS'
             ELSE upper(regexp_replace(i.type, '^(table|view|materialized view) (column|constraint)$', '\2')) END, i.identity, d.description)
    FROM pg_description AS d, pg_identify_object(d.classoid, d.objoid, d.objsubid) AS i
    WHERE d.classoid = $1 AND d.objoid = $2 ORDER BY d.objsubid
$$;

-- Returns statements that set the owner and grants of a new view or function.
CREATE FUNCTION randflake_migrate.grants(what text, kind text, owner oid, acl aclitem[]) RETURNS SETOF text
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
    SELECT format('ALTER %s %s OWNER TO %s;', upper($2), $1, $3::regrole)
  UNION ALL
    SELECT format('REVOKE ALL ON %s %s FROM %s;', k.kind, $1, (SELECT string_agg(DISTINCT r.name, ', ') FROM (
        SELECT coalesce(nullif(g.grantee, 0)::regrole::text, 'PUBLIC') FROM pg_default_acl AS d, aclexplode(d.defaclacl) AS g
        UNION SELECT 'PUBLIC' UNION SELECT $3::regrole::text) AS r (name)))
    FROM (SELECT CASE WHEN $2 LIKE '%view' THEN 'TABLE' ELSE 'ROUTINE' END) AS k (kind)
    WHERE $4 IS NOT NULL OR EXISTS (SELECT FROM pg_default_acl)
  UNION ALL
    SELECT format('GRANT %s ON %s %s TO %s%s;', g.privilege_type, CASE WHEN $2 LIKE '%view' THEN 'TABLE' ELSE 'ROUTINE' END, $1,
        coalesce(nullif(g.grantee, 0)::regrole::text, 'PUBLIC'), CASE WHEN g.is_grantable THEN ' WITH GRANT OPTION' ELSE '' END)
    FROM aclexplode(coalesce($4, acldefault(CASE WHEN $2 LIKE '%view' THEN 'r' ELSE 'f' END::"char", $3))) AS g
    WHERE $4 IS NOT NULL OR EXISTS (SELECT FROM pg_default_acl)
$$;

-- Returns the grants on one column of a relation, or on each of its columns.
CREATE FUNCTION randflake_migrate.column_grants(rel oid, att smallint DEFAULT NULL) RETURNS SETOF text
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
    SELECT format('GRANT %s (%I) ON TABLE %s TO %s%s;', g.privilege_type, a.attname, $1::regclass,
        coalesce(nullif(g.grantee, 0)::regrole::text, 'PUBLIC'), CASE WHEN g.is_grantable THEN ' WITH GRANT OPTION' ELSE '' END)
    FROM pg_attribute AS a, aclexplode(a.attacl) AS g
    WHERE a.attrelid = $1 AND (a.attnum = $2 OR $2 IS NULL) AND NOT a.attisdropped
$$;

-- Returns a column's statistics settings in the form that SET takes. Ignores other options.
CREATE FUNCTION randflake_migrate.statistics(rel oid, att smallint) RETURNS SETOF text
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
    SELECT ' STATISTICS ' || a.attstattarget FROM pg_attribute AS a WHERE a.attrelid = $1 AND a.attnum = $2 AND a.attstattarget >= 0
  UNION ALL
    SELECT ' (' || string_agg(o, ', ') || ')' FROM pg_attribute AS a, unnest(a.attoptions) AS o
    WHERE a.attrelid = $1 AND a.attnum = $2 AND o LIKE 'n\_distinct%' HAVING count(*) > 0
$$;

-- Returns the statements that mark an index as its table's cluster index or replica identity.
CREATE FUNCTION randflake_migrate.marks(index oid) RETURNS text
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
    SELECT concat(CASE WHEN i.indisreplident THEN format(E'\nALTER TABLE %s REPLICA IDENTITY USING INDEX %I;', i.indrelid::regclass, c.relname) END,
        CASE WHEN i.indisclustered THEN format(E'\nALTER TABLE %s CLUSTER ON %I;', i.indrelid::regclass, c.relname) END)
    FROM pg_index AS i JOIN pg_class AS c ON c.oid = i.indexrelid WHERE i.indexrelid = $1
$$;

-- ALTER COLUMN TYPE renames the index of `rel` that belongs to `parent`. Restores the former name.
CREATE FUNCTION randflake_migrate.rename_index(parent regclass, rel regclass, name name) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    index regclass := (SELECT i.indexrelid FROM pg_inherits AS h JOIN pg_index AS i ON i.indexrelid = h.inhrelid
                       JOIN pg_class AS c ON c.oid = i.indexrelid AND c.relname <> $3 WHERE h.inhparent = $1 AND i.indrelid = $2);
BEGIN
    IF index IS NOT NULL THEN
        EXECUTE format('ALTER INDEX %s RENAME TO %I', index, $3);
    END IF;
END
$$;

-- Returns the statement that drops an object that the move later creates again.
CREATE FUNCTION randflake_migrate.removal(class oid, object oid) RETURNS text
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
    SELECT CASE i.type
        WHEN 'table constraint' THEN (SELECT format('ALTER TABLE %s DROP CONSTRAINT %I;', c.conrelid::regclass, c.conname)
                                      FROM pg_constraint AS c WHERE c.oid = $2)
        WHEN 'default value' THEN (SELECT format('ALTER VIEW %s ALTER COLUMN %I DROP DEFAULT;', a.attrelid::regclass, a.attname)
            FROM pg_attrdef AS d JOIN pg_attribute AS a ON a.attrelid = d.adrelid AND a.attnum = d.adnum WHERE d.oid = $2)
        WHEN 'publication relation' THEN (SELECT format('ALTER PUBLICATION %I DROP TABLE %s;', p.pubname, r.prrelid::regclass)
            FROM pg_publication_rel AS r JOIN pg_publication AS p ON p.oid = r.prpubid WHERE r.oid = $2)
        WHEN 'statistics object' THEN format('DROP STATISTICS %s;', i.identity)
        ELSE format('DROP %s %s;', upper(i.type), i.identity) END
    FROM pg_identify_object($1, $2, 0) AS i
$$;

-- Returns the statements that recreate an object, with its owner, grants, comments and state. They
-- omit an operator's schema if the search_path has it, so that PostgreSQL finds the new operator.
CREATE FUNCTION randflake_migrate.definition(class oid, object oid) RETURNS SETOF text
LANGUAGE sql STABLE AS $$
    SELECT format('ALTER TABLE %s ADD CONSTRAINT %I %s;', c.conrelid::regclass, c.conname, pg_get_constraintdef(c.oid))
    FROM pg_constraint AS c WHERE $1 = 'pg_constraint'::regclass AND c.oid = $2
  UNION ALL
    SELECT pg_get_indexdef(c.oid) || ';' FROM pg_class AS c WHERE $1 = 'pg_class'::regclass AND c.oid = $2 AND c.relkind = 'i'
  UNION ALL
    SELECT format(E'CREATE %s %s%s%s AS\n%s%s;', upper(i.type), i.identity,
        (SELECT format(' USING %I', m.amname) FROM pg_am AS m WHERE m.oid = c.relam),
        ' WITH (' || array_to_string(c.reloptions, ', ') || ')', rtrim(pg_get_viewdef(c.oid), ';'),
        CASE WHEN NOT c.relispopulated THEN ' WITH NO DATA' ELSE '' END)
    FROM pg_class AS c, pg_identify_object($1, $2, 0) AS i
    WHERE $1 = 'pg_class'::regclass AND c.oid = $2 AND c.relkind IN ('v', 'm')
  UNION ALL
    SELECT g.sql FROM pg_class AS c, pg_identify_object($1, $2, 0) AS i,
        LATERAL (SELECT randflake_migrate.grants(i.identity, i.type, c.relowner, c.relacl)
                 UNION ALL SELECT randflake_migrate.column_grants(c.oid)) AS g (sql)
    WHERE $1 = 'pg_class'::regclass AND c.oid = $2 AND c.relkind IN ('v', 'm')
  UNION ALL
    SELECT format('ALTER VIEW %s ALTER COLUMN %I SET DEFAULT %s;', a.attrelid::regclass, a.attname, pg_get_expr(d.adbin, d.adrelid))
    FROM pg_attrdef AS d JOIN pg_attribute AS a ON a.attrelid = d.adrelid AND a.attnum = d.adnum
    WHERE $1 = 'pg_attrdef'::regclass AND d.oid = $2
  UNION ALL
    SELECT rtrim(pg_get_ruledef(r.oid), ';') || ';' || coalesce((
        SELECT format(E'\nALTER TABLE %s %s RULE %I;', r.ev_class::regclass, s.state, r.rulename)
        FROM (VALUES ('D', 'DISABLE'), ('R', 'ENABLE REPLICA'), ('A', 'ENABLE ALWAYS')) AS s (letter, state)
        WHERE s.letter = r.ev_enabled::text), '')
    FROM pg_rewrite AS r WHERE $1 = 'pg_rewrite'::regclass AND r.oid = $2
  UNION ALL
    SELECT pg_get_triggerdef(t.oid) || ';' || coalesce((
        SELECT format(E'\nALTER TABLE %s %s TRIGGER %I;', t.tgrelid::regclass, s.state, t.tgname)
        FROM (VALUES ('D', 'DISABLE'), ('R', 'ENABLE REPLICA'), ('A', 'ENABLE ALWAYS')) AS s (letter, state)
        WHERE s.letter = t.tgenabled::text), '')
    FROM pg_trigger AS t WHERE $1 = 'pg_trigger'::regclass AND t.oid = $2
  UNION ALL
    SELECT format('CREATE POLICY %I ON %s AS %s FOR %s TO %s%s%s;', p.polname, p.polrelid::regclass,
        CASE WHEN p.polpermissive THEN 'PERMISSIVE' ELSE 'RESTRICTIVE' END,
        CASE p.polcmd WHEN 'r' THEN 'SELECT' WHEN 'a' THEN 'INSERT' WHEN 'w' THEN 'UPDATE' WHEN 'd' THEN 'DELETE' ELSE 'ALL' END,
        (SELECT string_agg(coalesce(nullif(r.role, 0)::regrole::text, 'PUBLIC'), ', ') FROM unnest(p.polroles) AS r (role)),
        ' USING (' || pg_get_expr(p.polqual, p.polrelid) || ')', ' WITH CHECK (' || pg_get_expr(p.polwithcheck, p.polrelid) || ')')
    FROM pg_policy AS p WHERE $1 = 'pg_policy'::regclass AND p.oid = $2
  UNION ALL
    SELECT rtrim(pg_get_functiondef(p.oid), E'\n') || ';' FROM pg_proc AS p WHERE $1 = 'pg_proc'::regclass AND p.oid = $2
  UNION ALL
    SELECT randflake_migrate.grants(i.identity, i.type, p.proowner, p.proacl)
    FROM pg_proc AS p, pg_identify_object($1, $2, 0) AS i WHERE $1 = 'pg_proc'::regclass AND p.oid = $2
  UNION ALL
    SELECT format('ALTER PUBLICATION %I ADD TABLE %s%s%s;', p.pubname, r.prrelid::regclass,
        (SELECT ' (' || string_agg(quote_ident(a.attname), ', ' ORDER BY n.ordinality) || ')'
         FROM unnest(r.prattrs::int2[]) WITH ORDINALITY AS n (att) JOIN pg_attribute AS a ON a.attrelid = r.prrelid AND a.attnum = n.att),
        ' WHERE (' || pg_get_expr(r.prqual, r.prrelid) || ')')
    FROM pg_publication_rel AS r JOIN pg_publication AS p ON p.oid = r.prpubid
    WHERE $1 = 'pg_publication_rel'::regclass AND r.oid = $2
  UNION ALL
    SELECT pg_get_statisticsobjdef(s.oid) || ';' || E'\nALTER STATISTICS ' || i.identity || ' OWNER TO ' || s.stxowner::regrole || ';'
        || coalesce(E'\nALTER STATISTICS ' || i.identity || ' SET STATISTICS ' || nullif(s.stxstattarget, -1) || ';', '')
    FROM pg_statistic_ext AS s, pg_identify_object($1, $2, 0) AS i WHERE $1 = 'pg_statistic_ext'::regclass AND s.oid = $2
  UNION ALL
    SELECT randflake_migrate.comments($1, $2)
$$;

-- --- the plan -----------------------------------------------------------------------------------

-- Each row is a move that start() began.
CREATE TABLE randflake_migrate.move (
    id       integer PRIMARY KEY,
    grp      text NOT NULL,
    mover    name NOT NULL,
    tables   oid[] NOT NULL,  -- and their names and owners in the steps
    names    text[] NOT NULL,
    owners   name[] NOT NULL,
    target   text NOT NULL,
    rows     text NOT NULL,
    state    text NOT NULL DEFAULT 'moving' CHECK (state IN ('moving', 'swapped', 'moved', 'going back', 'undone')),
    pages    integer NOT NULL DEFAULT 64 CHECK (pages > 0),  -- that fill() fills in one transaction
    pause    interval NOT NULL DEFAULT '0'                   -- after each such transaction
);

CREATE FUNCTION randflake_migrate.next_move() RETURNS integer
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$ SELECT coalesce(max(m.id), 0) + 1 FROM randflake_migrate.move AS m $$;

CREATE FUNCTION randflake_migrate.beside(prefix text, name name, att smallint) RETURNS name
LANGUAGE sql IMMUTABLE SET search_path = pg_catalog, pg_temp AS $$ SELECT ($1 || CASE WHEN octet_length($1 || $2) < 64 THEN $2::text ELSE $3::text END)::name $$;

-- Returns the sequence of an identity column, or of a column whose default is nextval().
CREATE FUNCTION randflake_migrate.sequence_of(rel regclass, att smallint) RETURNS oid
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
    SELECT d.objid FROM pg_depend AS d WHERE d.classid = 'pg_class'::regclass AND d.refclassid = 'pg_class'::regclass
        AND d.refobjid = $1 AND d.refobjsubid = $2 AND d.deptype = 'i'
  UNION ALL
    SELECT s.oid FROM pg_attrdef AS f JOIN pg_depend AS d ON d.classid = 'pg_attrdef'::regclass AND d.objid = f.oid AND d.refclassid = 'pg_class'::regclass
    JOIN pg_class AS s ON s.oid = d.refobjid AND s.relkind = 'S'
    WHERE f.adrelid = $1 AND f.adnum = $2 AND regexp_replace(pg_get_expr(f.adbin, f.adrelid), '^\((.*)\)::(integer|smallint)$', '\1')
        = format('nextval(''%s''::regclass)', replace(s.oid::regclass::text, '''', ''''''))
$$;

-- Returns blockers, for example an object whose name a step needs, or an owner without a privilege.
CREATE FUNCTION randflake_migrate.names_and_owners(target text, rows text)
RETURNS TABLE (grp regclass, object text, note text, remedy text)
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp SET jit = off AS $$
    WITH m AS MATERIALIZED (
        SELECT v.*, c.relowner AS owner, c.relnamespace AS schema, v.rel || '.' || quote_ident(v.name) AS shown
        FROM randflake_migrate.moving($1, $2) AS v JOIN pg_class AS c ON c.oid = v.rel
    ), t AS (
        SELECT DISTINCT m.grp, c.oid::regclass AS rel, c.relowner AS owner, c.relnamespace AS schema
        FROM m, randflake_migrate.tree(m.rel) AS x JOIN pg_class AS c ON c.oid = x.rel
    ), hang AS MATERIALIZED (
        SELECT g.grp, h.*, randflake_migrate.owner_of(h.class, h.object) AS owner
        FROM (SELECT m.grp, array_agg(m.rel::oid) AS rels, array_agg(m.att) AS atts FROM m WHERE m.changes GROUP BY m.grp) AS g,
        randflake_migrate.hanging(g.rels, g.atts) AS h
    ), other AS (  -- owners as whom the move acts
        SELECT t.grp, t.owner FROM t WHERE t.owner <> quote_ident(current_user)::regrole
        UNION SELECT h.grp, h.owner FROM hang AS h WHERE h.how = 'made again' AND h.owner <> quote_ident(current_user)::regrole
    ), generator AS (
        SELECT p.oid, p.pronamespace FROM randflake_migrate.target($1) AS g JOIN pg_proc AS p ON p.oid::regproc || '()' = g.generator
    ), next AS (
        SELECT format('^(zzz_)?randflake_%s_', randflake_migrate.next_move()) AS pattern
    )
    SELECT m.grp, m.rel || '.' || quote_ident(a.attname), 'online: has a name that the steps need',
           format('transaction(), or ALTER TABLE %s RENAME COLUMN %I TO %I;', m.rel, a.attname, randflake_migrate.beside('its_', a.attname, a.attnum))
    FROM m JOIN pg_attribute AS a ON a.attrelid = m.rel AND a.attnum > 0 AND NOT a.attisdropped
        AND a.attname IN (randflake_migrate.beside('new_', m.name, m.att), randflake_migrate.beside('old_', m.name, m.att))
  UNION ALL
    SELECT DISTINCT t.grp, n.object, 'online: has a name that the steps need', n.remedy
    FROM t, next, LATERAL (
        SELECT format('constraint %I on %s', k.conname, t.rel), format('ALTER TABLE %s RENAME CONSTRAINT %I TO %I;', t.rel, k.conname, 'its_' || k.conname)
        FROM pg_constraint AS k WHERE k.conrelid = t.rel AND k.conname ~ next.pattern
      UNION ALL SELECT format('trigger %I on %s', g.tgname, t.rel), format('ALTER TRIGGER %I ON %s RENAME TO %I;', g.tgname, t.rel, 'its_' || g.tgname)
        FROM pg_trigger AS g WHERE g.tgrelid = t.rel AND g.tgname ~ next.pattern
      UNION ALL SELECT format('relation %s', c.oid::regclass), format('ALTER TABLE %s RENAME TO %I;', c.oid::regclass, 'its_' || c.relname)
        FROM pg_class AS c WHERE c.relnamespace = t.schema AND c.relname ~ next.pattern) AS n (object, remedy)
  UNION ALL
    SELECT m.grp, m.shown, 'online: its default is more than nextval(), so that no number can be made apart from it',
           'transaction(), or a default that is nextval() alone'
    FROM m WHERE m.source IN ('identity', 'serial') AND m.changes AND randflake_migrate.sequence_of(m.rel, m.att) IS NULL
  UNION ALL
    SELECT m.grp, m.shown, 'online: is unique with other columns only, and what refers to it cannot tell its rows apart',
           format('CREATE UNIQUE INDEX CONCURRENTLY ON %s (%I);', m.rel, m.name)
    FROM m WHERE m.source <> 'reference' AND NOT m.keeps AND EXISTS (SELECT FROM m AS o WHERE o.source = 'reference' AND o.root = m.rel AND o.root_name = m.name)
      AND NOT EXISTS (SELECT FROM pg_index AS i WHERE i.indrelid = m.rel AND i.indisunique AND i.indimmediate AND i.indisvalid AND i.indpred IS NULL
                      AND i.indnkeyatts = 1 AND i.indkey[0] = m.att)
  UNION ALL
    SELECT o.grp, o.owner::regrole::text, 'owns tables, and this role cannot act in its name', format('GRANT %s TO %I WITH SET TRUE;', o.owner::regrole, current_user)
    FROM other AS o WHERE current_setting('server_version_num')::integer >= 160000
      AND NOT CASE WHEN current_setting('server_version_num')::integer >= 160000 THEN pg_has_role(o.owner, 'SET') END
  UNION ALL
    SELECT DISTINCT o.grp, o.owner::regrole::text, format('lacks %s on %s', x.privilege, x.what), format('GRANT %s ON %s TO %s;', x.privilege, x.what, o.owner::regrole)
    FROM other AS o, LATERAL (
        SELECT y.privilege, 'SCHEMA ' || y.schema::regnamespace FROM (
            SELECT 'USAGE', t.schema FROM t WHERE t.grp = o.grp AND t.owner = o.owner
          UNION SELECT 'USAGE', p.pronamespace FROM generator AS p
          UNION SELECT v.p, coalesce(c.relnamespace, f.pronamespace, s.stxnamespace) FROM hang AS h
            LEFT JOIN pg_class AS c ON h.class = 'pg_class'::regclass AND c.oid = h.object
            LEFT JOIN pg_proc AS f ON h.class = 'pg_proc'::regclass AND f.oid = h.object
            LEFT JOIN pg_statistic_ext AS s ON h.class = 'pg_statistic_ext'::regclass AND s.oid = h.object, (VALUES ('USAGE'), ('CREATE')) AS v (p)
            WHERE h.grp = o.grp AND h.owner = o.owner AND h.how = 'made again') AS y (privilege, schema)
        WHERE y.schema IS NOT NULL AND NOT has_schema_privilege(o.owner, y.schema, y.privilege)
      UNION SELECT 'EXECUTE', 'FUNCTION ' || p.oid::regprocedure FROM (
            SELECT g.oid FROM generator AS g UNION SELECT g.tgfoid FROM hang AS h JOIN pg_trigger AS g ON h.class = 'pg_trigger'::regclass AND g.oid = h.object
            WHERE h.grp = o.grp AND h.owner = o.owner) AS p WHERE NOT has_function_privilege(o.owner, p.oid, 'EXECUTE')
      UNION SELECT 'REFERENCES', k.confrelid::regclass::text FROM hang AS h
        JOIN pg_constraint AS k ON h.class = 'pg_constraint'::regclass AND k.oid = h.object AND k.contype = 'f', unnest(k.confkey) AS u (att)
        WHERE h.grp = o.grp AND h.owner = o.owner AND NOT has_column_privilege(o.owner, k.confrelid, u.att, 'REFERENCES')
    ) AS x (privilege, what)
  UNION ALL  -- input functions of types run while a statement is parsed, by the role that sends it
    SELECT h.grp, h.identity, 'online: uses the type ' || format_type(y.oid, NULL) || ', whose code would run as this role', 'transaction()'
    FROM hang AS h JOIN pg_depend AS d ON d.classid = 'pg_class'::regclass AND d.objid = h.object AND d.refclassid = 'pg_type'::regclass
    JOIN pg_type AS y ON y.oid = d.refobjid
    WHERE h.kind = 'index' AND h.how = 'kept' AND y.typowner NOT IN (10, quote_ident(current_user)::regrole)
  UNION ALL
    SELECT DISTINCT t.grp, format('trigger %I on %s', g.tgname, t.rel), 'online: runs for each row that is filled, and would wait for the end of the transaction',
           format('ALTER TABLE %s ENABLE TRIGGER %I;', t.rel, g.tgname)
    FROM t JOIN pg_trigger AS g ON g.tgrelid = t.rel
    WHERE t.owner <> quote_ident(current_user)::regrole AND NOT g.tgisinternal AND g.tgtype & 16 <> 0 AND g.tgparentid = 0 AND g.tgenabled IN ('A', 'R') AND g.tgdeferrable
$$;

-- Returns, in groups, all actions and requirements of a move. `what` is
--   moves        a key or a column that refers to one
--   kept, made again, dropped    a dependent object
--   blocker      prevents the move until the SQL in `remedy` has run ("online:" only for start())
--   look         may need a change that only its author can judge
--   application  what programs lose, and the line that mends it
CREATE FUNCTION randflake_migrate.entries(target text, rows text)
RETURNS TABLE (grp regclass, what text, object text, note text, remedy text)
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp SET jit = off AS $$
    WITH m AS MATERIALIZED (
        SELECT *, v.rel || '.' || quote_ident(v.name) AS shown FROM randflake_migrate.moving($1, $2) AS v
    ), hang AS MATERIALIZED (
        SELECT g.grp, h.* FROM (SELECT m.grp, array_agg(m.rel::oid) AS rels, array_agg(m.att) AS atts
                                FROM m WHERE m.changes GROUP BY m.grp) AS g,
        randflake_migrate.hanging(g.rels, g.atts) AS h
    ), t AS (
        SELECT DISTINCT m.grp, c.* FROM m, randflake_migrate.tree(m.rel) AS x JOIN pg_class AS c ON c.oid = x.rel
    ), place AS MATERIALIZED (
        SELECT p.* FROM (SELECT array_agg(m.rel::oid), array_agg(m.att) FROM m) AS a (rels, atts), randflake_migrate.places(a.rels, a.atts) AS p
    ), tree AS MATERIALIZED (  -- also dependents of keys whose default alone changes
        SELECT h.*, randflake_migrate.tree(h.class, h.object, k.keys) AS tree
        FROM (SELECT hang.*, true AS moves FROM hang UNION ALL
              SELECT g.grp, o.*, false FROM (SELECT m.grp, array_agg(m.rel::oid) AS rels, array_agg(m.att) AS atts
                                             FROM m WHERE NOT m.changes GROUP BY m.grp) AS g,
              randflake_migrate.hanging(g.rels, g.atts) AS o) AS h, (SELECT array_agg(p.rel || '.' || p.att) AS keys FROM place AS p) AS k
    ), key_name AS (  -- names of a reference: order_id, orders_id, order_ids, order_number, number, order
        SELECT m.*, e.name AS alias, e.name = s.stem AS bare
        FROM m JOIN pg_class AS c ON c.oid = m.rel, randflake_migrate.plain(c.relname) AS r, randflake_migrate.plain(m.name) AS k,
        LATERAL (SELECT r UNION SELECT regexp_replace(r, 's$', '') UNION SELECT regexp_replace(r, 'ies$', 'y')
                 UNION SELECT regexp_replace(r, '(s|x|z|ch|sh)es$', '\1')) AS s (stem),
        LATERAL (SELECT s.stem || x FROM unnest(ARRAY['', '_id', '_ids', '_' || k]) AS x UNION SELECT k WHERE k <> 'id') AS e (name)
        WHERE m.source <> 'reference'
    ), loose AS MATERIALIZED (  -- possible references without a foreign key
        SELECT k.oid AS rel, k.relnamespace, a.attname AS name, string_to_array(randflake_migrate.plain(a.attname), '_') AS words, e.oid AS type,
               b.typcategory = 'A' AS is_array, (SELECT o.attname FROM pg_attribute AS o WHERE o.attrelid = k.oid AND NOT o.attisdropped
                   AND o.attname IN (regexp_replace(a.attname, '_id$', '_type'), CASE a.attname WHEN 'object_id' THEN 'content_type_id' END)
                   AND o.attname <> a.attname LIMIT 1) AS kind
        FROM pg_attribute AS a JOIN pg_class AS k ON k.oid = a.attrelid AND k.relkind IN ('r', 'p') AND k.relpersistence <> 't'
        JOIN pg_type AS y ON y.oid = a.atttypid JOIN pg_type AS b ON b.oid = coalesce(nullif(y.typbasetype, 0), y.oid)
        JOIN pg_type AS e ON e.oid = CASE b.typcategory WHEN 'A' THEN b.typelem ELSE b.oid END
        WHERE a.attnum > 0 AND NOT a.attisdropped AND a.attinhcount = 0
          AND e.oid IN ('int2'::regtype, 'int4'::regtype, 'int8'::regtype, 'text'::regtype, 'varchar'::regtype, 'bpchar'::regtype)
          AND k.relnamespace::regnamespace::text !~ '^(pg_catalog|pg_toast|information_schema|randflake_migrate)$'
          AND NOT EXISTS (SELECT FROM m WHERE m.rel = k.oid AND m.att = a.attnum)
          AND NOT EXISTS (SELECT FROM pg_constraint AS f WHERE f.contype = 'f' AND f.conrelid = k.oid AND a.attnum = ANY (f.conkey))
          AND NOT EXISTS (SELECT FROM pg_depend AS d WHERE d.classid = 'pg_class'::regclass AND d.objid = k.oid AND d.deptype = 'e')
    ), named AS (
        SELECT DISTINCT ON (l.rel, l.name) l.*, n.grp, n.rel AS to_rel, n.name AS to_name, coalesce(n.keeps, $2 = 'new') AS keeps
        FROM loose AS l CROSS JOIN generate_subscripts(l.words, 1) AS i LEFT JOIN key_name AS n ON n.alias = array_to_string(l.words[i:], '_')
             AND (NOT n.bare OR i = 1 AND l.type NOT IN ('text'::regtype, 'varchar'::regtype, 'bpchar'::regtype))
        WHERE l.kind IS NULL AND (n.rel IS NOT NULL OR i > 1 AND l.words[i:] <@ '{id,ids}')
           OR l.kind IS NOT NULL AND n.rel IS NULL
        ORDER BY l.rel, l.name, n.rel IS NULL, i, (SELECT c.relnamespace FROM pg_class AS c WHERE c.oid = n.rel) <> l.relnamespace
    ), foreign_key AS (
        SELECT h.grp, h.identity, k.* FROM hang AS h JOIN pg_constraint AS k
        ON h.class = 'pg_constraint'::regclass AND k.oid = h.object AND k.contype = 'f'
    ), entry (grp, place, what, object, note, remedy) AS (
        SELECT m.grp, 1, 'moves', m.shown, format('%s, %s%s', m.source || CASE WHEN m.source = 'reference'
            THEN ' to ' || m.root || '.' || quote_ident(m.root_name) ELSE '' END,
            CASE WHEN m.type = m.to_type THEN m.type::text ELSE format('%s to %s', m.type, m.to_type) END,
            CASE WHEN m.keeps THEN ', values stay' ELSE ', new values' END), NULL
        FROM m
      UNION ALL
        SELECT h.grp, CASE h.how WHEN 'blocker' THEN 0 WHEN 'kept' THEN 2 WHEN 'made again' THEN 3 ELSE 4 END,
               h.how, h.kind || ' ' || h.identity, h.note, h.remedy FROM hang AS h
      UNION ALL  -- a key that stays bigint loses its default only
        SELECT m.grp, 4, 'dropped', 'sequence ' || s.name, NULL, NULL
        FROM m, pg_get_serial_sequence(m.rel::text, m.name) AS s (name)
        WHERE NOT m.changes AND m.source IN ('identity', 'serial') AND s.name IS NOT NULL
      UNION ALL
        SELECT b.grp, 0, 'blocker', b.object, b.note, b.remedy FROM (
            SELECT m.grp, m.shown, 'is the partition key: new keys belong to other partitions', 'copy the rows into a new table' AS remedy
            FROM m, randflake_migrate.places(ARRAY[m.rel::oid], ARRAY[m.att]) AS q JOIN pg_partitioned_table AS p ON p.partrelid = q.rel
            WHERE (m.changes OR p.partstrat <> 'h') AND EXISTS (SELECT FROM pg_depend AS d WHERE d.classid = 'pg_class'::regclass AND d.objid = q.rel
                AND d.objsubid = q.att AND d.refclassid = 'pg_class'::regclass AND d.refobjid = q.rel AND d.refobjsubid = 0 AND d.deptype = 'i')
          UNION ALL
            SELECT m.grp, m.shown, 'has a default of its own, which is no key of ' || m.root,
                   format('ALTER TABLE %s ALTER COLUMN %I %s;', m.rel, m.name,
                          CASE WHEN a.attidentity = '' THEN 'DROP DEFAULT' ELSE 'DROP IDENTITY' END)
            FROM m JOIN pg_attribute AS a ON a.attrelid = m.rel AND a.attnum = m.att
            WHERE m.source = 'reference' AND (m.changes AND a.atthasdef OR a.attidentity <> '')
          UNION ALL
            SELECT m.grp, m.shown, 'refers to several keys: ' || string_agg(m.root::text, ', '), 'drop all its foreign keys but one'
            FROM m GROUP BY m.grp, m.shown, m.rel, m.att HAVING count(*) > 1 AND bool_or(m.source = 'reference')
          UNION ALL
            SELECT m.grp, m.shown, 'has the domain ' || format_type(m.type, NULL),
                   randflake_migrate.by(randflake_migrate.owner_of('pg_class'::regclass, m.rel),
                       format('ALTER TABLE %s ALTER COLUMN %I TYPE %s;', m.rel, m.name, y.typbasetype::regtype))
            FROM m JOIN pg_type AS y ON y.oid = m.type WHERE y.typtype = 'd' AND m.changes
          UNION ALL
            SELECT m.grp, m.shown, 'old numbers are no values of the type: 42 would be an identifier of an arbitrary second',
                   $r$rows => 'all', or the target bigint$r$ FROM m
            WHERE $1 = 'randflake' AND m.keeps AND m.source IN ('identity', 'serial')
          UNION ALL
            SELECT h.grp, h.identity, 'its WHERE cannot have a column of the type', format(E'%s\n%s', randflake_migrate.removal(h.class, h.object),
                   (SELECT left(string_agg(d, ''), -length(format(' WHERE (%s);', pg_get_expr(p.prqual, p.prrelid)))) || ';'
                    FROM randflake_migrate.definition(h.class, h.object) AS d))
            FROM hang AS h JOIN pg_publication_rel AS p ON h.class = 'pg_publication_rel'::regclass AND p.oid = h.object
            WHERE $1 = 'randflake' AND p.prqual IS NOT NULL
          UNION ALL
            SELECT t.grp, t.oid::regclass::text, 'belongs to ' || t.relowner::regrole, format('GRANT %s TO %I;', t.relowner::regrole, current_user)
            FROM t WHERE NOT pg_has_role(t.relowner, 'USAGE')
          UNION ALL
            SELECT t.grp, t.oid::regclass::text, 'hides rows from its owner, and so from this move',
                   format('ALTER TABLE %s NO FORCE ROW LEVEL SECURITY;', t.oid::regclass)
            FROM t JOIN pg_roles AS r ON r.oid = t.relowner WHERE t.relforcerowsecurity AND NOT (r.rolsuper OR r.rolbypassrls)
          UNION ALL
            SELECT t.grp, t.oid::regclass::text, 'is a typed table', format('ALTER TABLE %s NOT OF;', t.oid::regclass) FROM t WHERE t.reloftype <> 0
          UNION ALL
            SELECT DISTINCT t.grp, t.oid::regclass::text, 'online: others inherit from it', 'transaction()'
            FROM t JOIN pg_inherits AS i ON t.oid IN (i.inhparent, i.inhrelid) WHERE t.relkind = 'r' AND NOT t.relispartition
          UNION ALL
            SELECT f.grp, f.identity, 'online: refers to a partitioned table', 'transaction()'
            FROM foreign_key AS f JOIN t ON t.oid = f.confrelid AND (t.relkind = 'p' OR t.relispartition)
          UNION ALL
            SELECT h.grp, h.identity, 'online: no index makes an exclusion constraint afterwards', 'transaction(), or ' || randflake_migrate.removal(h.class, h.object)
            FROM hang AS h JOIN pg_constraint AS k ON h.class = 'pg_constraint'::regclass AND k.oid = h.object WHERE k.contype = 'x'
          UNION ALL
            SELECT h.grp, h.identity, format('the operator class %s of its %s index does not take %s', o.opcname, i.amname, x.to_type),
                   randflake_migrate.removal(h.class, h.object) || '  -- and afterwards one without the key, or of another class'
            FROM hang AS h LEFT JOIN pg_constraint AS k ON h.class = 'pg_constraint'::regclass AND k.oid = h.object
            JOIN pg_index AS n ON n.indexrelid = CASE h.class WHEN 'pg_class'::regclass THEN h.object ELSE k.conindid END AND k.contype IS DISTINCT FROM 'f'
            CROSS JOIN LATERAL unnest(n.indkey::int2[], n.indclass::oid[]) AS c (att, class) JOIN place AS q ON q.rel = n.indrelid AND q.att = c.att
            JOIN pg_opclass AS o ON o.oid = c.class JOIN pg_am AS i ON i.oid = o.opcmethod
            CROSS JOIN randflake_migrate.target($1) AS x
            WHERE o.opcintype <> x.to_type AND NOT (o.opcdefault AND EXISTS (SELECT FROM pg_opclass AS d WHERE d.opcdefault
                AND d.opcmethod = o.opcmethod AND d.opcintype = x.to_type))
          UNION ALL
            SELECT t.grp, t.kind || ' ' || t.identity, 'does with a key what the type cannot: ' || x.what,
                   randflake_migrate.removal(t.class, t.object)
                       || '  -- and afterwards one that compares identifiers. Or a foreign key, by which the other column moves too'
            FROM tree AS t, randflake_migrate.target($1) AS g, LATERAL (SELECT concat_ws(', ', randflake_migrate.lacking(t.tree, g.to_type),
                 CASE WHEN t.kind = 'index' AND t.tree LIKE '%{COERCEVIAIO :arg KEY%' THEN 'a cast in an index' END)) AS x (what)
            WHERE $1 = 'randflake' AND t.how <> 'blocker' AND x.what <> '' AND t.kind <> 'publication relation'
          UNION ALL
            SELECT t.grp, t.kind || ' ' || t.identity, 'compares a key with a constant, and new keys are on both sides of it',
                   randflake_migrate.removal(t.class, t.object) || '  -- or the target 53, whose keys are positive'
            FROM tree AS t WHERE $1 = 'bigint' AND $2 = 'all' AND t.moves AND t.class = 'pg_constraint'::regclass AND EXISTS (
                SELECT FROM regexp_matches(t.tree, ':opno (\d+) [^{}]*:args \((?:KEY CONST|CONST KEY)', 'g') AS r JOIN pg_operator AS o ON o.oid = r[1]::oid
                WHERE o.oprname ~ '^[<>]=?$')
          UNION ALL
            SELECT f.grp, f.identity, 'online: sets single columns to NULL', 'transaction(), or ON DELETE SET NULL without columns'
            FROM foreign_key AS f WHERE f.confdelsetcols IS NOT NULL
          UNION ALL
            SELECT t.grp, t.oid::regclass::text, 'online: its triggers would run for each row that is filled: '
                   || string_agg(quote_ident(g.tgname), ', '), format('GRANT SET ON PARAMETER session_replication_role TO %I;', current_user)
            FROM t JOIN pg_trigger AS g ON g.tgrelid = t.oid
            WHERE NOT g.tgisinternal AND g.tgparentid = 0 AND g.tgtype & 16 <> 0 AND g.tgenabled IN ('O', 'D')
              AND NOT has_parameter_privilege('session_replication_role', 'SET') GROUP BY t.grp, t.oid
          UNION ALL
            SELECT o.* FROM randflake_migrate.names_and_owners($1, $2) AS o
        ) AS b (grp, object, note, remedy)
      UNION ALL
        SELECT l.grp, 5, 'look', l.object, l.note, l.remedy FROM (
            SELECT t.grp, 'publication ' || quote_ident(p.pubname), t.oid::regclass || ': subscribers get neither new types nor the rows that are rewritten',
                   format('on the subscriber, the same statements; then TRUNCATE %s, and ALTER SUBSCRIPTION … REFRESH PUBLICATION', t.oid::regclass)
            FROM t JOIN pg_publication_tables AS x ON format('%I.%I', x.schemaname, x.tablename)::regclass = t.oid
            JOIN pg_publication AS p ON p.pubname = x.pubname WHERE EXISTS (SELECT FROM m WHERE m.rel = t.oid AND m.changes)
          UNION ALL  -- groups of 40 and 480 took 45 locks a table
            SELECT t.grp, 'max_locks_per_transaction', format('a transaction that changes %s tables and their indexes needs some %s locks', count(*), count(*) * 45),
                   format('ALTER SYSTEM SET max_locks_per_transaction = %s;  -- and a restart', count(*) * 90 / s.sessions)
            FROM t, (SELECT current_setting('max_connections')::integer + current_setting('max_prepared_transactions')::integer) AS s (sessions)
            GROUP BY t.grp, s.sessions HAVING count(*) * 45 > current_setting('max_locks_per_transaction')::integer * s.sessions
          UNION ALL
            SELECT DISTINCT m.grp, 'function ' || p.oid::regprocedure, format('mentions %s, and has integer arguments or variables, or asks a sequence', m.rel),
                   'bigint, or the type, for integer; RETURNING for currval() and lastval()'
            FROM m JOIN pg_class AS c ON c.oid = m.rel
            JOIN pg_proc AS p ON strpos(lower(p.prosrc), lower(c.relname)) > 0
            JOIN pg_language AS g ON g.oid = p.prolang AND g.lanname NOT IN ('internal', 'c')
            WHERE p.pronamespace NOT IN ('pg_catalog'::regnamespace, 'information_schema'::regnamespace, 'randflake_migrate'::regnamespace)
              AND NOT EXISTS (SELECT FROM pg_depend AS e WHERE e.classid = 'pg_proc'::regclass AND e.objid = p.oid AND e.deptype = 'e')
              AND ('int4'::regtype = ANY (coalesce(p.proallargtypes, p.proargtypes::oid[]) || p.prorettype)
                   OR p.prosrc ~* '\y(int|int4|integer|serial|lastval|currval|nextval|pg_get_serial_sequence)\y')
          UNION ALL
            SELECT n.grp, format('column %s.%I', n.rel::regclass, n.name), CASE WHEN n.kind IS NOT NULL THEN 'refers to rows of several tables, by '
                   || quote_ident(n.kind) ELSE 'is named like a reference' || coalesce(' to ' || n.to_rel, '') || ', and no foreign key says so' END
                   || ': ' || e.effect, CASE
                WHEN n.keeps AND (n.is_array OR n.kind IS NOT NULL) THEN e.alter_type
                WHEN n.kind IS NOT NULL OR n.to_rel IS NULL AND (n.is_array OR e.bits IS NULL) THEN
                    'UPDATE it by randflake_migrate."schema.table.column", or by old_id'
                WHEN n.is_array THEN e.alter_type || E'  -- and, after transaction():\n' || randflake_migrate.by(e.owner, format(
                    'UPDATE %s AS t SET %I = ARRAY(SELECT coalesce(m.new::%s, u.old) FROM unnest(t.%2$I) WITH ORDINALITY AS u (old, n)'
                    ' LEFT JOIN randflake_migrate.%4$I AS m ON m.old::text = u.old::text ORDER BY u.n);', n.rel::regclass, n.name, e.element, e.map))
                WHEN e.bits IS NULL THEN E'-- after transaction():\n' || randflake_migrate.by(e.owner, format(
                    'UPDATE %s AS t SET %I = m.new FROM randflake_migrate.%I AS m WHERE t.%2$I = m.old::text;', n.rel::regclass, n.name, e.map))
                ELSE format('ALTER TABLE %s ADD FOREIGN KEY (%I) REFERENCES %s NOT VALID;', n.rel::regclass, n.name,
                    coalesce(n.to_rel || ' (' || quote_ident(n.to_name) || ')', '…')) END
            FROM named AS n, LATERAL (SELECT CASE n.type WHEN 'int2'::regtype THEN 16 WHEN 'int4'::regtype THEN 32 WHEN 'int8'::regtype THEN 64 END,
                     randflake_migrate.map(n.to_rel, n.to_name), randflake_migrate.owner_of('pg_class'::regclass, n.rel)) AS b (bits, map, owner),
                 LATERAL (SELECT CASE WHEN b.bits IS NULL THEN 'text' ELSE 'bigint' END) AS c (element),
                 LATERAL (SELECT b.*, c.*, randflake_migrate.by(b.owner, format('ALTER TABLE %s ALTER COLUMN %I TYPE %s%s;', n.rel::regclass, n.name, c.element,
                         CASE WHEN n.is_array THEN '[]' END)),
                     concat_ws(', and ', CASE WHEN b.bits < 64 THEN format('new keys overflow its %s bits', b.bits) END,
                     CASE WHEN NOT n.keeps THEN 'its old numbers join nothing' WHEN $1 = 'randflake' THEN 'its numbers join nothing without a cast' END))
                     AS e (bits, map, owner, element, alter_type, effect)
            WHERE e.effect <> ''
          UNION ALL
            SELECT t.grp, t.kind || ' ' || t.identity, 'compares a key with a constant: '
                   || CASE $1 WHEN '53' THEN 'new keys are of no order' ELSE 'half of all new keys are negative' END, NULL
            FROM tree AS t WHERE $1 <> 'randflake' AND NOT (t.moves AND t.class = 'pg_constraint'::regclass) AND t.tree ~ ':args \((KEY CONST|CONST KEY)'
          UNION ALL
            SELECT f.grp, f.identity, 'is not validated: a row that refers to nothing stops the move', randflake_migrate.by(
                   randflake_migrate.owner_of('pg_class'::regclass, f.conrelid), format('ALTER TABLE %s VALIDATE CONSTRAINT %I;', f.conrelid::regclass, f.conname))
            FROM foreign_key AS f WHERE NOT f.convalidated
        ) AS l (grp, object, note, remedy)
      UNION ALL
        SELECT NULL, 6, 'application', a.object, a.note, a.remedy FROM (VALUES
            ('lastval()', 'is an error or the number of another sequence; during the online steps the old number', 'INSERT … RETURNING id'),
            ('currval(pg_get_serial_sequence(…))', 'is NULL', 'INSERT … RETURNING id'),
            ('nextval(…) by a sequence''s name', 'is an error: the sequence is gone', (SELECT 'SELECT ' || g.generator FROM randflake_migrate.target($1) AS g)),
            ('PDO', 'lastInsertId() without a name is lastval(), with a name currval()', 'INSERT … RETURNING id, and fetchColumn()'),
            ('Doctrine', 'IDENTITY and SEQUENCE ask the sequence', 'a generator: docs/drivers-ruby-php.md'),
            ('Dapper', 'Contrib''s Insert() returns lastval()', 'connection.QuerySingle<long>("INSERT … RETURNING id", row)'),
            ('Django', 'sqlsequencereset does nothing, silently, and need not; AutoField holds 32 bits',
             'DEFAULT_AUTO_FIELD = BigAutoField, or the field of docs/drivers-python.md'),
            ('Hibernate', 'SEQUENCE takes allocationSize numbers from the sequence',
             '@GeneratedValue(strategy = IDENTITY), or the generator of docs/drivers-java-go.md'),
            ('ActiveRecord', 'reset_pk_sequence! does nothing; integer columns of old migrations hold 32 bits',
             't.bigint in schema.rb: dump it again'),
            ('programs that hold keys', '32 bits overflow; JavaScript and JSON lose digits beyond 53 bits', 'bigint, long, or text: docs/drivers.md'),
            ('fixtures and tests', 'expect 1, 2, 3', 'keys that they insert themselves, or RETURNING'),
            ('ORDER BY id, pages by id > last', 'is no order of time, but with the type', 'a column with the time, or the target randflake'),
            ('INSERT and COPY without a list of columns', 'online steps add columns, and move keys to the end', 'name the columns, or transaction()')
        ) AS a (object, note, remedy)
    )
    SELECT e.grp, e.what, e.object, e.note, e.remedy FROM entry AS e ORDER BY e.grp, e.place, e.object, e.note
$$;

-- Returns the plan. Groups' names include schemas only if the caller's search_path requires them.
CREATE FUNCTION randflake_migrate.plan(target text DEFAULT 'bigint', rows text DEFAULT 'all')
RETURNS TABLE (grp text, what text, object text, note text, remedy text) LANGUAGE sql STABLE AS $$
    SELECT e.grp::pg_catalog.text, e.what, e.object, e.note, e.remedy FROM randflake_migrate.entries($1, $2) AS e
$$;

-- Returns the name of a table's group. Raises an error if the group cannot move.
CREATE FUNCTION randflake_migrate.group_of(member regclass, target text, rows text, online boolean) RETURNS regclass
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    wanted regclass := (SELECT m.grp FROM randflake_migrate.moving(target, rows) AS m WHERE m.rel = member LIMIT 1);
    blockers text;
BEGIN
    IF rows NOT IN ('all', 'new') OR rows IS NULL THEN
        RAISE invalid_parameter_value USING MESSAGE = format('rows are all or new, not "%s"', rows);
    ELSIF wanted IS NULL THEN
        RAISE undefined_object USING MESSAGE = format('table %s has no generated key to move', member),
            HINT = 'Its key may have moved already, and a table that belongs to an extension stays as it is.';
    END IF;
    SELECT string_agg(concat_ws(' ', p.object, p.note, '— ' || p.remedy), E'\n') INTO blockers
    FROM randflake_migrate.entries(target, rows) AS p
    WHERE p.grp = wanted AND p.what = 'blocker' AND (online OR p.note NOT LIKE 'online:%');
    IF blockers IS NOT NULL THEN
        RAISE object_not_in_prerequisite_state USING MESSAGE = format('the group of %s cannot be moved yet', wanted), DETAIL = blockers,
            HINT = 'Remove the blockers that randflake_migrate.plan() lists.';
    END IF;
    RETURN wanted;
END
$$;

-- --- one transaction ----------------------------------------------------------------------------

-- Returns the statements that move a table's group in one transaction. They hold ACCESS EXCLUSIVE
-- locks while PostgreSQL rewrites the rows. If rows get new keys, the table
-- randflake_migrate."schema.table.column" maps old keys to new keys.
CREATE FUNCTION randflake_migrate.transaction(member regclass, target text DEFAULT 'bigint', rows text DEFAULT 'all')
RETURNS SETOF text LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    wanted regclass := randflake_migrate.group_of(member, target, rows, false);
    tables text;
    all_tables regclass[];
    rels oid[];
    atts smallint[];
    m record;
BEGIN
    SELECT randflake_migrate.in_order(array_agg(v.rel), array_agg(v.root)), array_agg(v.rel), array_agg(v.rel::oid) FILTER (WHERE v.changes),
           array_agg(v.att) FILTER (WHERE v.changes)
    INTO tables, all_tables, rels, atts FROM randflake_migrate.moving(target, rows) AS v WHERE v.grp = wanted;
    RETURN NEXT 'BEGIN;';
    RETURN NEXT format(E'SET LOCAL search_path = %s;\nSET LOCAL standard_conforming_strings = on;\n'
        'SET LOCAL check_function_bodies = off;\nSET LOCAL row_security = off;',
        randflake_migrate.path((SELECT g.to_type FROM randflake_migrate.target(target) AS g)));
    RETURN NEXT randflake_migrate.lock(concat_ws(', ', (SELECT randflake_migrate.views(array_agg(x.object ORDER BY x.level DESC))
        FROM randflake_migrate.hanging(rels, atts) AS x WHERE x.kind = 'view'), tables), 'ACCESS EXCLUSIVE');
    RETURN NEXT randflake_migrate.same_tables(all_tables);
    RETURN QUERY SELECT randflake_migrate.removal(x.class, x.object) FROM randflake_migrate.hanging(rels, atts) AS x
        WHERE x.how = 'made again' ORDER BY x.level DESC, x.class DESC, x.object DESC;

    FOR m IN SELECT v.*, randflake_migrate.map(v.rel, v.name) AS map, s.oid AS sequence,
                    randflake_migrate.owner_of('pg_class'::regclass, v.rel) AS owner
             FROM randflake_migrate.moving(target, rows) AS v
             LEFT JOIN pg_class AS s ON s.oid = pg_get_serial_sequence(v.rel::text, v.name)::regclass
             WHERE v.grp = wanted AND v.source <> 'reference' LOOP
        IF NOT m.keeps THEN
            IF EXISTS (SELECT FROM pg_class AS c WHERE c.relname = m.map AND c.relnamespace = 'randflake_migrate'::regnamespace) THEN
                RAISE duplicate_table USING MESSAGE = format('table randflake_migrate.%I has the numbers of an earlier move', m.map),
                    HINT = 'Drop it, or rename it to keep them.';
            END IF;
            RETURN NEXT format('CREATE TABLE randflake_migrate.%I (old bigint PRIMARY KEY, new %s NOT NULL DEFAULT %s);', m.map, m.to_type, m.generator);
            RETURN NEXT format(E'CREATE FUNCTION randflake_migrate.%I(old bigint) RETURNS %s LANGUAGE plpgsql STABLE STRICT%s AS %L;',
                m.map, m.to_type, CASE WHEN EXISTS (SELECT FROM pg_class AS c WHERE c.oid = ANY (all_tables) AND c.relowner <> quote_ident(current_user)::regrole)
                    THEN ' SECURITY DEFINER SET search_path = pg_catalog, pg_temp' ELSE '' END,
                format(E'\nDECLARE\n    result %s := (SELECT m.new FROM randflake_migrate.%I AS m WHERE m.old = $1);\nBEGIN\n'
                    '    IF result IS NULL THEN\n'
                    '        RAISE foreign_key_violation USING MESSAGE = format(''%%L is no key of %%s'', $1, %L);\n'
                    '    END IF;\n    RETURN result;\nEND\n', m.to_type, m.map, m.rel))
                || rtrim(E'\n' || randflake_migrate.given(m.owner, m.map), E'\n');
            RETURN NEXT randflake_migrate.by(m.owner, format('INSERT INTO randflake_migrate.%I (old) SELECT %I FROM %s ON CONFLICT DO NOTHING;', m.map, m.name, m.rel));
            RETURN NEXT format('ANALYZE randflake_migrate.%I;', m.map);
        END IF;
        RETURN NEXT format('ALTER TABLE %s ALTER COLUMN %I DROP %s;', m.rel, m.name,
                           CASE m.source WHEN 'identity' THEN 'IDENTITY' ELSE 'DEFAULT' END);
        -- The sequence stays if another object uses it.
        IF m.source = 'serial' AND m.sequence IS NOT NULL AND NOT EXISTS (
            SELECT FROM pg_depend AS d LEFT JOIN pg_attrdef AS f ON d.classid = 'pg_attrdef'::regclass AND f.oid = d.objid
            WHERE d.refclassid = 'pg_class'::regclass AND d.refobjid = m.sequence AND d.deptype = 'n'
              AND (f.adrelid, f.adnum) IS DISTINCT FROM (m.rel::oid, m.att)) THEN
            RETURN NEXT format('DROP SEQUENCE %s;', m.sequence::regclass);
        END IF;
    END LOOP;

    RETURN QUERY SELECT randflake_migrate.by(randflake_migrate.owner_of('pg_class'::regclass, v.rel), format('ALTER TABLE %s %s;', v.rel,
            string_agg(format('ALTER COLUMN %I TYPE %s USING %s', v.name, v.to_type, CASE WHEN v.keeps THEN format('%I::%s', v.name, v.to_type)
                ELSE format('randflake_migrate.%I(%I)', randflake_migrate.map(v.root, v.root_name), v.name) END), ', ')))
        FROM randflake_migrate.moving(target, rows) AS v WHERE v.grp = wanted AND v.changes GROUP BY v.rel ORDER BY v.rel;
    -- PostgreSQL makes new indexes and statistics, but does not keep their old names and settings.
    RETURN QUERY SELECT format('SELECT randflake_migrate.rename_index(%L, %L, %L);', h.inhparent::regclass, i.indrelid::regclass, c.relname)
            || randflake_migrate.marks(c.oid) || (SELECT concat(E'\n' || string_agg(d, E'\n')) FROM (SELECT 'pg_class'::regclass, c.oid
                UNION ALL SELECT 'pg_constraint'::regclass, k.oid FROM pg_constraint AS k WHERE k.conindid = c.oid AND k.conrelid = i.indrelid) AS o (class, object),
            randflake_migrate.comments(o.class, o.object) AS d)
        FROM pg_inherits AS h JOIN pg_class AS c ON c.oid = h.inhrelid JOIN pg_index AS i ON i.indexrelid = c.oid
        WHERE EXISTS (SELECT FROM randflake_migrate.places(rels, atts) AS p WHERE p.rel = i.indrelid AND (p.att = ANY (i.indkey::int2[]) OR EXISTS (
            SELECT FROM pg_depend AS d WHERE d.classid = 'pg_class'::regclass AND d.objid = c.oid AND d.refobjid = p.rel AND d.refobjsubid = p.att)))
        ORDER BY (SELECT count(*) FROM pg_partition_ancestors(i.indrelid));
    RETURN QUERY SELECT format('ALTER STATISTICS %s SET STATISTICS %s;', x.identity, s.stxstattarget)
        FROM randflake_migrate.hanging(rels, atts) AS x JOIN pg_statistic_ext AS s ON x.class = 'pg_statistic_ext'::regclass AND s.oid = x.object
        WHERE s.stxstattarget >= 0;
    RETURN QUERY SELECT format('ALTER TABLE %s ALTER COLUMN %I SET DEFAULT %s;', v.rel, v.name, v.generator)
        FROM randflake_migrate.moving(target, rows) AS v WHERE v.grp = wanted AND v.source <> 'reference';
    RETURN QUERY SELECT randflake_migrate.by(randflake_migrate.owner_of(x.class, x.object), d.sql)
        FROM randflake_migrate.hanging(rels, atts) WITH ORDINALITY AS x, randflake_migrate.definition(x.class, x.object) WITH ORDINALITY AS d (sql, n)
        WHERE x.how = 'made again' ORDER BY x.ordinality, d.n;
    RETURN QUERY SELECT format('DROP FUNCTION randflake_migrate.%I(bigint);', randflake_migrate.map(v.root, v.root_name))
        FROM randflake_migrate.moving(target, rows) AS v WHERE v.grp = wanted AND v.source <> 'reference' AND NOT v.keeps;
    -- Resets settings, because a migration tool may later use its own tables in this transaction.
    RETURN NEXT E'SET LOCAL row_security TO DEFAULT;\nSET LOCAL check_function_bodies TO DEFAULT;\n'
        'SET LOCAL standard_conforming_strings TO DEFAULT;\nSET LOCAL search_path TO DEFAULT;';
    RETURN NEXT 'COMMIT;';
    RETURN NEXT format('ANALYZE %s;', tables);
END
$$;

-- --- online steps -------------------------------------------------------------------------------

-- Each row is one moved column. Step 7 renames `name` to `displaced`, and `shadow` to `name`.
CREATE TABLE randflake_migrate.part (
    move      integer NOT NULL REFERENCES randflake_migrate.move ON DELETE CASCADE,
    k         integer NOT NULL,
    side      integer NOT NULL DEFAULT 1,  -- 2 after step 7
    rel       regclass NOT NULL,
    name      name NOT NULL,
    att       smallint NOT NULL,
    shadow    name NOT NULL,
    shadow_att smallint,         -- from the step that makes it
    displaced name NOT NULL,
    is_key    boolean NOT NULL,
    is_referred_to boolean NOT NULL,
    root      regclass NOT NULL,
    root_name name NOT NULL,
    converts  boolean NOT NULL,  -- the shadow has the same value in another type
    type      regtype NOT NULL,  -- of the shadow
    maker     text,              -- generates the shadow of a key
    old_type  regtype NOT NULL,
    old_maker text,
    was_same  boolean NOT NULL,  -- has identifiers: both columns are always equal
    PRIMARY KEY (move, rel, name)
);

-- Each row is a step: CREATE INDEX CONCURRENTLY, or a transaction that also marks the step done.
CREATE TABLE randflake_migrate.step (
    move  integer NOT NULL REFERENCES randflake_migrate.move ON DELETE CASCADE,
    n     integer NOT NULL,
    step  integer NOT NULL,  -- of the eight in docs/migrating.md
    sql   text NOT NULL,
    kind  text NOT NULL CHECK (kind IN ('transaction', 'fill', 'constraint', 'index', 'swap', 'undo')),
    rel   regclass,          -- table of the constraint or index that it makes
    made  name,              -- its name until step 7
    object oid,              -- and its oid, from its creation
    begun timestamptz,       -- an index: this step reserved the free name
    leaf  oid,               -- progress of fill(): table or partition, and page
    page  bigint,
    pages bigint,
    done  timestamptz,
    PRIMARY KEY (move, n)
);

-- Returns the columns that move, in tables and in their partitions.
CREATE FUNCTION randflake_migrate.columns(move integer, OUT rel oid, OUT att smallint, OUT p randflake_migrate.part)
RETURNS SETOF record LANGUAGE sql STABLE ROWS 100 SET search_path = pg_catalog, pg_temp AS $$
    SELECT a.attrelid, a.attnum, v FROM randflake_migrate.part AS v, randflake_migrate.tree(v.rel) AS t
    JOIN pg_attribute AS a ON a.attrelid = t.rel AND a.attnum > 0 AND NOT a.attisdropped WHERE v.move = $1 AND a.attname = v.name
$$;

-- Raises an error if a column, trigger, constraint or index of the move has lost its name, or if
-- another object has taken that name.
CREATE FUNCTION randflake_migrate.check_made(move integer) RETURNS void
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    other text;
BEGIN
    WITH t AS MATERIALIZED (SELECT DISTINCT c.rel FROM randflake_migrate.columns($1) AS c)
    SELECT min(x.what) INTO other FROM (
        SELECT format('column %I of table %s', c.name, p.rel) FROM randflake_migrate.part AS p
            CROSS JOIN LATERAL (VALUES (p.name, p.att), (p.shadow, p.shadow_att), (p.displaced, NULL)) AS c (name, att)
            LEFT JOIN pg_attribute AS a ON a.attrelid = p.rel AND a.attname = c.name AND a.attnum > 0 AND NOT a.attisdropped
        WHERE p.move = $1 AND a.attnum IS DISTINCT FROM c.att
      UNION ALL
        SELECT format('constraint %I of table %s', s.made, s.rel) FROM randflake_migrate.step AS s JOIN t ON t.rel = s.rel
        LEFT JOIN pg_constraint AS c ON c.conrelid = s.rel AND c.conname = s.made
        WHERE s.move = $1 AND s.kind = 'constraint' AND c.oid IS DISTINCT FROM s.object
      UNION ALL
        SELECT format('index %I of table %s', s.made, s.rel) FROM randflake_migrate.step AS s JOIN t ON t.rel = s.rel
        LEFT JOIN pg_class AS c ON c.relname = s.made AND c.relnamespace = (SELECT r.relnamespace FROM pg_class AS r WHERE r.oid = s.rel)
        WHERE s.move = $1 AND s.kind = 'index' AND c.oid IS DISTINCT FROM s.object AND (s.object IS NOT NULL OR s.begun IS NULL)
      UNION ALL
        SELECT format('trigger %I of table %s', randflake_migrate.called(c.p, 'trigger'), c.rel::regclass) FROM randflake_migrate.columns($1) AS c
        WHERE (c.p).shadow_att IS NOT NULL AND NOT EXISTS (SELECT FROM pg_trigger AS g
            WHERE g.tgrelid = c.rel AND g.tgname = randflake_migrate.called(c.p, 'trigger') AND g.tgenabled = 'A')
    ) AS x (what);
    IF other IS NOT NULL THEN
        RAISE object_not_in_prerequisite_state USING MESSAGE = format('%s is not what move %s left there', other, $1),
            HINT = format('Give the one that was there its name back, or a trigger its ENABLE ALWAYS if no row was written without it. '
                'Otherwise randflake_migrate.undo(%s) goes back.', $1);
    END IF;
END
$$;

-- Marks step `n` done. Raises an error if it is not the next step, or if its result is missing.
CREATE FUNCTION randflake_migrate.done(move integer, n integer) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    m record;
    next record;
BEGIN
    SELECT v.mover, v.tables, v.names, v.owners INTO m FROM randflake_migrate.move AS v WHERE v.id = $1 FOR UPDATE;
    SELECT * INTO next FROM randflake_migrate.step AS s WHERE s.move = $1 AND s.done IS NULL ORDER BY s.n LIMIT 1;
    IF next.n IS DISTINCT FROM $2 THEN
        RAISE object_not_in_prerequisite_state USING MESSAGE = format('step %s of move %s is not the next one', $2, $1),
            HINT = format('SELECT randflake_migrate.todo(%s) shows what is left.', $1);
    END IF;
    -- The steps of undo() skip a table that was dropped.
    PERFORM randflake_migrate.same(m.mover, array_agg(x.rel), array_agg(x.name), array_agg(x.owner))
    FROM unnest(m.tables, m.names, m.owners) AS x (rel, name, owner) WHERE next.kind <> 'undo' OR EXISTS (SELECT FROM pg_class AS c WHERE c.oid = x.rel);
    IF next.kind <> 'undo' THEN
        PERFORM randflake_migrate.check_made($1);
    END IF;
    IF next.kind = 'index' THEN
        next.object := (SELECT b.index FROM randflake_migrate.built($1, $2) AS b WHERE b.valid);
        IF next.object IS NULL THEN
            RAISE object_not_in_prerequisite_state USING MESSAGE = format('the index of step %s of move %s is not built', $2, $1),
                HINT = format('SELECT randflake_migrate.todo(%s) shows what is left.', $1);
        END IF;
    END IF;
    UPDATE randflake_migrate.step AS s SET done = clock_timestamp(), object = next.object WHERE s.move = $1 AND s.n = $2;
END
$$;

-- Records the columns or the constraint that the transaction of a step has just made.
CREATE FUNCTION randflake_migrate.made(move integer, n integer, rel regclass DEFAULT NULL, keys boolean DEFAULT NULL) RETURNS void
LANGUAGE sql SET search_path = pg_catalog, pg_temp AS $$
    UPDATE randflake_migrate.part AS p SET shadow_att = a.attnum FROM pg_attribute AS a
    WHERE p.move = $1 AND p.rel = $3 AND p.is_key = $4 AND a.attrelid = p.rel AND a.attname = p.shadow;
    UPDATE randflake_migrate.step AS s SET object = c.oid FROM pg_constraint AS c
    WHERE s.move = $1 AND s.n = $2 AND s.kind = 'constraint' AND c.conrelid = s.rel AND c.conname = s.made;
$$;

-- Returns the database index that a step makes, if the index exists. Raises an error if something
-- else has the index's name.
CREATE FUNCTION randflake_migrate.built(move integer, n integer, OUT index oid, OUT valid boolean)
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    s record;
BEGIN
    SELECT v.*, r.relnamespace INTO s FROM randflake_migrate.step AS v JOIN pg_class AS r ON r.oid = v.rel WHERE v.move = $1 AND v.n = $2;
    SELECT c.oid, i.indisvalid INTO index, valid FROM pg_class AS c LEFT JOIN pg_index AS i ON i.indexrelid = c.oid
    WHERE c.relname = s.made AND c.relnamespace = s.relnamespace;
    IF index IS NOT NULL AND (s.begun IS NULL OR s.rel <> (SELECT i.indrelid FROM pg_index AS i WHERE i.indexrelid = index) OR pg_get_indexdef(index) || ';' IS DISTINCT FROM replace(s.sql, ' CONCURRENTLY ' || quote_ident(s.made), ' ' || quote_ident(s.made))) THEN
        RAISE duplicate_table USING MESSAGE = format('%s is not the index of step %s of move %s', index::regclass, $2, $1),
            HINT = 'Rename it: this move needs the name.';
    END IF;
END
$$;

-- Marks step `n` as begun. From then on, built() accepts an index with the step's name and SQL.
CREATE FUNCTION randflake_migrate.begin(move integer, n integer) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF (SELECT b.index FROM randflake_migrate.built($1, $2) AS b) IS NOT NULL THEN
        RAISE object_not_in_prerequisite_state USING MESSAGE = format('step %s of move %s was stopped while its index was built', $2, $1),
            HINT = format('SELECT randflake_migrate.todo(%s) shows what is left.', $1);
    END IF;
    UPDATE randflake_migrate.step AS s SET begun = clock_timestamp() WHERE s.move = $1 AND s.n = $2 AND s.done IS NULL;
END
$$;

CREATE FUNCTION randflake_migrate.paths(move integer) RETURNS text
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
    SELECT randflake_migrate.path(VARIADIC array_agg(p.type) || array_agg(p.old_type)) FROM randflake_migrate.part AS p WHERE p.move = $1
$$;

-- Returns the name of a column's object: the shadow's check, or an object that follow() makes.
CREATE FUNCTION randflake_migrate.called(p randflake_migrate.part, what text) RETURNS name
LANGUAGE sql IMMUTABLE SET search_path = pg_catalog, pg_temp AS $$
    SELECT CASE $2 WHEN 'trigger' THEN format('zzz_randflake_%s_%s_%s_%s', p.move, CASE WHEN p.is_key THEN 2 ELSE 1 END, p.k, p.side)
                   WHEN 'check' THEN format('randflake_%s_%s_%s', p.move, p.k, p.side)
                   ELSE format('m%s_%s_%s_%s', p.move, p.k, p.side, $2) END::name
$$;

-- Returns the statement that adds a shadow's check. With this check, SET NOT NULL needs no scan.
CREATE FUNCTION randflake_migrate.checked(p randflake_migrate.part, not_null boolean) RETURNS text
LANGUAGE sql IMMUTABLE SET search_path = pg_catalog, pg_temp AS $$
    SELECT format('ALTER TABLE %s ADD CONSTRAINT %I CHECK (%I IS NOT NULL%s) NOT VALID;', p.rel, randflake_migrate.called(p, 'check'), p.shadow,
        CASE WHEN NOT $2 THEN format(' OR %I IS NULL', p.name) END)
$$;

-- Makes the trigger and the functions that set a column's shadow. PostgreSQL runs triggers in order
-- of name: the program's triggers, then those of references, then those of keys. Triggers of keys
-- look for reserved shadows. Column p refers to the key r, or p is the key itself (p = r). The key
-- has these objects:
--   _kept     has shadows of numbers whose row left, or that a deferred reference used first
--   _find     returns a number's shadow from its row or from _kept, even if the table is renamed
--   _shadow   calls _find, and reserves a shadow in _kept if the number has none
--   _mixed    returns numbers for which _kept and the row have different shadows
CREATE FUNCTION randflake_migrate.follow(p randflake_migrate.part, r randflake_migrate.part) RETURNS text
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
    SELECT CASE WHEN p.is_referred_to AND NOT p.converts THEN format(
            E'CREATE TABLE randflake_migrate.%1$I (number %5$s PRIMARY KEY, shadow %6$s NOT NULL);\n'
            'CREATE FUNCTION randflake_migrate.%2$I(%5$s) RETURNS %6$s LANGUAGE sql STRICT SECURITY DEFINER SET search_path = %7$s\n'
            '    RETURN coalesce((SELECT r.%8$I FROM %9$s AS r WHERE r.%10$I = $1), (SELECT k.shadow FROM randflake_migrate.%1$I AS k WHERE k.number = $1));\n'
            'CREATE FUNCTION randflake_migrate.%4$I() RETURNS TABLE (number %5$s, shadow %6$s) LANGUAGE sql SECURITY DEFINER SET search_path = %7$s\n'
            'BEGIN ATOMIC\n    SELECT k.number, r.%8$I FROM randflake_migrate.%1$I AS k JOIN %9$s AS r ON r.%10$I = k.number WHERE r.%8$I <> k.shadow;\nEND;\n'
            'CREATE FUNCTION randflake_migrate.%3$I(%5$s) RETURNS %6$s LANGUAGE plpgsql STRICT SECURITY DEFINER SET search_path = %7$s AS %11$L;\n'
            'REVOKE EXECUTE ON FUNCTION randflake_migrate.%2$I(%5$s), randflake_migrate.%3$I(%5$s), randflake_migrate.%4$I() FROM PUBLIC;\n'
            'GRANT EXECUTE ON FUNCTION randflake_migrate.%3$I(%5$s), randflake_migrate.%4$I() TO %12$s;\n%13$s',
            f.kept, f.find, f.shadow, f.mixed, f.number, p.type, randflake_migrate.paths(p.move), p.shadow, p.rel, p.name,
            format(E'\nDECLARE\n    result %s := randflake_migrate.%I($1);\nBEGIN\n    IF result IS NULL THEN\n'
                '        INSERT INTO randflake_migrate.%I AS k VALUES ($1, %s)\n'
                '        ON CONFLICT (number) DO UPDATE SET shadow = k.shadow RETURNING k.shadow INTO result;\n'
                '    END IF;\n    RETURN result;\nEND\n', p.type, f.find, f.kept, p.maker),
            (SELECT string_agg(DISTINCT c.relowner::regrole::text, ', ') FROM randflake_migrate.part AS v, randflake_migrate.tree(v.rel) AS t
             JOIN pg_class AS c ON c.oid = t.rel WHERE v.move = p.move AND v.root = p.rel AND v.root_name = p.name),
            randflake_migrate.given(f.owner, f.kept, f.find, f.shadow, f.mixed)) ELSE '' END
        || format(E'CREATE FUNCTION randflake_migrate.%1$I() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path = %2$s AS %3$L;\n'
            '%4$sCREATE TRIGGER %5$I BEFORE INSERT OR UPDATE%6$s ON %7$s FOR EACH ROW EXECUTE FUNCTION randflake_migrate.%1$I();\n'
            'ALTER TABLE %7$s ENABLE ALWAYS TRIGGER %5$I;', f.follow, randflake_migrate.paths(p.move), CASE
            WHEN p.converts THEN format(E'\nBEGIN\n    NEW.%I := NEW.%I::%s;\n    RETURN NEW;\nEND\n', p.shadow, p.name, p.type)
            WHEN p.is_key AND NOT p.is_referred_to THEN format(E'\nBEGIN\n    NEW.%1$I := coalesce(NEW.%1$I, %2$s);\n    RETURN NEW;\nEND\n', p.shadow, p.maker)
            WHEN p.is_key THEN format(
                E'\nBEGIN\n    IF TG_OP = ''INSERT'' THEN\n        NEW.%2$I := coalesce(randflake_migrate.%3$I(NEW.%1$I), %4$s);\n        RETURN NEW;\n    END IF;\n'
                '    IF TG_OP = ''UPDATE'' THEN\n        IF NEW.%1$I IS NOT DISTINCT FROM OLD.%1$I THEN\n'
                '            NEW.%2$I := coalesce(NEW.%2$I, randflake_migrate.%3$I(NEW.%1$I), %5$s);\n            RETURN NEW;\n        END IF;\n    END IF;\n'
                '    IF OLD.%1$I IS NOT NULL AND OLD.%2$I IS NOT NULL THEN\n        INSERT INTO randflake_migrate.%6$I VALUES (OLD.%1$I, OLD.%2$I)\n'
                '        ON CONFLICT (number) DO UPDATE SET shadow = excluded.shadow;\n    END IF;\n'
                '    IF TG_OP = ''DELETE'' THEN\n        RETURN OLD;\n    END IF;\n'
                '    NEW.%2$I := coalesce(randflake_migrate.%3$I(NEW.%1$I), %5$s);\n    RETURN NEW;\nEND\n',
                p.name, p.shadow, f.find, CASE p.side WHEN 2 THEN format('NEW.%I, ', p.shadow) ELSE '' END || p.maker, p.maker, f.kept)
            ELSE format(
                E'\nBEGIN\n    IF TG_OP = ''UPDATE'' THEN\n        IF NEW.%1$I IS NOT DISTINCT FROM OLD.%1$I AND NEW.%2$I IS NOT NULL THEN\n'
                '            RETURN NEW;\n        END IF;\n    END IF;\n'
                '    NEW.%2$I := randflake_migrate.%3$I(NEW.%1$I);\n    RETURN NEW;\nEND\n', p.name, p.shadow, randflake_migrate.called(r, 'shadow')) END,
            randflake_migrate.given(f.owner, f.follow), randflake_migrate.called(p, 'trigger'),
            CASE WHEN p.is_key AND p.is_referred_to AND NOT p.converts THEN ' OR DELETE' ELSE '' END, p.rel)
    FROM (SELECT randflake_migrate.called(p, 'follow'), randflake_migrate.called(p, 'kept'), randflake_migrate.called(p, 'find'),
                 randflake_migrate.called(p, 'shadow'), randflake_migrate.called(p, 'mixed'),
                 CASE WHEN p.old_type IN ('int2'::regtype, 'int4'::regtype) THEN 'int8'::regtype ELSE p.old_type END,
                 randflake_migrate.owner_of('pg_class'::regclass, p.rel)) AS f (follow, kept, find, shadow, mixed, number, owner)
$$;

-- Drops what follow() made. CASCADE drops only triggers that call the dropped function.
CREATE FUNCTION randflake_migrate.unfollow(p randflake_migrate.part) RETURNS text
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
    SELECT format('DROP FUNCTION IF EXISTS randflake_migrate.%I() CASCADE;', randflake_migrate.called(p, 'follow'))
        || CASE WHEN p.is_key AND p.is_referred_to AND NOT p.converts THEN format(
            E'\nDROP FUNCTION IF EXISTS randflake_migrate.%I, randflake_migrate.%I, randflake_migrate.%I;\nDROP TABLE IF EXISTS randflake_migrate.%I;',
            randflake_migrate.called(p, 'shadow'), randflake_migrate.called(p, 'mixed'), randflake_migrate.called(p, 'find'),
            randflake_migrate.called(p, 'kept')) ELSE '' END
$$;

-- Fills the shadows of a table and its partitions. After an interruption, another call continues.
CREATE PROCEDURE randflake_migrate.fill(move integer, n integer, rel regclass, keys boolean) LANGUAGE plpgsql AS $$
DECLARE
    assignments text;
    missing text;
    m record;
    leaf regclass;
    filled bigint;
    total bigint := 0;
BEGIN
    LOOP
        PERFORM pg_catalog.set_config('search_path', randflake_migrate.paths($1), true);
        IF assignments IS NULL THEN
            SELECT string_agg(format('%I = coalesce(t.%1$I, %s)', p.shadow, CASE
                       WHEN p.converts THEN format('t.%I::%s', p.name, p.type)
                       WHEN p.is_key THEN p.maker
                       ELSE format('randflake_migrate.%I(t.%I)', randflake_migrate.called(r, 'shadow'), p.name) END), ', '),
                   string_agg(format('t.%I IS NULL AND t.%I IS NOT NULL', p.shadow, p.name), ' OR ')
            INTO assignments, missing
            FROM randflake_migrate.part AS p JOIN randflake_migrate.part AS r ON r.move = p.move AND r.rel = p.root AND r.name = p.root_name
            WHERE p.move = $1 AND p.rel = $3 AND p.is_key = $4;
        END IF;
        SELECT v.*, s.leaf, s.page, s.pages AS until INTO m FROM randflake_migrate.move AS v
        JOIN randflake_migrate.step AS s ON s.move = v.id WHERE v.id = $1 AND s.n = $2 FOR UPDATE OF s;
        PERFORM randflake_migrate.same(m.mover, m.tables, m.names, m.owners);
        SELECT min(t.rel) INTO leaf FROM randflake_migrate.tree($3) AS t WHERE t.leaf AND (t.rel > m.leaf OR t.rel = m.leaf AND m.page < m.until OR m.leaf IS NULL);
        IF leaf IS NULL THEN
            IF randflake_migrate.as_owner(pg_get_userbyid(randflake_migrate.owner_of('pg_class'::regclass, $3)),
                   format('SELECT FROM %s AS t WHERE %s LIMIT 1', $3, missing)) = 0 THEN
                PERFORM randflake_migrate.done($1, $2);
                COMMIT;
                RETURN;
            END IF;
            PERFORM pg_sleep(0.1);
            SELECT min(t.rel) INTO leaf FROM randflake_migrate.tree($3) AS t WHERE t.leaf;
            m.leaf := NULL;
        END IF;
        IF leaf IS DISTINCT FROM m.leaf THEN
            -- Now triggers fill the new columns of rows that programs add to any partition.
            m.leaf := leaf;
            m.page := 0;
            m.until := pg_relation_size(leaf) / current_setting('block_size')::bigint;
        END IF;
        -- With this setting, the updates do not run the program's triggers.
        IF has_parameter_privilege('session_replication_role', 'SET') THEN
            PERFORM set_config('session_replication_role', 'replica', true);
        END IF;
        -- To avoid deadlocks, this pass skips rows that a program has locked.
        filled := randflake_migrate.as_owner(pg_get_userbyid(randflake_migrate.owner_of('pg_class'::regclass, leaf)), format('UPDATE %s AS t SET %s'
            ' WHERE t.ctid = ANY (ARRAY(SELECT t.ctid FROM %1$s AS t WHERE t.ctid >= %3$L AND t.ctid < %4$L AND (%5$s) FOR NO KEY UPDATE SKIP LOCKED))',
            leaf, assignments, format('(%s,0)', m.page), format('(%s,0)', m.page + m.pages), missing));
        total := total + filled;
        m.page := least(m.page + m.pages, m.until);
        UPDATE randflake_migrate.step AS s SET (leaf, page, pages) = (m.leaf, m.page, m.until) WHERE s.move = $1 AND s.n = $2;
        RAISE NOTICE '%: filled % rows, % of % pages', leaf, total, m.page, m.until;
        COMMIT;
        PERFORM pg_catalog.pg_sleep(pg_catalog.date_part('epoch', m.pause));
    END LOOP;
END
$$;

-- Returns what follows "ON table" in an index's definition, with the shadows in place of the
-- columns. To get it, makes the same index on an empty copy of the table, and renames the copy's
-- columns.
CREATE FUNCTION randflake_migrate.on_shadows(move integer, index regclass) RETURNS text
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    i record;
    p record;
    tail text;
BEGIN
    SELECT x.indrelid::regclass AS rel, coalesce(pg_partition_root(x.indrelid), x.indrelid) AS top, c.relname, n.nspname, t.relname AS of, x.indisunique, pg_get_userbyid(t.relowner) AS owner INTO i
    FROM pg_index AS x JOIN pg_class AS c ON c.oid = x.indexrelid JOIN pg_namespace AS n ON n.oid = c.relnamespace
    JOIN pg_class AS t ON t.oid = x.indrelid WHERE x.indexrelid = $2;
    PERFORM set_config('search_path', randflake_migrate.paths($1), true);  -- leaves operators unqualified, for another type
    tail := substr(pg_get_indexdef($2), length(format('CREATE %sINDEX %I ON %I.%I ', CASE WHEN i.indisunique THEN 'UNIQUE ' ELSE '' END,
        i.relname, i.nspname, i.of)) + 1);
    EXECUTE format('CREATE TEMPORARY TABLE randflake_migrate_copy (LIKE %s)', i.rel);
    FOR p IN SELECT v.*, row_number() OVER () AS k FROM randflake_migrate.part AS v WHERE v.move = $1 AND v.rel = i.top LOOP
        EXECUTE format('ALTER TABLE pg_temp.randflake_migrate_copy RENAME COLUMN %I TO %I', p.name, 'randflake_migrate_' || p.k);
        IF EXISTS (SELECT FROM pg_attribute AS a WHERE a.attrelid = i.rel AND a.attname = p.shadow) THEN
            EXECUTE format('ALTER TABLE pg_temp.randflake_migrate_copy RENAME COLUMN %I TO %I', p.shadow, p.name);
        ELSE
            EXECUTE format('ALTER TABLE pg_temp.randflake_migrate_copy ADD COLUMN %I %s', p.name, p.type);
        END IF;
    END LOOP;
    -- PostgreSQL runs the code of an index as the owner of its table.
    EXECUTE format('ALTER TABLE pg_temp.randflake_migrate_copy OWNER TO %I', i.owner);
    EXECUTE 'CREATE INDEX randflake_migrate_copy_index ON pg_temp.randflake_migrate_copy ' || tail;
    FOR p IN SELECT v.*, row_number() OVER () AS k FROM randflake_migrate.part AS v WHERE v.move = $1 AND v.rel = i.top LOOP
        EXECUTE format('ALTER TABLE pg_temp.randflake_migrate_copy RENAME COLUMN %I TO %I', p.name, p.shadow);
    END LOOP;
    PERFORM set_config('search_path', 'pg_catalog, pg_temp', true);
    tail := regexp_replace(pg_get_indexdef('pg_temp.randflake_migrate_copy_index'::regclass), '^.*? ON [^ ]+ ', '');
    DROP TABLE pg_temp.randflake_migrate_copy;
    RETURN tail;
END
$$;

-- Returns two lists of columns. In `shadows`, a column's shadow replaces the column.
CREATE FUNCTION randflake_migrate.names(move integer, rel oid, atts smallint[], OUT names text, OUT shadows text)
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
    SELECT string_agg(quote_ident(a.attname), ', ' ORDER BY k.n), string_agg(quote_ident(coalesce(p.shadow, a.attname)), ', ' ORDER BY k.n)
    FROM unnest($3) WITH ORDINALITY AS k (att, n) JOIN pg_attribute AS a ON a.attrelid = $2 AND a.attnum = k.att
    LEFT JOIN randflake_migrate.part AS p ON p.move = $1 AND p.rel = coalesce(pg_partition_root($2), $2) AND p.name = a.attname
$$;

-- Returns the definition of a foreign key on the shadows. A partitioned table's key needs
-- no NOT VALID, because the keys of the partitions are valid already.
CREATE FUNCTION randflake_migrate.key_on_shadows(move integer, k pg_constraint) RETURNS text
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
    SELECT format('FOREIGN KEY (%s) REFERENCES %s(%s)', c.shadows, ($2).confrelid::regclass, p.shadows)
        || replace(substr(pg_get_constraintdef(($2).oid), length(format('FOREIGN KEY (%s) REFERENCES %s(%s)',
                   c.names, ($2).confrelid::regclass, p.names)) + 1),
                   ' NOT VALID', '') || CASE WHEN t.relkind = 'r' THEN ' NOT VALID' ELSE '' END
    FROM pg_class AS t, randflake_migrate.names($1, ($2).conrelid, ($2).conkey) AS c, randflake_migrate.names($1, ($2).confrelid, ($2).confkey) AS p
    WHERE t.oid = ($2).conrelid
$$;

-- Returns a column as it is after step 7, when the two columns have exchanged their names.
CREATE FUNCTION randflake_migrate.exchanged(p randflake_migrate.part) RETURNS randflake_migrate.part
LANGUAGE sql IMMUTABLE SET search_path = pg_catalog, pg_temp AS $$
    SELECT ROW(p.move, p.k, 3 - p.side, p.rel, p.name, p.shadow_att, p.displaced, p.att, p.shadow, p.is_key, p.is_referred_to, p.root,
               p.root_name, p.was_same, p.old_type, p.old_maker, p.type, p.maker, p.was_same)::randflake_migrate.part
$$;

-- Returns the indexes on the columns that move. Until step 7, `built` is the name of the index on
-- the shadow columns. `parent` is the partitioned index above a partition's index. Step 7 builds
-- the index `parent` on top of the partitions' indexes.
CREATE FUNCTION randflake_migrate.indexes(
    move integer, OUT rel regclass, OUT index regclass, OUT name name, OUT built name, OUT keys_only boolean, OUT partitioned boolean, OUT parent oid, OUT step boolean
) RETURNS SETOF record LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
    SELECT x.*, EXISTS (SELECT FROM randflake_migrate.step AS s WHERE s.move = $1 AND s.kind = 'index' AND s.rel = x.indrelid AND s.made = x.built) FROM (
        SELECT i.indrelid, i.indexrelid, c.relname, format('randflake_%s_%s', $1, i.indexrelid)::name AS built, bool_and((p.p).is_key), c.relkind = 'I', h.inhparent
        FROM randflake_migrate.columns($1) AS p JOIN pg_index AS i ON i.indrelid = p.rel JOIN pg_class AS c ON c.oid = i.indexrelid
        LEFT JOIN pg_inherits AS h ON h.inhrelid = i.indexrelid
        WHERE p.att = ANY (i.indkey::int2[]) OR EXISTS (
            SELECT FROM pg_depend AS d WHERE d.classid = 'pg_class'::regclass AND d.objid = i.indexrelid
            AND d.refclassid = 'pg_class'::regclass AND d.refobjid = p.rel AND d.refobjsubid = p.att)
        GROUP BY i.indrelid, i.indexrelid, c.relname, c.relkind, h.inhparent) AS x ORDER BY x.indexrelid
$$;

-- Returns the foreign keys that move. Until step 7, `made` is the name of the key on the shadows. A
-- partition's key has the name of the parent key.
CREATE FUNCTION randflake_migrate.foreign_keys(move integer, OUT k pg_constraint, OUT made name)
RETURNS SETOF record LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
    SELECT f, format('randflake_%s_%s', $1, (
        WITH RECURSIVE up (oid, parent) AS (
            SELECT f.oid, f.conparentid UNION ALL SELECT c.oid, c.conparentid FROM up JOIN pg_constraint AS c ON c.oid = up.parent
        ) SELECT up.oid FROM up WHERE up.parent = 0))::name
    FROM pg_constraint AS f JOIN randflake_migrate.columns($1) AS p
        ON f.conrelid = p.rel AND p.att = ANY (f.conkey) OR f.confrelid = p.rel AND p.att = ANY (f.confkey)
    WHERE f.contype = 'f' AND (f.conparentid = 0 OR f.confrelid = (SELECT c.confrelid FROM pg_constraint AS c WHERE c.oid = f.conparentid))
    GROUP BY f.oid, f.* ORDER BY f.oid
$$;

-- Returns the statements of step 7, which exchange all columns of a move. Until step 7 runs, each
-- call returns the same statements, unless the columns' dependents change.
CREATE FUNCTION randflake_migrate.swap(move integer, back boolean) RETURNS text
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp SET jit = off AS $$
    SELECT set_config('search_path', randflake_migrate.paths($1), true);
    WITH p AS (
        SELECT v AS part, r AS key, v.*, a.attnum, a.attnotnull, o.not_null, o.not_null_oid,
               (SELECT n.conname FROM pg_constraint AS n JOIN pg_attribute AS h ON h.attrelid = v.rel AND h.attname = v.shadow
                WHERE n.contype = 'n' AND n.conrelid = v.rel AND n.conkey = ARRAY[h.attnum]) AS shadow_not_null FROM randflake_migrate.part AS v
        JOIN randflake_migrate.part AS r ON r.move = v.move AND r.rel = v.root AND r.name = v.root_name
        JOIN pg_attribute AS a ON a.attrelid = v.rel AND a.attname = v.name
        LEFT JOIN LATERAL (SELECT n.conname, n.oid FROM pg_constraint AS n
            WHERE n.contype = 'n' AND n.conrelid = v.rel AND n.conkey = ARRAY[a.attnum]) AS o (not_null, not_null_oid) ON true WHERE v.move = $1
    ), again AS (
        SELECT h.*, k.contype FROM (SELECT array_agg(p.rel::oid) AS rels, array_agg(p.attnum) AS atts FROM p) AS c,
        randflake_migrate.hanging(c.rels, c.atts) WITH ORDINALITY AS h
        LEFT JOIN pg_constraint AS k ON h.class = 'pg_constraint'::regclass AND k.oid = h.object
        WHERE (h.how = 'made again' OR h.kind = 'statistics object' OR k.contype = 'c' AND k.conislocal AND k.conname !~ format('^randflake_%s_', $1)) AND k.contype IS DISTINCT FROM 'f'
    ), q AS MATERIALIZED (
        SELECT c.rel, c.att, (c.p).name, (c.p).rel AS top FROM randflake_migrate.columns($1) AS c
    ), i AS (
        SELECT x.*, k.oid AS k, k.conname, k.contype, k.condeferrable, k.condeferred, n.indisunique, s.nspname,
               CASE WHEN x.partitioned THEN (100 - (SELECT count(*) FROM pg_partition_ancestors(x.rel))) << 32 ELSE 0 END + x.index::oid::bigint AS n
        FROM randflake_migrate.indexes($1) AS x JOIN pg_index AS n ON n.indexrelid = x.index
        JOIN pg_class AS c ON c.oid = x.index JOIN pg_namespace AS s ON s.oid = c.relnamespace
        LEFT JOIN pg_constraint AS k ON k.conindid = x.index AND k.contype IN ('p', 'u') AND k.conrelid = x.rel
        WHERE x.step OR x.partitioned
    ), line (place, n, sql) AS (
        SELECT 0, 0, randflake_migrate.lock(concat_ws(', ', (SELECT randflake_migrate.views(array_agg(h.object ORDER BY h.ordinality DESC)) FROM again AS h
            WHERE h.kind = 'view'), randflake_migrate.in_order(array_agg(p.rel), array_agg(p.root))), 'ACCESS EXCLUSIVE') FROM p
      UNION ALL SELECT 0, 1, format('SELECT randflake_migrate.unchanged(%s);', $1)
      UNION ALL SELECT 1, -h.ordinality, randflake_migrate.removal(h.class, h.object) FROM again AS h
      UNION ALL SELECT 2, p.attnum, randflake_migrate.unfollow(p.part) FROM p
      UNION ALL SELECT 3, (f.k).oid::bigint, randflake_migrate.removal('pg_constraint'::regclass, (f.k).oid)
            FROM randflake_migrate.foreign_keys($1) AS f WHERE (f.k).conparentid = 0
      UNION ALL SELECT 4, i.n, CASE WHEN i.k IS NULL THEN format('DROP INDEX %s;', i.index)
            ELSE randflake_migrate.removal('pg_constraint'::regclass, i.k) END FROM i WHERE i.parent IS NULL
      UNION ALL SELECT 5, p.attnum, format(
                E'ALTER TABLE %1$s RENAME COLUMN %2$I TO %4$I;\nALTER TABLE %1$s RENAME COLUMN %3$I TO %2$I;', p.rel, p.name, p.shadow, p.displaced)
            || CASE WHEN p.attnotnull THEN format(CASE
                    WHEN p.not_null IS NULL THEN E'\nALTER TABLE %1$s ALTER COLUMN %2$I SET NOT NULL;'  -- before PostgreSQL 18 it has no name
                    WHEN p.shadow_not_null IS NULL THEN E'\nALTER TABLE %1$s RENAME CONSTRAINT %4$I TO %5$I;\nALTER TABLE %1$s ADD CONSTRAINT %4$I NOT NULL %2$I;'
                    ELSE E'\nALTER TABLE %1$s RENAME CONSTRAINT %4$I TO %5$I;\nALTER TABLE %1$s RENAME CONSTRAINT %6$I TO %4$I;' END
                    , p.rel, p.name, NULL, p.not_null, format('randflake_%s_%s', $1, p.not_null_oid), p.shadow_not_null)
               ELSE E'\n' || randflake_migrate.checked(randflake_migrate.exchanged(p.part), false) END
            || format(E'\nALTER TABLE %s DROP CONSTRAINT IF EXISTS %I;', p.rel, randflake_migrate.called(p.part, 'check'))
            || CASE WHEN p.is_key AND NOT $2 THEN format(E'\nALTER TABLE %s ALTER COLUMN %I SET DEFAULT %s;', p.rel, p.name, p.maker)
               ELSE '' END FROM p
      UNION ALL SELECT 5, 10000, format('ALTER TABLE %s ALTER COLUMN %I SET NOT NULL;', q.rel::regclass, q.name) FROM q
            JOIN pg_attribute AS a ON a.attrelid = q.rel AND a.attnum = q.att AND a.attnotnull JOIN p ON p.rel = q.top AND p.name = q.name AND NOT p.attnotnull
      UNION ALL SELECT 6, i.n, CASE WHEN i.partitioned AND i.k IS NULL THEN regexp_replace(pg_get_indexdef(i.index),
                format('^(.{%s})ONLY ', length(format('CREATE %sINDEX %I ON ', CASE WHEN i.indisunique THEN 'UNIQUE ' ELSE '' END, i.name))), '\1') || ';'
            WHEN i.partitioned THEN format('ALTER TABLE %s ADD CONSTRAINT %I %s;', i.rel, i.conname, pg_get_constraintdef(i.k))
            WHEN i.k IS NULL THEN format('ALTER INDEX %I.%I RENAME TO %I;', i.nspname, i.built, i.name)
            ELSE format('ALTER TABLE %s ADD CONSTRAINT %I %s USING INDEX %I%s%s;', i.rel, i.conname,
                 CASE i.contype WHEN 'p' THEN 'PRIMARY KEY' ELSE 'UNIQUE' END,
                 i.built, CASE WHEN i.condeferrable THEN ' DEFERRABLE' ELSE '' END,
                 CASE WHEN i.condeferred THEN ' INITIALLY DEFERRED' ELSE '' END) END
            || randflake_migrate.marks(i.index) FROM i
      UNION ALL SELECT 7, (f.k).oid::bigint, format('ALTER TABLE %s RENAME CONSTRAINT %I TO %I;', (f.k).conrelid::regclass, f.made, (f.k).conname)
            FROM randflake_migrate.foreign_keys($1) AS f
      UNION ALL SELECT 8, 0, c.sql FROM (
            SELECT 'pg_class'::regclass AS class, i.index::oid AS object FROM i
            UNION ALL SELECT 'pg_constraint'::regclass, i.k FROM i
            UNION ALL SELECT 'pg_constraint'::regclass, (f.k).oid FROM randflake_migrate.foreign_keys($1) AS f
            ) AS o, randflake_migrate.comments(o.class, o.object) AS c (sql)
      UNION ALL SELECT 8, 0, format('COMMENT ON COLUMN %s.%I IS %L;', q.rel::regclass, q.name, col_description(q.rel, q.att)) FROM q
            WHERE col_description(q.rel, q.att) IS NOT NULL
      UNION ALL SELECT 8, 0, g.sql FROM q, randflake_migrate.column_grants(q.rel, q.att) AS g (sql)
      UNION ALL SELECT 8, 1, format('ALTER TABLE ONLY %s ALTER COLUMN %I SET%s;', q.rel::regclass, q.name, o.option)
            FROM q, randflake_migrate.statistics(q.rel, q.att) AS o (option)
      UNION ALL SELECT 9, h.ordinality * 1000 + d.n, CASE WHEN h.contype = 'c'
                THEN randflake_migrate.by(randflake_migrate.owner_of(h.class, h.object), regexp_replace(d.sql, '^(ALTER TABLE .*?)( NOT VALID)?;$', '\1 NOT VALID;'))
                ELSE randflake_migrate.by(randflake_migrate.owner_of(h.class, h.object), d.sql) END
            FROM again AS h, randflake_migrate.definition(h.class, h.object) WITH ORDINALITY AS d (sql, n)
      UNION ALL SELECT 10, p.attnum, randflake_migrate.follow(randflake_migrate.exchanged(p.part), randflake_migrate.exchanged(p.key)) FROM p
      UNION ALL SELECT 11, 0, format(E'UPDATE randflake_migrate.part AS p SET (side, att, shadow_att, shadow, displaced, converts, type, maker, old_type, old_maker) =\n'
            '    (3 - p.side, p.shadow_att, p.att, p.displaced, p.shadow, p.was_same, p.old_type, p.old_maker, p.type, p.maker) WHERE p.move = %s;\n'
            'UPDATE randflake_migrate.step AS s SET (made, object) = (NULL, NULL) WHERE s.move = %1$s AND s.done IS NOT NULL;', $1)
      UNION ALL SELECT 11, 2, format('UPDATE randflake_migrate.move SET state = %L WHERE id = %s;',
                CASE WHEN $2 THEN 'going back' ELSE 'swapped' END, $1)
    )
    SELECT string_agg(l.sql, E'\n' ORDER BY l.place, l.n, l.sql) FROM line AS l
$$;

-- Returns SQL that drops all objects that the steps of a move have made. undo() uses it.
CREATE FUNCTION randflake_migrate.without_shadows(move integer) RETURNS text
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
    WITH p AS (SELECT v AS part, v.* FROM randflake_migrate.part AS v JOIN pg_class AS c ON c.oid = v.rel WHERE v.move = $1)
    SELECT concat_ws(E'\n', randflake_migrate.lock((SELECT randflake_migrate.in_order(array_agg(p.rel), array_agg(p.root)) FROM p), 'ACCESS EXCLUSIVE'),
        format('SELECT randflake_migrate.unchanged(%s);', $1),
        (SELECT string_agg(format('ALTER TABLE %s DROP CONSTRAINT %I;', c.conrelid::regclass, c.conname), E'\n' ORDER BY s.n)
         FROM randflake_migrate.step AS s JOIN pg_constraint AS c ON c.oid = s.object AND c.conparentid = 0 WHERE s.move = $1 AND s.kind = 'constraint'),
        (SELECT string_agg(concat_ws(E'\n', randflake_migrate.unfollow(p.part), CASE WHEN a.attname IS NOT NULL THEN format('ALTER TABLE %s DROP COLUMN %I;', p.rel, a.attname) END),
             E'\n' ORDER BY p.is_key, p.k)
         FROM p LEFT JOIN pg_attribute AS a ON a.attrelid = p.rel AND a.attnum = p.shadow_att AND NOT a.attisdropped WHERE p.shadow_att IS NOT NULL),
        format(E'UPDATE randflake_migrate.move SET state = ''undone'' WHERE id = %s;', $1))
$$;

-- Raises an error if the tables' dependents have changed since the steps were printed.
CREATE FUNCTION randflake_migrate.unchanged(move integer) RETURNS void
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    s record;
    other text;
BEGIN
    SELECT v.kind, v.sql, m.state INTO s FROM randflake_migrate.step AS v JOIN randflake_migrate.move AS m ON m.id = v.move
    WHERE v.move = $1 AND v.kind IN ('swap', 'undo') ORDER BY v.n DESC LIMIT 1;
    IF s.kind = 'swap' THEN
        PERFORM randflake_migrate.check_made($1);
        SELECT min(x.what) INTO other FROM (
            SELECT 'index ' || i.index FROM randflake_migrate.indexes($1) AS i WHERE i.parent IS NULL AND NOT (i.partitioned OR i.step)
          UNION ALL
            SELECT format('foreign key %I of table %s', (f.k).conname, (f.k).conrelid::regclass) FROM randflake_migrate.foreign_keys($1) AS f
            WHERE (f.k).conparentid = 0 AND NOT EXISTS (SELECT FROM randflake_migrate.step AS o WHERE o.move = $1 AND o.rel = (f.k).conrelid AND o.made = f.made)
        ) AS x (what);
        IF other IS NOT NULL THEN
            RAISE object_not_in_prerequisite_state USING MESSAGE = format('%s was made since move %s began, which does not know it', other, $1),
                HINT = format('Drop it, and make it again after step 7, when its columns have the new keys. Or go back by randflake_migrate.undo(%s).', $1);
        END IF;
    END IF;
    IF strpos(s.sql, CASE s.kind WHEN 'swap' THEN randflake_migrate.swap($1, s.state = 'going back') ELSE randflake_migrate.without_shadows($1) END) = 0 THEN
        RAISE object_not_in_prerequisite_state USING MESSAGE = 'what hangs on the tables has changed since these statements were printed',
            HINT = format('SELECT randflake_migrate.todo(%s) prints them anew.', $1);
    END IF;
END
$$;

-- Returns a step's statements as one transaction.
CREATE FUNCTION randflake_migrate.in_transaction(move integer, n integer, sql text) RETURNS text
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
    SELECT format(E'BEGIN;\nSET LOCAL search_path = %s;\nSET LOCAL standard_conforming_strings = on;\nSET LOCAL check_function_bodies = off;\n'
        'SET LOCAL lock_timeout = ''2s'';\nSELECT randflake_migrate.done(%s, %s);\n%s\nCOMMIT;', randflake_migrate.paths($1), $1, $2, $3)
$$;

-- Adds a step. A step of the kind fill calls fill(), and needs no `sql`.
CREATE FUNCTION randflake_migrate.add(
    move integer, step integer, sql text, kind text DEFAULT 'transaction', rel regclass DEFAULT NULL, made name DEFAULT NULL, keys boolean DEFAULT NULL
) RETURNS void LANGUAGE sql SET search_path = pg_catalog, pg_temp AS $$
    INSERT INTO randflake_migrate.step AS s (move, n, step, sql, kind, rel, made)
    SELECT $1, l.n, $2, CASE
        WHEN $4 = 'index' THEN $3
        WHEN $4 = 'fill' THEN format('CALL randflake_migrate.fill(%s, %s, %L, %s);', $1, l.n, $5, $7::text)
        WHEN $4 = 'constraint' OR $7 IS NOT NULL THEN randflake_migrate.in_transaction($1, l.n,
            $3 || format(E'\nSELECT randflake_migrate.made(%s, %s%s);', $1, l.n, format(', %s, %s', $5::oid, coalesce($7::text, 'NULL'))))
        ELSE randflake_migrate.in_transaction($1, l.n, $3) END, $4, $5, $6
    FROM (SELECT coalesce(max(o.n), 0) + 1 AS n FROM randflake_migrate.step AS o WHERE o.move = $1) AS l
$$;

-- Writes all steps of a move. With `back`, writes the steps that reverse the move.
CREATE FUNCTION randflake_migrate.write(move integer, back boolean) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    p record;
    i record;
    f record;
BEGIN
    FOR keys IN REVERSE 1 .. 0 LOOP  -- first keys, then references
        FOR p IN SELECT v.rel, string_agg(format(E'ALTER TABLE %s ADD COLUMN %I %s;\n%s\n', v.rel, v.shadow, v.type,
                     randflake_migrate.checked(v, a.attnotnull)) || randflake_migrate.follow(v, r), E'\n') AS sql
                 FROM randflake_migrate.part AS v JOIN randflake_migrate.part AS r ON r.move = v.move AND r.rel = v.root AND r.name = v.root_name
                 JOIN pg_attribute AS a ON a.attrelid = v.rel AND a.attname = v.name
                 WHERE v.move = $1 AND NOT back AND v.is_key = (keys = 1) GROUP BY v.rel ORDER BY v.rel LOOP
            PERFORM randflake_migrate.add($1, CASE keys WHEN 1 THEN 1 ELSE 4 END, p.sql, rel => p.rel, keys => keys = 1);
            PERFORM randflake_migrate.add($1, CASE keys WHEN 1 THEN 2 ELSE 4 END, NULL, 'fill', p.rel, keys => keys = 1);
        END LOOP;
        FOR i IN SELECT x.*, d.indisunique FROM randflake_migrate.indexes($1) AS x JOIN pg_index AS d ON d.indexrelid = x.index
                 WHERE x.keys_only = (keys = 1) AND NOT x.partitioned LOOP
            PERFORM randflake_migrate.add($1, CASE keys WHEN 1 THEN 3 ELSE 5 END, format('CREATE %sINDEX CONCURRENTLY %I ON %s %s;',
                CASE WHEN i.indisunique THEN 'UNIQUE ' ELSE '' END, i.built, i.rel, randflake_migrate.on_shadows($1, i.index)), 'index', i.rel, i.built);
        END LOOP;
        FOR p IN SELECT v.rel, randflake_migrate.called(v, 'check') AS made FROM randflake_migrate.part AS v
                 LEFT JOIN pg_attribute AS s ON s.attrelid = v.rel AND s.attnum = v.shadow_att
                 WHERE v.move = $1 AND v.is_key = (keys = 1) AND s.attnotnull IS NOT TRUE LOOP
            PERFORM randflake_migrate.add($1, CASE keys WHEN 1 THEN 3 ELSE 5 END, format('ALTER TABLE %s VALIDATE CONSTRAINT %I;', p.rel, p.made));
        END LOOP;
    END LOOP;

    FOR parents IN 0 .. 1 LOOP  -- first foreign keys of partitions and plain tables
        FOR f IN SELECT v.k, v.made, randflake_migrate.owner_of('pg_class'::regclass, (v.k).conrelid) AS owner
                 FROM randflake_migrate.foreign_keys($1) AS v JOIN pg_class AS c ON c.oid = (v.k).conrelid
                 WHERE parents = CASE WHEN c.relkind <> 'p' THEN 0 WHEN (v.k).conparentid = 0 THEN 1 END LOOP
            -- While a trigger reserved a shadow for a reference, another transaction may have given
            -- the referenced row a different shadow. This UPDATE corrects the reference.
            PERFORM randflake_migrate.add($1, 6,
                randflake_migrate.lock(concat_ws(', ', (f.k).confrelid::regclass, (f.k).conrelid::regclass), 'SHARE ROW EXCLUSIVE') || E'\n'
                || coalesce((SELECT string_agg(randflake_migrate.by(f.owner, format('UPDATE %s AS t SET %I = m.shadow FROM randflake_migrate.%I() AS m'
                       ' WHERE t.%I = m.number AND t.%2$I <> m.shadow;', c.rel::regclass, (c.p).shadow, randflake_migrate.called(r, 'mixed'), (c.p).name)) || E'\n', '')
                    FROM randflake_migrate.columns($1) AS c JOIN randflake_migrate.part AS r ON r.move = $1 AND r.rel = (c.p).root AND r.name = (c.p).root_name
                    WHERE c.rel = (f.k).conrelid AND NOT (c.p).is_key AND NOT (c.p).converts), '')
                || CASE parents WHEN 0 THEN a.sql ELSE randflake_migrate.by(f.owner, a.sql) END, 'constraint', (f.k).conrelid, f.made)
            FROM (SELECT format('ALTER TABLE %s ADD CONSTRAINT %I %s;', (f.k).conrelid::regclass, f.made, randflake_migrate.key_on_shadows($1, f.k))) AS a (sql);
        END LOOP;
        FOR f IN SELECT v.k, v.made, randflake_migrate.owner_of('pg_class'::regclass, (v.k).conrelid) AS owner
                 FROM randflake_migrate.foreign_keys($1) AS v JOIN pg_class AS c ON c.oid = (v.k).conrelid
                 WHERE parents = 0 AND c.relkind <> 'p' AND (v.k).convalidated LOOP
            PERFORM randflake_migrate.add($1, 6, randflake_migrate.by(f.owner,
                format('ALTER TABLE %s VALIDATE CONSTRAINT %I;', (f.k).conrelid::regclass, f.made)), rel => (f.k).conrelid);
        END LOOP;
    END LOOP;

    PERFORM randflake_migrate.add($1, 7, randflake_migrate.swap($1, back), 'swap');
    FOR f IN SELECT c.conrelid::regclass AS rel, c.conname, randflake_migrate.owner_of('pg_class'::regclass, c.conrelid) AS owner
             FROM pg_constraint AS c WHERE c.contype = 'c' AND c.convalidated AND c.conislocal
             AND c.oid IN (SELECT k.oid FROM randflake_migrate.columns($1) AS v JOIN pg_constraint AS k ON k.conrelid = v.rel AND v.att = ANY (k.conkey)) LOOP
        PERFORM randflake_migrate.add($1, 7, randflake_migrate.by(f.owner, format('ALTER TABLE %s VALIDATE CONSTRAINT %I;', f.rel, f.conname)));
    END LOOP;
    PERFORM randflake_migrate.add($1, 8,
        (SELECT randflake_migrate.lock(randflake_migrate.in_order(array_agg(v.rel), array_agg(v.root)), 'ACCESS EXCLUSIVE')
            || format(E'\nSELECT randflake_migrate.check_made(%s);\n', $1)
            || string_agg(randflake_migrate.unfollow(randflake_migrate.exchanged(v))
            || format(E'\nALTER TABLE %s DROP COLUMN %I;', v.rel, v.displaced), E'\n' ORDER BY v.is_key, v.rel, v.name)
        FROM randflake_migrate.part AS v WHERE v.move = $1)
        || format(E'\nUPDATE randflake_migrate.move SET state = %L WHERE id = %s;', CASE WHEN back THEN 'undone' ELSE 'moved' END, $1));
END
$$;

-- Begins the online move of a table's group by recording its steps. Returns the move's number.
CREATE FUNCTION randflake_migrate.start(member regclass, target text DEFAULT 'bigint', rows text DEFAULT 'all') RETURNS integer
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    wanted regclass;
    made integer;
BEGIN
    LOCK TABLE randflake_migrate.move;
    SELECT v.id INTO made FROM randflake_migrate.move AS v JOIN randflake_migrate.part AS p ON p.move = v.id
    WHERE p.rel = member AND v.state NOT IN ('moved', 'undone') LIMIT 1;
    IF FOUND THEN
        RAISE object_in_use USING MESSAGE = format('%s is being moved already', member),
            HINT = format('SELECT randflake_migrate.todo(%s) shows what is left.', made);
    END IF;
    wanted := randflake_migrate.group_of(member, target, rows, true);
    IF NOT EXISTS (SELECT FROM randflake_migrate.moving(target, rows) AS v WHERE v.grp = wanted AND v.changes) THEN
        RAISE object_not_in_prerequisite_state USING MESSAGE = format('nothing but defaults changes in the group of %s', wanted),
            HINT = 'randflake_migrate.transaction() takes a moment.';
    END IF;
    INSERT INTO randflake_migrate.move AS v (id, grp, mover, tables, names, owners, target, rows)
    SELECT randflake_migrate.next_move(), wanted::text, current_user, array_agg(c.oid), array_agg(c.oid::regclass::text), array_agg(r.rolname), $2, $3
    FROM pg_class AS c JOIN pg_roles AS r ON r.oid = c.relowner
    WHERE c.oid IN (SELECT m.rel FROM randflake_migrate.moving($2, $3) AS m WHERE m.grp = wanted) RETURNING v.id INTO made;
    INSERT INTO randflake_migrate.part
    SELECT made, row_number() OVER (ORDER BY v.rel, v.att), 1, v.rel, v.name, v.att, randflake_migrate.beside('new_', v.name, v.att), NULL,
           randflake_migrate.beside('old_', v.name, v.att), v.source <> 'reference',
           v.source <> 'reference' AND EXISTS (SELECT FROM randflake_migrate.moving($2, $3) AS o
               WHERE o.source = 'reference' AND o.root = v.rel AND o.root_name = v.name),
           v.root, v.root_name, v.keeps, v.to_type, CASE WHEN v.source <> 'reference' THEN v.generator END, v.type,
           CASE WHEN v.source IN ('identity', 'serial') THEN format('nextval(%L::regclass)', randflake_migrate.sequence_of(v.rel, v.att)::regclass) END,
           k.source = 'randflake'
    FROM randflake_migrate.moving($2, $3) AS v JOIN randflake_migrate.moving($2, $3) AS k ON k.rel = v.root AND k.name = v.root_name
    WHERE v.grp = wanted;
    PERFORM randflake_migrate.write(made, false);
    RETURN made;
END
$$;

-- Returns the remaining statements in order, for \gexec. Includes step 8 only with `clean_up`.
CREATE FUNCTION randflake_migrate.todo(move integer, clean_up boolean DEFAULT false) RETURNS SETOF text
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    s record;
    b record;
BEGIN
    UPDATE randflake_migrate.step AS v SET sql = randflake_migrate.in_transaction($1, v.n, CASE v.kind
        WHEN 'swap' THEN randflake_migrate.swap($1, m.state = 'going back') ELSE randflake_migrate.without_shadows($1) END)
    FROM randflake_migrate.move AS m WHERE m.id = $1 AND v.move = $1 AND v.done IS NULL AND v.kind IN ('swap', 'undo');
    -- A step for a dropped partition counts as done.
    UPDATE randflake_migrate.step AS v SET done = clock_timestamp() WHERE v.move = $1 AND v.done IS NULL
        AND v.rel NOT IN (SELECT c.rel FROM randflake_migrate.columns($1) AS c UNION ALL SELECT p.rel FROM randflake_migrate.part AS p WHERE p.move = $1);
    FOR s IN SELECT v.* FROM randflake_migrate.step AS v WHERE v.move = $1 AND v.done IS NULL AND (v.step < 8 OR clean_up) ORDER BY v.n LOOP
        b := NULL;
        IF s.kind = 'index' THEN
            SELECT * INTO b FROM randflake_migrate.built($1, s.n);
            IF NOT b.valid THEN  -- its build was interrupted
                RETURN NEXT format('DROP INDEX CONCURRENTLY %s;', b.index::regclass);
            END IF;
            IF b.valid IS NOT TRUE THEN
                RETURN NEXT format('SELECT randflake_migrate.begin(%s, %s);', $1, s.n);
                RETURN NEXT s.sql;
            END IF;
            RETURN NEXT format('SELECT randflake_migrate.done(%s, %s);', $1, s.n);
        ELSE
            RETURN NEXT s.sql;
        END IF;
    END LOOP;
END
$$;

-- Replaces the remaining steps by the steps that reverse the move. todo() then prints them.
CREATE FUNCTION randflake_migrate.undo(move integer) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    m record;
BEGIN
    SELECT * INTO m FROM randflake_migrate.move AS v WHERE v.id = $1 FOR UPDATE;
    IF m.state IS NULL OR m.state NOT IN ('moving', 'swapped') THEN
        RAISE object_not_in_prerequisite_state USING MESSAGE = format('move %s cannot be undone', $1),
            DETAIL = format('It is %s.', coalesce(m.state, 'unknown')),
            HINT = 'After step 8 the old numbers are gone. A move that is going back goes back to its end.';
    END IF;
    DELETE FROM randflake_migrate.step AS s WHERE s.move = $1 AND s.done IS NULL;
    IF m.state = 'swapped' THEN
        PERFORM randflake_migrate.same(m.mover, m.tables, m.names, m.owners);
        UPDATE randflake_migrate.move AS v SET state = 'going back' WHERE v.id = $1;
        PERFORM randflake_migrate.write($1, true);
    ELSE
        PERFORM randflake_migrate.add($1, 7, randflake_migrate.without_shadows($1), 'undo');
    END IF;
END
$$;

-- --- masks --------------------------------------------------------------------------------------

-- Prints functions for tables whose keys do not move. Each function takes the mask of a key and
-- returns the key's row, in which masks replace the key and the references. So roles that may not
-- read the tables see no number. The label of a mask is the name of the key's table.
CREATE FUNCTION randflake_migrate.masks(api name DEFAULT 'api') RETURNS SETOF text
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp SET jit = off AS $$
    SELECT format(E'CREATE FUNCTION %1$I.%2$I(bigint) RETURNS TABLE (%3$s)\nLANGUAGE sql STABLE SECURITY DEFINER BEGIN ATOMIC\n'
                  '    SELECT %4$s FROM %5$s AS t WHERE t.%6$I = %7$s.randflake_unmask($1, %8$L);\nEND;\n'
                  'REVOKE EXECUTE ON FUNCTION %1$I.%2$I(bigint) FROM PUBLIC;%9$s',
        $1, c.relname, string_agg(format('%I %s', a.attname, CASE WHEN m.root IS NULL
                THEN format_type(a.atttypid, a.atttypmod) ELSE 'bigint' END), ', ' ORDER BY a.attnum),
        string_agg(format(CASE WHEN m.root IS NULL THEN 't.%I' ELSE '%2$s.randflake_mask(t.%1$I, %3$L)' END,
                a.attname, p.pronamespace::regnamespace, m.root), ', ' ORDER BY a.attnum),
        k.rel, k.name, p.pronamespace::regnamespace, k.root, CASE WHEN c.relowner <> quote_ident(current_user)::regrole THEN format(
            E'\nALTER FUNCTION %I.%I(bigint) OWNER TO %s;', $1, c.relname, c.relowner::regrole) END)
    FROM randflake_migrate.moving('bigint', 'all') AS k JOIN pg_class AS c ON c.oid = k.rel
    JOIN pg_attribute AS a ON a.attrelid = k.rel AND a.attnum > 0 AND NOT a.attisdropped
    LEFT JOIN randflake_migrate.moving('bigint', 'all') AS m ON m.rel = k.rel AND m.att = a.attnum
    JOIN pg_proc AS p ON p.oid = randflake_migrate.ours('randflake_unmask', 2) WHERE k.source <> 'reference'
    GROUP BY c.relname, c.relowner, k.rel, k.name, k.root, p.pronamespace ORDER BY k.rel
$$;

-- The statements that these functions print must not depend on the caller's settings.
DO $$
BEGIN
    EXECUTE (SELECT string_agg(format('ALTER FUNCTION %s SET standard_conforming_strings = on SET datestyle = ISO SET intervalstyle = postgres'
                 ' SET extra_float_digits = 1 SET quote_all_identifiers = off;', p.oid::regprocedure), '')
             FROM pg_proc AS p WHERE p.pronamespace = 'randflake_migrate'::regnamespace
                 AND p.proname IN ('plan', 'transaction', 'start', 'todo', 'undo', 'unchanged', 'done', 'begin'));
END
$$;

-- Sets search_path to the session's default for later statements in the transaction.
SET LOCAL search_path TO DEFAULT;
