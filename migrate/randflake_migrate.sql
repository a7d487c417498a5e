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
--
-- The functions that an operator calls set jit = off, also for what they call: to compile one of
-- these queries takes longer than to run it.

SET LOCAL search_path = pg_catalog, pg_temp;

CREATE SCHEMA randflake_migrate;
COMMENT ON SCHEMA randflake_migrate IS
    'moves a database to identifiers of randflake; see docs/migrating.md';

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
END
$$;

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
END
$$;

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

-- Other owners

CREATE FUNCTION randflake_migrate.run() RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    rows bigint := 0;
    statement text := pg_catalog.current_setting('randflake_migrate.statement', true);
BEGIN
    IF statement OPERATOR(pg_catalog.<>) '' THEN
        PERFORM pg_catalog.set_config('search_path',
            pg_catalog.current_setting('randflake_migrate.path'), true);
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
CREATE FUNCTION randflake_migrate.as_owner(owner name, statement text) RETURNS bigint
LANGUAGE plpgsql AS $$
DECLARE
    role oid := (SELECT r.oid FROM pg_catalog.pg_roles AS r
        WHERE r.rolname OPERATOR(pg_catalog.=) $1);
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
    ELSIF NOT EXISTS (SELECT FROM pg_catalog.pg_class AS c
        WHERE c.relname OPERATOR(pg_catalog.=) view AND c.relowner OPERATOR(pg_catalog.=) role
            AND c.relnamespace OPERATOR(pg_catalog.=)
                'randflake_migrate'::pg_catalog.regnamespace)
    THEN
        IF pg_catalog.to_regclass(pg_catalog.format('randflake_migrate.%I', view)) IS NOT NULL THEN
            EXECUTE pg_catalog.format('DROP MATERIALIZED VIEW randflake_migrate.%I', view);
        END IF;
        EXECUTE pg_catalog.format('CREATE MATERIALIZED VIEW randflake_migrate.%I'
            ' AS SELECT randflake_migrate.run() AS n WITH NO DATA', view);
        EXECUTE pg_catalog.format('GRANT EXECUTE ON FUNCTION randflake_migrate.run() TO %I', $1);
        PERFORM randflake_migrate.hand_over($1, view);
    END IF;
    PERFORM pg_catalog.set_config('randflake_migrate.path',
            CASE WHEN path OPERATOR(pg_catalog.~) '^pg_catalog, ' THEN path
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
        UNION ALL SELECT format('ALTER %s %s OWNER TO %I',
            CASE c.relkind WHEN 'm' THEN 'MATERIALIZED VIEW' ELSE 'TABLE' END, c.oid::regclass, $1)
        FROM pg_class AS c WHERE c.relnamespace = 'randflake_migrate'::regnamespace
            AND c.relkind IN ('r', 'm') AND c.relname = ANY (names)
        UNION ALL SELECT format('ALTER FUNCTION %s OWNER TO %I', p.oid::regprocedure, $1)
        FROM pg_proc AS p WHERE p.pronamespace = 'randflake_migrate'::regnamespace
            AND p.proname = ANY (names)
        UNION ALL SELECT format('REVOKE CREATE ON SCHEMA randflake_migrate FROM %I', $1)
    LOOP
        EXECUTE statement;
    END LOOP;
END
$$;

-- Returns SQL that runs a statement as the role `owner`.
CREATE FUNCTION randflake_migrate.by(owner oid, statement text) RETURNS text
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
    SELECT CASE WHEN r.rolname = current_user THEN $2
        ELSE format('SELECT randflake_migrate.as_owner(%L, %L);', r.rolname, $2) END
    FROM pg_roles AS r WHERE r.oid = $1
$$;

-- Returns SQL that makes the role `owner` the owner of objects in this schema.
CREATE FUNCTION randflake_migrate.given(owner oid, VARIADIC names name[]) RETURNS text
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
    SELECT CASE WHEN r.rolname = current_user THEN ''
        ELSE format(E'SELECT randflake_migrate.hand_over(%L, %s);\n', r.rolname,
            (SELECT string_agg(quote_literal(n), ', ') FROM unnest($2) AS n)) END
    FROM pg_roles AS r WHERE r.oid = $1
$$;

-- Returns the owner of an object, or of the table to which the object belongs.
CREATE FUNCTION randflake_migrate.owner_of(object oid, class oid DEFAULT 'pg_class'::regclass)
RETURNS oid LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
    SELECT coalesce((SELECT p.proowner FROM pg_proc AS p
            WHERE $2 = 'pg_proc'::regclass AND p.oid = $1),
        (SELECT c.relowner FROM pg_class AS c WHERE c.oid = (
            SELECT $1 WHERE $2 = 'pg_class'::regclass
            UNION ALL SELECT x.conrelid FROM pg_constraint AS x
            WHERE $2 = 'pg_constraint'::regclass AND x.oid = $1
            UNION ALL SELECT x.tgrelid FROM pg_trigger AS x
            WHERE $2 = 'pg_trigger'::regclass AND x.oid = $1
            UNION ALL SELECT x.ev_class FROM pg_rewrite AS x
            WHERE $2 = 'pg_rewrite'::regclass AND x.oid = $1
            UNION ALL SELECT x.polrelid FROM pg_policy AS x
            WHERE $2 = 'pg_policy'::regclass AND x.oid = $1
            UNION ALL SELECT x.adrelid FROM pg_attrdef AS x
            WHERE $2 = 'pg_attrdef'::regclass AND x.oid = $1
            UNION ALL SELECT x.stxrelid FROM pg_statistic_ext AS x
            WHERE $2 = 'pg_statistic_ext'::regclass AND x.oid = $1
        )), randflake_migrate.me())
$$;

CREATE FUNCTION randflake_migrate.validation(rel regclass, name name) RETURNS text
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
    SELECT randflake_migrate.by(randflake_migrate.owner_of($1),
        format('ALTER TABLE %s VALIDATE CONSTRAINT %I;', $1, $2))
$$;

-- Raises an error if the current role is not `mover`, or if a table has another name or owner.
CREATE FUNCTION randflake_migrate.same(mover name, tables oid[], names text[], owners name[])
RETURNS void LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    other text;
BEGIN
    IF current_user <> $1 THEN
        RAISE insufficient_privilege USING
            MESSAGE = format('these statements are for role "%s"', $1),
            HINT = 'Run them as that role, or print them as this one.';
    END IF;
    SELECT min(x.name) INTO other
    FROM unnest($2, $3, $4) AS x (rel, name, owner) LEFT JOIN pg_class AS c ON c.oid = x.rel
    WHERE (c.oid::regclass::text, pg_get_userbyid(c.relowner)) IS DISTINCT FROM (x.name, x.owner);
    IF other IS NOT NULL THEN
        RAISE object_not_in_prerequisite_state USING
            MESSAGE = format('table %s is not the one that these statements are for', other),
            HINT = 'It has another name or owner now, or is gone. Give it back what it had.';
    END IF;
END
$$;

-- The values of columns

-- Node ids of other servers that made identifiers of these tables.
CREATE TABLE randflake_migrate.node (id integer PRIMARY KEY CHECK (id BETWEEN 0 AND 131071));

-- Tells identifiers of 64 and of 53 bits from small numbers (below 2^32) and others. An identifier
-- decodes to a time before now and to a known node id; `doubtful` ones have an unknown node id. One
-- small number in 50 decodes so too, but one identifier in 2^31 is small.
CREATE FUNCTION randflake_migrate.kinds(
    numbers bigint[], OUT n bigint, OUT kind text, OUT node integer
) RETURNS SETOF record LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    RETURN QUERY EXECUTE format(
        'WITH known AS MATERIALIZED (SELECT v.id FROM randflake_migrate.node AS v UNION SELECT'
        ' generate_series(s.first_node_id, s.first_node_id + s.node_count - 1) FROM %s() AS s)'
        ' SELECT n, CASE WHEN n BETWEEN -4294967295 AND 4294967295 THEN ''small'''
        ' WHEN d.node_id IN (SELECT id FROM known) THEN ''64'''
        ' WHEN e.node_id IN (SELECT id FROM known) THEN ''53'''
        ' WHEN coalesce(d.node_id, e.node_id) IS NOT NULL THEN ''doubtful'' ELSE ''other'' END,'
        ' coalesce(d.node_id, e.node_id) FROM unnest($1) AS n'
        ' LEFT JOIN %s(n) AS d ON d.generated_at < now() + interval ''1 day'''
        ' LEFT JOIN %s(CASE WHEN n BETWEEN 0 AND 9007199254740991 THEN n END) AS e'
        ' ON e.generated_at < now() + interval ''1 day''',
        randflake_migrate.ours('randflake_status', 0),
        randflake_migrate.ours('randflake_decode', 1),
        randflake_migrate.ours('randflake53_decode', 1)) USING numbers;
END
$$;

-- Says why numbers of a column may be of another kind than the move takes them for. With `keeps`,
-- they become values of the type, so all must be identifiers. Otherwise they get new keys, so all
-- must be numbers that the sequence has made, or small.
CREATE FUNCTION randflake_migrate.doubt(
    rel regclass, name name, numbers bigint[], keeps boolean,
    OUT note text, OUT nodes text, OUT bits text
) LANGUAGE plpgsql STABLE STRICT SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    x record;
    made bigint := coalesce((
        SELECT pg_sequence_last_value(randflake_migrate.sequence_of($1, a.attnum))
        FROM pg_attribute AS a WHERE a.attrelid = $1 AND a.attname = $2), 0);
BEGIN
    IF numbers = '{}' OR NOT keeps AND NOT EXISTS (
        SELECT FROM unnest(numbers) AS n WHERE n NOT BETWEEN -4294967295 AND 4294967295) THEN
        RETURN;
    END IF;
    WITH k AS MATERIALIZED (SELECT * FROM randflake_migrate.kinds(numbers))
    SELECT count(*) AS n, count(*) FILTER (WHERE k.kind = 'small') AS small,
        count(*) FILTER (WHERE k.kind = '64') AS wide,
        count(*) FILTER (WHERE k.kind = '53') AS narrow,
        count(*) FILTER (WHERE k.kind = 'doubtful') AS doubtful,
        count(*) FILTER (WHERE k.kind <> 'small'
            AND k.n NOT BETWEEN least(made, 0) AND greatest(made, 0)) AS beyond,
        -- Servers have few node ids, so most of their identifiers share one with others. Of the 256
        -- node ids of 53 bits, even random ones are shared, but not by one in 64.
        (SELECT string_agg(DISTINCT o.node::text, ', ') FILTER (WHERE o.shared) FROM (
            SELECT k.node, count(*) AS c, count(*) > 1 AND (NOT k.short
                OR count(*) * 64 > sum(count(*)) OVER (PARTITION BY k.short)) AS shared
            FROM (SELECT d.node, d.n BETWEEN 0 AND 9007199254740991 AS short
                FROM k AS d WHERE d.kind = 'doubtful') AS k
            GROUP BY k.node, k.short) AS o
         HAVING 2 * sum(o.c) FILTER (WHERE o.shared) >= sum(o.c)) AS nodes
    INTO x FROM k;
    IF keeps AND x.wide < x.n OR NOT keeps AND (x.beyond + x.wide > 0
        OR x.narrow * 10 + x.doubtful * 2 > greatest(x.n - x.small, 5)) THEN
        note := format('holds %s: of %s numbers, %s are below 2^32, %s identifiers, %s identifiers'
            ' of 53 bits, %s have the time of an identifier%s, %s are others',
            CASE WHEN keeps THEN 'numbers that are no identifiers'
            ELSE 'numbers that its sequence has not made, which new keys would replace' END,
            x.n, x.small, x.wide, x.narrow, x.doubtful,
            ' and an unknown node id (' || x.nodes || ')',
            x.n - x.small - x.wide - x.narrow - x.doubtful);
        nodes := x.nodes;
        bits := CASE WHEN keeps OR x.wide > 0 THEN '' WHEN x.narrow > 0 THEN '53' END;
    END IF;
EXCEPTION WHEN OTHERS THEN
    note := 'has large numbers, and nothing tells whether they are identifiers: ' || SQLERRM;
END
$$;

-- Raises an error if doubt() finds one. While a step runs, a table's owner can call this function,
-- so that the owner's role can read the table, but not decode its identifiers.
CREATE FUNCTION randflake_migrate.look(rel regclass, name name, numbers bigint[], keeps boolean)
RETURNS bigint LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    note text := (randflake_migrate.doubt(rel, name, numbers, keeps)).note;
BEGIN
    IF note IS NOT NULL THEN
        RAISE object_not_in_prerequisite_state USING
            MESSAGE = format('column %I of table %s %s', name, rel, note),
            HINT = format('SELECT k.* FROM randflake_migrate.kinds(ARRAY(SELECT %I FROM %s)) AS k'
                ' WHERE k.kind <> %L; shows them.',
                name, rel, CASE WHEN keeps THEN '64' ELSE 'small' END);
    END IF;
    RETURN cardinality(numbers);
END
$$;
REVOKE EXECUTE ON FUNCTION randflake_migrate.look(regclass, name, bigint[], boolean) FROM PUBLIC;

-- Returns the statements that look at all values of a column, as the owner of its table.
CREATE FUNCTION randflake_migrate.looked_at(rel regclass, name name, keeps boolean) RETURNS text
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
    SELECT CASE WHEN c.relowner = randflake_migrate.me() THEN s.sql ELSE format(
        E'GRANT EXECUTE ON FUNCTION %1$s TO %2$s;\n%3$s\n'
        'REVOKE EXECUTE ON FUNCTION %1$s FROM %2$s;', 'randflake_migrate.look',
        c.relowner::regrole, randflake_migrate.by(c.relowner, s.sql)) END
    FROM pg_class AS c, format('SELECT sum(randflake_migrate.look(%L, %L, s.numbers, %s))'
        ' FROM (SELECT array_agg(v.n) AS numbers'
        ' FROM (SELECT t.%I AS n, row_number() OVER () / 10000 AS g FROM %s AS t) AS v'
        ' WHERE v.n IS NOT NULL GROUP BY v.g) AS s;', $1, $2, $3::text, $2, $1) AS s (sql)
    WHERE c.oid = $1
$$;

-- Returns numbers of a column for the plan. Of another role's table, returns those that ANALYZE
-- saw, because a query would run the role's code.
CREATE FUNCTION randflake_migrate.sample(rel regclass, name name) RETURNS bigint[]
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    result bigint[];
BEGIN
    IF randflake_migrate.owner_of($1) = randflake_migrate.me() THEN
        EXECUTE format('SELECT array_agg(n) FROM ('
            '(SELECT t.%1$I AS n FROM %2$s AS t'
            ' WHERE t.%1$I BETWEEN -4294967295 AND 4294967295 LIMIT 100)'
            ' UNION ALL (SELECT t.%1$I FROM %2$s AS t WHERE t.%1$I > 4294967295 LIMIT 500)'
            ' UNION ALL (SELECT t.%1$I FROM %2$s AS t WHERE t.%1$I < -4294967295 LIMIT 500)) AS s',
            $2, $1) INTO result;
    ELSE
        SELECT array_agg(n) INTO result
        FROM pg_class AS c JOIN pg_stats AS s ON s.tablename = c.relname
            AND quote_ident(s.schemaname)::regnamespace = c.relnamespace,
        unnest(s.histogram_bounds::text::bigint[] || s.most_common_vals::text::bigint[]) AS n
        WHERE c.oid = $1 AND s.attname = $2;
    END IF;
    RETURN coalesce(result, '{}');
END
$$;

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

-- The expressions of objects

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
    nodes text[] := '{}';        -- open ones
    queries integer[] := '{0}';  -- of these; their numbers; the count of relations before each
    numbers integer[] := '{0}';
    before integer[] := '{0}';
    last integer := 0;
    relations oid[];             -- in the range tables of these queries
    result text[] := '{}';
BEGIN
    SELECT x.tree, ARRAY[x.rel, x.rel] INTO tree, relations FROM (
        SELECT concat(i.indexprs, i.indpred), i.indrelid FROM pg_index AS i
        WHERE $1 = 'pg_class'::regclass AND i.indexrelid = $2
        UNION ALL SELECT concat(r.ev_qual, r.ev_action), r.ev_class FROM pg_rewrite AS r
        WHERE $1 = 'pg_class'::regclass AND r.ev_class = $2 AND r.rulename = '_RETURN'
        UNION ALL SELECT concat(conbin, NULL), conrelid FROM pg_constraint AS x
        WHERE $1 = 'pg_constraint'::regclass AND x.oid = $2
        UNION ALL SELECT concat(ev_qual, ev_action), ev_class FROM pg_rewrite AS x
        WHERE $1 = 'pg_rewrite'::regclass AND x.oid = $2
        UNION ALL SELECT concat(polqual, polwithcheck), polrelid FROM pg_policy AS x
        WHERE $1 = 'pg_policy'::regclass AND x.oid = $2
        UNION ALL SELECT concat(tgqual, NULL), tgrelid FROM pg_trigger AS x
        WHERE $1 = 'pg_trigger'::regclass AND x.oid = $2
        UNION ALL SELECT concat(prosqlbody, NULL), 0 FROM pg_proc AS x
        WHERE $1 = 'pg_proc'::regclass AND x.oid = $2
        UNION ALL SELECT concat(prqual, NULL), prrelid FROM pg_publication_rel AS x
        WHERE $1 = 'pg_publication_rel'::regclass AND x.oid = $2
        UNION ALL SELECT concat(stxexprs, NULL), stxrelid FROM pg_statistic_ext AS x
        WHERE $1 = 'pg_statistic_ext'::regclass AND x.oid = $2
    ) AS x (tree, rel);
    FOR token IN SELECT m[1] FROM regexp_matches(tree, '(\{VAR [^{}]*\}|\{\w*|\}|:relid \d+'
        '|(?:[^{}:\\]|\\.|:(?!relid ))+)', 'g') AS m
    LOOP
        IF token LIKE '{VAR %' THEN
            v := regexp_match(token, ':varno (\d+) :varattno (-?\d+) .*:varlevelsup (\d+)');
            v[1] := relations[before[cardinality(before) - v[3]::integer] + v[1]::integer];
            token := CASE WHEN v[1] || '.' || v[2] = ANY ($3) THEN 'KEY'
                WHEN EXISTS (SELECT FROM pg_class AS c
                    WHERE c.oid = v[1]::oid AND c.relkind IN ('r', 'p')) THEN 'OTHER'
                ELSE token END;
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
    tree := regexp_replace(array_to_string(result, ''), '\{CONST [^{}]*\}', 'CONST', 'g');
    tree := regexp_replace(tree, '\{FUNCEXPR [^{}]*:args \(CONST\)[^{}]*\}', 'CONST', 'g');
    tree := regexp_replace(tree,
        '\{ARRAY(?:EXPR)? [^{}]*:elements \(CONST[^{}]*\}', 'CONST', 'g');
    RETURN regexp_replace(tree,
        '\{FUNCEXPR [^{}]*:funcformat 2 [^{}]*:args \((KEY|OTHER)\)[^{}]*\}', '\1', 'g');
END
$$;

-- Returns the operations that this expression applies to a key, but that the type does not support.
CREATE FUNCTION randflake_migrate.lacking(tree text, type regtype) RETURNS text
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
    SELECT string_agg(DISTINCT x.what, ', ') FROM (
        SELECT format('%s with %s', o.oprname,
            format_type(CASE r[2] WHEN 'KEY' THEN o.oprright ELSE o.oprleft END, NULL))
        FROM regexp_matches($1, ':opno (\d+) [^{}]*:args '
            '\((KEY|CONST|OTHER|\{[^{}]*\}) ?(KEY|CONST|OTHER)?', 'g') AS r
        JOIN pg_operator AS o ON o.oid = r[1]::oid
        WHERE 'KEY' IN (r[2], r[3]) AND ('CONST' IN (r[2], r[3]) OR 'OTHER' IN (r[2], r[3])
            OR NOT EXISTS (SELECT FROM pg_operator AS n WHERE n.oprname = o.oprname
                AND n.oprright = $2 AND n.oprresult = 'bool'::regtype))
        UNION ALL SELECT p.oid::regprocedure::text
        FROM regexp_matches($1, '\{(?:FUNCEXPR :funcid|AGGREF :aggfnoid) (\d+) [^{}]*'
            ':args \((?:[^{}]*|\{TARGETENTRY :expr )KEY', 'g') AS r
        JOIN pg_proc AS p ON p.oid = r[1]::oid
        WHERE p.proargtypes::oid[] && '{int2,int4,int8,numeric,float8}'::regtype[]::oid[]
            AND p.proname <> 'int8' AND NOT EXISTS (SELECT FROM pg_proc AS n
                WHERE n.proname = p.proname AND $2 = ANY (n.proargtypes::oid[]))
        UNION ALL SELECT lower(r[1]) || ' with a number'
        FROM regexp_matches($1, '\{(COALESCE|MINMAX)(?:EXPR)? [^{}]*'
            ':args \([^{}]*(?:KEY CONST|CONST KEY)', 'g') AS r
        UNION ALL SELECT 'UNION with what is no key'
        FROM regexp_matches($1, '\{SETOPERATIONSTMT/(\d+)', 'g') AS s WHERE EXISTS (
            SELECT FROM regexp_matches($1, '(KEY)? :resno (\d+)/(\d+)', 'g') AS r
            WHERE r[3] = s[1] GROUP BY r[2] HAVING count(r[1]) BETWEEN 1 AND count(*) - 1)
    ) AS x (what)
$$;

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

-- The statements that drop dependent objects and make them again

CREATE FUNCTION randflake_migrate.comments(class oid, object oid) RETURNS SETOF text
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
    SELECT format('COMMENT ON %s %s IS %L;', CASE i.type WHEN 'statistics object' THEN 'STATISTICS'
        ELSE upper(regexp_replace(i.type, '^(table|view|materialized view) (column|constraint)$',
            '\2')) END, i.identity, d.description)
    FROM pg_description AS d, pg_identify_object(d.classoid, d.objoid, d.objsubid) AS i
    WHERE d.classoid = $1 AND d.objoid = $2 ORDER BY d.objsubid
$$;

CREATE FUNCTION randflake_migrate.grantee(role oid) RETURNS text
LANGUAGE sql STABLE RETURN coalesce(nullif(role, 0)::regrole::text, 'PUBLIC');

-- Returns statements that set the owner and grants of a new view or function.
CREATE FUNCTION randflake_migrate.grants(what text, kind text, owner oid, acl aclitem[])
RETURNS SETOF text LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
    WITH k (object, letter) AS (
        SELECT CASE WHEN $2 LIKE '%view' THEN 'TABLE ' ELSE 'ROUTINE ' END || $1,
            CASE WHEN $2 LIKE '%view' THEN 'r' ELSE 'f' END::"char"
        WHERE $4 IS NOT NULL OR EXISTS (SELECT FROM pg_default_acl)
    )
    SELECT format('ALTER %s %s OWNER TO %s;', upper($2), $1, $3::regrole)
    UNION ALL SELECT format('REVOKE ALL ON %s FROM %s;', k.object,
        (SELECT string_agg(DISTINCT r.name, ', ') FROM (
            SELECT randflake_migrate.grantee(g.grantee)
            FROM pg_default_acl AS d, aclexplode(d.defaclacl) AS g
            UNION SELECT 'PUBLIC' UNION SELECT $3::regrole::text) AS r (name))) FROM k
    UNION ALL SELECT format('GRANT %s ON %s TO %s%s;', g.privilege_type, k.object,
        randflake_migrate.grantee(g.grantee),
        CASE WHEN g.is_grantable THEN ' WITH GRANT OPTION' END)
    FROM k, aclexplode(coalesce($4, acldefault(k.letter, $3))) AS g
$$;

-- Returns the grants on one column of a relation, or on each of its columns.
CREATE FUNCTION randflake_migrate.column_grants(rel oid, att smallint DEFAULT NULL)
RETURNS SETOF text LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
    SELECT format('GRANT %s (%I) ON TABLE %s TO %s%s;', g.privilege_type, a.attname, $1::regclass,
        randflake_migrate.grantee(g.grantee),
        CASE WHEN g.is_grantable THEN ' WITH GRANT OPTION' END)
    FROM pg_attribute AS a, aclexplode(a.attacl) AS g
    WHERE a.attrelid = $1 AND (a.attnum = $2 OR $2 IS NULL) AND NOT a.attisdropped
$$;

-- Returns a column's statistics settings in the form that SET takes. Ignores other options.
CREATE FUNCTION randflake_migrate.statistics(rel oid, att smallint) RETURNS SETOF text
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
    SELECT ' STATISTICS ' || a.attstattarget FROM pg_attribute AS a
    WHERE a.attrelid = $1 AND a.attnum = $2 AND a.attstattarget >= 0
    UNION ALL SELECT ' (' || string_agg(o, ', ') || ')'
    FROM pg_attribute AS a, unnest(a.attoptions) AS o
    WHERE a.attrelid = $1 AND a.attnum = $2 AND o LIKE 'n\_distinct%' HAVING count(*) > 0
$$;

-- Returns the statements that mark an index as its table's cluster index or replica identity.
CREATE FUNCTION randflake_migrate.marks(index oid) RETURNS text
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
    SELECT concat(CASE WHEN i.indisreplident
            THEN format(E'\nALTER TABLE %s REPLICA IDENTITY USING INDEX %I;', t, c.relname) END,
        CASE WHEN i.indisclustered
            THEN format(E'\nALTER TABLE %s CLUSTER ON %I;', t, c.relname) END)
    FROM pg_index AS i JOIN pg_class AS c ON c.oid = i.indexrelid, CAST(i.indrelid AS regclass) AS t
    WHERE i.indexrelid = $1
$$;

-- ALTER COLUMN TYPE renames the index of `rel` that belongs to `parent`. Restores the former name.
CREATE FUNCTION randflake_migrate.rename_index(parent regclass, rel regclass, name name)
RETURNS void LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    index regclass := (SELECT i.indexrelid
        FROM pg_inherits AS h JOIN pg_index AS i ON i.indexrelid = h.inhrelid
        JOIN pg_class AS c ON c.oid = i.indexrelid AND c.relname <> $3
        WHERE h.inhparent = $1 AND i.indrelid = $2);
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
        WHEN 'table constraint' THEN (
            SELECT format('ALTER TABLE %s DROP CONSTRAINT %I;', c.conrelid::regclass, c.conname)
            FROM pg_constraint AS c WHERE c.oid = $2)
        WHEN 'default value' THEN (
            SELECT format('ALTER VIEW %s ALTER COLUMN %I DROP DEFAULT;', a.attrelid::regclass,
                a.attname)
            FROM pg_attrdef AS d JOIN pg_attribute AS a
                ON a.attrelid = d.adrelid AND a.attnum = d.adnum WHERE d.oid = $2)
        WHEN 'publication relation' THEN (
            SELECT format('ALTER PUBLICATION %I DROP TABLE %s;', p.pubname, r.prrelid::regclass)
            FROM pg_publication_rel AS r JOIN pg_publication AS p ON p.oid = r.prpubid
            WHERE r.oid = $2)
        WHEN 'statistics object' THEN format('DROP STATISTICS %s;', i.identity)
        ELSE format('DROP %s %s;', upper(i.type), i.identity) END
    FROM pg_identify_object($1, $2, 0) AS i
$$;

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
END
$$;

-- The plan

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
    state    text NOT NULL DEFAULT 'moving'
        CHECK (state IN ('moving', 'swapped', 'moved', 'going back', 'undone')),
    pages    integer NOT NULL DEFAULT 64 CHECK (pages > 0),  -- that fill() fills in one transaction
    pause    interval NOT NULL DEFAULT '0'                   -- after each such transaction
);

CREATE FUNCTION randflake_migrate.next_move() RETURNS integer LANGUAGE sql STABLE
RETURN (SELECT coalesce(max(m.id), 0) + 1 FROM randflake_migrate.move AS m);

CREATE FUNCTION randflake_migrate.beside(prefix text, name name, att smallint) RETURNS name
LANGUAGE sql IMMUTABLE
RETURN ($1 || CASE WHEN octet_length($1 || $2) < 64 THEN $2::text ELSE $3::text END)::name;

-- Returns the sequence of an identity column, or of a column whose default is nextval().
CREATE FUNCTION randflake_migrate.sequence_of(rel regclass, att smallint) RETURNS oid
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
    SELECT d.objid FROM pg_depend AS d
    WHERE d.classid = 'pg_class'::regclass AND d.refclassid = 'pg_class'::regclass
        AND d.refobjid = $1 AND d.refobjsubid = $2 AND d.deptype = 'i'
    UNION ALL SELECT s.oid FROM pg_attrdef AS f
    JOIN pg_depend AS d ON d.classid = 'pg_attrdef'::regclass AND d.objid = f.oid
        AND d.refclassid = 'pg_class'::regclass
    JOIN pg_class AS s ON s.oid = d.refobjid AND s.relkind = 'S'
    WHERE f.adrelid = $1 AND f.adnum = $2 AND regexp_replace(pg_get_expr(f.adbin, f.adrelid),
            '^\((.*)\)::(integer|smallint)$', '\1')
        = format('nextval(''%s''::regclass)', replace(s.oid::regclass::text, '''', ''''''))
$$;

-- Returns the publications that include this schema's tables, and SQL that excludes them. A
-- publication of all tables counts even if it excludes the tables that exist now.
CREATE FUNCTION randflake_migrate.publications(OUT name name, OUT remedy text) RETURNS SETOF record
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
    SELECT p.pubname, CASE
        WHEN p.puballtables THEN format(E'DROP PUBLICATION %I;\nCREATE PUBLICATION %1$I%s'
            ' WITH (publish = %L, publish_via_partition_root = %s);'
            '  -- and on each subscriber: ALTER SUBSCRIPTION … REFRESH PUBLICATION', p.pubname,
            ' FOR TABLE ' || (SELECT string_agg(c.oid::regclass::text, ', ' ORDER BY c.oid)
                FROM pg_publication_tables AS x JOIN pg_class AS c ON c.relname = x.tablename
                    AND c.relnamespace::regnamespace = quote_ident(x.schemaname)::regnamespace
                WHERE x.pubname = p.pubname AND x.schemaname <> 'randflake_migrate'
                    AND NOT EXISTS (SELECT FROM pg_depend AS d WHERE d.objid = c.oid
                        AND d.classid = 'pg_class'::regclass AND d.deptype = 'e')),
            concat_ws(', ', CASE WHEN p.pubinsert THEN 'insert' END,
                CASE WHEN p.pubupdate THEN 'update' END, CASE WHEN p.pubdelete THEN 'delete' END,
                CASE WHEN p.pubtruncate THEN 'truncate' END), p.pubviaroot::text)
        WHEN EXISTS (SELECT FROM pg_publication_namespace AS n
            WHERE n.pnpubid = p.oid AND n.pnnspid = 'randflake_migrate'::regnamespace)
            THEN format('ALTER PUBLICATION %I DROP TABLES IN SCHEMA randflake_migrate;', p.pubname)
        ELSE format('ALTER PUBLICATION %I DROP TABLE %s;', p.pubname,
            (SELECT string_agg(r.prrelid::regclass::text, ', ')
            FROM pg_publication_rel AS r JOIN pg_class AS c ON c.oid = r.prrelid
            WHERE r.prpubid = p.oid AND c.relnamespace = 'randflake_migrate'::regnamespace)) END
    FROM pg_publication AS p WHERE p.puballtables OR EXISTS (SELECT FROM pg_publication_tables AS x
        WHERE x.pubname = p.pubname AND x.schemaname = 'randflake_migrate')
$$;

-- A publication may be created after the plan. Then no step changes the state of a move.
CREATE FUNCTION randflake_migrate.unpublished() RETURNS trigger
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    p record;
BEGIN
    SELECT * INTO p FROM randflake_migrate.publications() LIMIT 1;
    IF FOUND THEN
        RAISE object_not_in_prerequisite_state USING
            MESSAGE = format('publication "%s" would send the state of the move to subscribers',
                p.name),
            DETAIL = 'The subscribers lack these tables, and would stop.', HINT = p.remedy;
    END IF;
    RETURN NULL;
END
$$;
CREATE TRIGGER unpublished BEFORE INSERT OR UPDATE OR DELETE ON randflake_migrate.move
    FOR EACH STATEMENT EXECUTE FUNCTION randflake_migrate.unpublished();
ALTER TABLE randflake_migrate.move ENABLE ALWAYS TRIGGER unpublished;

-- What the rules of the plan are about: the columns that move, and what depends on them

CREATE TYPE randflake_migrate.subject AS (target text, rows text,
    columns randflake_migrate.moved[], hanging randflake_migrate.hung[]);
CREATE TYPE randflake_migrate.finding AS (grp regclass, object text, note text, remedy text);

CREATE FUNCTION randflake_migrate.subject(target text, rows text)
RETURNS randflake_migrate.subject
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    columns randflake_migrate.moved[] := ARRAY(
        SELECT m FROM randflake_migrate.moving(target, rows) AS m);
BEGIN
    RETURN ROW(target, rows, columns, ARRAY(SELECT h FROM randflake_migrate.hanging(
        ARRAY(SELECT m FROM unnest(columns) AS m WHERE m.changes)) AS h));
END
$$;

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
END
$$;

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
END
$$;

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

-- Rules about the owners as whom a move acts

CREATE FUNCTION randflake_migrate.other_owners(s randflake_migrate.subject)
RETURNS TABLE (grp regclass, owner oid)
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
    SELECT t.grp, t.owner FROM randflake_migrate.tables(($1).columns) AS t
    WHERE t.owner <> randflake_migrate.me()
    UNION SELECT h.grp, h.owner FROM unnest(($1).hanging) AS h
    WHERE h.how = 'made again' AND h.owner <> randflake_migrate.me()
$$;

CREATE FUNCTION randflake_migrate.blocked_owners(s randflake_migrate.subject)
RETURNS SETOF randflake_migrate.finding
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    generators pg_proc[] := ARRAY(SELECT p FROM randflake_migrate.target(s.target) AS g
        JOIN pg_proc AS p ON p.oid::regproc || '()' = g.generator);
BEGIN
    IF current_setting('server_version_num')::integer >= 160000 THEN
        RETURN QUERY SELECT o.grp, o.owner::regrole::text,
            'owns tables, and this role cannot act in its name',
            format('GRANT %s TO %I WITH SET TRUE;', o.owner::regrole, current_user)
        FROM randflake_migrate.other_owners(s) AS o WHERE NOT pg_has_role(o.owner, 'SET');
    END IF;
    RETURN QUERY SELECT DISTINCT o.grp, o.owner::regrole::text,
        format('lacks %s on %s', x.privilege, x.what),
        format('GRANT %s ON %s TO %s;', x.privilege, x.what, o.owner::regrole)
    FROM randflake_migrate.other_owners(s) AS o, LATERAL (
        SELECT y.privilege, 'SCHEMA ' || y.schema::regnamespace FROM (
            SELECT 'USAGE', (t.c).relnamespace FROM randflake_migrate.tables(s.columns) AS t
            WHERE t.grp = o.grp AND t.owner = o.owner
            UNION SELECT 'USAGE', p.pronamespace FROM unnest(generators) AS p
            UNION SELECT v.p, coalesce(c.relnamespace, f.pronamespace, e.stxnamespace)
            FROM unnest(s.hanging) AS h
            LEFT JOIN pg_class AS c ON h.class = 'pg_class'::regclass AND c.oid = h.object
            LEFT JOIN pg_proc AS f ON h.class = 'pg_proc'::regclass AND f.oid = h.object
            LEFT JOIN pg_statistic_ext AS e
                ON h.class = 'pg_statistic_ext'::regclass AND e.oid = h.object,
            (VALUES ('USAGE'), ('CREATE')) AS v (p)
            WHERE h.grp = o.grp AND h.owner = o.owner AND h.how = 'made again'
        ) AS y (privilege, schema)
        WHERE y.schema IS NOT NULL AND NOT has_schema_privilege(o.owner, y.schema, y.privilege)
        UNION SELECT 'EXECUTE', 'FUNCTION ' || p.oid::regprocedure FROM (
            SELECT p.oid FROM unnest(generators) AS p
            UNION SELECT g.tgfoid FROM unnest(s.hanging) AS h
            JOIN pg_trigger AS g ON h.class = 'pg_trigger'::regclass AND g.oid = h.object
            WHERE h.grp = o.grp AND h.owner = o.owner) AS p
        WHERE NOT has_function_privilege(o.owner, p.oid, 'EXECUTE')
        UNION SELECT 'REFERENCES', (f.k).confrelid::regclass::text
        FROM unnest(s.hanging) AS h JOIN randflake_migrate.constraints(s.hanging) AS f
            ON h.class = f.class AND h.object = (f.k).oid AND (f.k).contype = 'f',
        unnest((f.k).confkey) AS u (att)
        WHERE h.grp = o.grp AND h.owner = o.owner
            AND NOT has_column_privilege(o.owner, (f.k).confrelid, u.att, 'REFERENCES')
    ) AS x (privilege, what);
    -- Input functions of types run while a statement is parsed, by the role that sends it.
    RETURN QUERY SELECT h.grp, h.identity,
        'online: uses the type ' || format_type(y.oid, NULL)
            || ', whose code would run as this role', 'transaction()'
    FROM unnest(s.hanging) AS h
    JOIN pg_depend AS d ON d.classid = 'pg_class'::regclass AND d.objid = h.object
        AND d.refclassid = 'pg_type'::regclass
    JOIN pg_type AS y ON y.oid = d.refobjid
    WHERE h.kind = 'index' AND h.how = 'kept' AND y.typowner NOT IN (10, randflake_migrate.me());
END
$$;

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
END
$$;

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

-- What a person must look at

-- Returns a name in snake case: orderID becomes order_id.
CREATE FUNCTION randflake_migrate.plain(name name) RETURNS text LANGUAGE sql IMMUTABLE
RETURN lower(regexp_replace($1, '([a-z0-9])([A-Z])', '\1_\2', 'g'));

-- Returns names of a reference: order_id, orders_id, order_ids, order_number, number, order.
CREATE FUNCTION randflake_migrate.key_names(columns randflake_migrate.moved[])
RETURNS TABLE (grp regclass, rel regclass, name name, keeps boolean, alias text, bare boolean)
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
    SELECT m.grp, m.rel, m.name, m.keeps, e.name, e.name = p.stem
    FROM unnest($1) AS m JOIN pg_class AS c ON c.oid = m.rel,
        randflake_migrate.plain(c.relname) AS r, randflake_migrate.plain(m.name) AS k,
    LATERAL (SELECT r UNION SELECT regexp_replace(r, 's$', '')
        UNION SELECT regexp_replace(r, 'ies$', 'y')
        UNION SELECT regexp_replace(r, '(s|x|z|ch|sh)es$', '\1')) AS p (stem),
    LATERAL (SELECT p.stem || x FROM unnest(ARRAY['', '_id', '_ids', '_' || k]) AS x
        UNION SELECT k WHERE k <> 'id') AS e (name)
    WHERE m.source <> 'reference'
$$;

-- Returns columns that can hold keys, but have no foreign key. `kind` is the column that names the
-- table of a polymorphic reference.
CREATE FUNCTION randflake_migrate.loose(columns randflake_migrate.moved[])
RETURNS TABLE (rel oid, relnamespace oid, name name, words text[], type oid, is_array boolean,
    kind name)
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
    SELECT a.rel, a.relnamespace, a.name,
        string_to_array(randflake_migrate.plain(a.name), '_'), e.oid, b.typcategory = 'A',
        (SELECT o.attname FROM pg_attribute AS o WHERE o.attrelid = a.rel AND NOT o.attisdropped
            AND o.attname IN (regexp_replace(a.name, '_id$', '_type'),
                CASE a.name WHEN 'object_id' THEN 'content_type_id' END)
            AND o.attname <> a.name LIMIT 1)
    FROM randflake_migrate.own_columns() AS a JOIN pg_type AS y ON y.oid = a.type
    JOIN pg_type AS b ON b.oid = coalesce(nullif(y.typbasetype, 0), y.oid)
    JOIN pg_type AS e ON e.oid = CASE b.typcategory WHEN 'A' THEN b.typelem ELSE b.oid END
    WHERE NOT a.inherited AND e.oid IN ('int2'::regtype, 'int4'::regtype, 'int8'::regtype,
            'text'::regtype, 'varchar'::regtype, 'bpchar'::regtype)
        AND NOT EXISTS (SELECT FROM unnest($1) AS m WHERE m.rel = a.rel AND m.att = a.att)
        AND NOT EXISTS (SELECT FROM pg_constraint AS f
            WHERE f.contype = 'f' AND f.conrelid = a.rel AND a.att = ANY (f.conkey))
$$;

-- Returns SQL that makes a column of `bits`, or of text, hold the new keys of a table.
CREATE FUNCTION randflake_migrate.repair(rel regclass, name name, is_array boolean,
    polymorphic boolean, bits integer, to_rel regclass, to_name name, keeps boolean) RETURNS text
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    owner oid := randflake_migrate.owner_of(rel);
    map name := randflake_migrate.map(to_rel, to_name);
    element text := CASE WHEN bits IS NULL THEN 'text' ELSE 'bigint' END;
    alter_type text := randflake_migrate.by(owner,
        format('ALTER TABLE %s ALTER COLUMN %I TYPE %s%s;', rel, name, element,
            CASE WHEN is_array THEN '[]' END));
BEGIN
    RETURN CASE WHEN keeps AND (is_array OR polymorphic) THEN alter_type
        WHEN polymorphic OR to_rel IS NULL AND (is_array OR bits IS NULL)
            THEN 'UPDATE it by randflake_migrate."schema.table.column", or by old_id'
        WHEN is_array THEN alter_type || E'  -- and, after transaction():\n'
            || randflake_migrate.by(owner, format('UPDATE %s AS t SET %I = ARRAY('
                'SELECT coalesce(m.new::%s, u.old)'
                ' FROM unnest(t.%2$I) WITH ORDINALITY AS u (old, n)'
                ' LEFT JOIN randflake_migrate.%4$I AS m ON m.old::text = u.old::text'
                ' ORDER BY u.n);', rel, name, element, map))
        WHEN bits IS NULL THEN E'-- after transaction():\n'
            || randflake_migrate.by(owner, format('UPDATE %s AS t SET %I = m.new '
                'FROM randflake_migrate.%I AS m WHERE t.%2$I = m.old::text;', rel, name, map))
        ELSE format('ALTER TABLE %s ADD FOREIGN KEY (%I) REFERENCES %s NOT VALID;', rel, name,
            coalesce(to_rel || ' (' || quote_ident(to_name) || ')', '…')) END;
END
$$;

CREATE FUNCTION randflake_migrate.possible_references(s randflake_migrate.subject)
RETURNS SETOF randflake_migrate.finding
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
    WITH named AS (
        SELECT DISTINCT ON (l.rel, l.name) l.*, n.grp, n.rel AS to_rel, n.name AS to_name,
            coalesce(n.keeps, ($1).rows = 'new') AS keeps
        FROM randflake_migrate.loose(($1).columns) AS l
        CROSS JOIN generate_subscripts(l.words, 1) AS i
        LEFT JOIN randflake_migrate.key_names(($1).columns) AS n
            ON n.alias = array_to_string(l.words[i:], '_') AND (NOT n.bare OR i = 1
                AND l.type NOT IN ('text'::regtype, 'varchar'::regtype, 'bpchar'::regtype))
        WHERE l.kind IS NULL AND (n.rel IS NOT NULL OR i > 1 AND l.words[i:] <@ '{id,ids}')
            OR l.kind IS NOT NULL AND n.rel IS NULL
        ORDER BY l.rel, l.name, n.rel IS NULL, i,
            (SELECT c.relnamespace FROM pg_class AS c WHERE c.oid = n.rel) <> l.relnamespace
    )
    SELECT n.grp, format('column %s.%I', n.rel::regclass, n.name), CASE WHEN n.kind IS NOT NULL
            THEN 'refers to rows of several tables, by ' || quote_ident(n.kind)
            ELSE 'is named like a reference' || coalesce(' to ' || n.to_rel, '')
                || ', and no foreign key says so' END || ': ' || e.effect,
        randflake_migrate.repair(n.rel::regclass, n.name, n.is_array, n.kind IS NOT NULL, b.bits,
            n.to_rel, n.to_name, n.keeps)
    FROM named AS n, LATERAL (SELECT CASE n.type WHEN 'int2'::regtype THEN 16
        WHEN 'int4'::regtype THEN 32 WHEN 'int8'::regtype THEN 64 END) AS b (bits),
    concat_ws(', and ',
        CASE WHEN b.bits < 64 THEN format('new keys overflow its %s bits', b.bits) END,
        CASE WHEN NOT n.keeps THEN 'its old numbers join nothing' WHEN ($1).target = 'randflake'
            THEN 'its numbers join nothing without a cast' END) AS e (effect)
    WHERE e.effect <> ''
$$;

CREATE FUNCTION randflake_migrate.looks(s randflake_migrate.subject)
RETURNS SETOF randflake_migrate.finding
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    sessions integer := current_setting('max_connections')::integer
        + current_setting('max_prepared_transactions')::integer;
BEGIN
    RETURN QUERY SELECT m.grp, 'column ' || m.shown, 'the plan saw none of its values, because the '
        'table has another owner and no statistics', format('ANALYZE %s;', m.rel)
    FROM unnest(s.columns) AS m JOIN pg_class AS c ON c.oid = m.rel
    WHERE m.checked AND c.reltuples <> 0 AND c.relowner <> randflake_migrate.me()
        AND randflake_migrate.sample(m.rel, m.name) = '{}';
    RETURN QUERY SELECT t.grp, 'publication ' || quote_ident(p.pubname), t.rel
            || ': subscribers get neither new types nor the rows that are rewritten',
        format('on the subscriber, the same statements; then TRUNCATE %s, and ALTER SUBSCRIPTION … '
            'REFRESH PUBLICATION', t.rel)
    FROM randflake_migrate.tables(s.columns) AS t JOIN pg_publication_tables AS x
        ON format('%I.%I', x.schemaname, x.tablename)::regclass = t.rel
    JOIN pg_publication AS p ON p.pubname = x.pubname
    WHERE EXISTS (SELECT FROM unnest(s.columns) AS m WHERE m.rel = t.rel AND m.changes);
    -- Groups of 40 and 480 tables took 45 locks a table.
    RETURN QUERY SELECT t.grp, 'max_locks_per_transaction',
        format('a transaction that changes %s tables and their indexes needs some %s locks',
            count(*), count(*) * 45),
        format('ALTER SYSTEM SET max_locks_per_transaction = %s;  -- and a restart',
            count(*) * 90 / sessions)
    FROM randflake_migrate.tables(s.columns) AS t GROUP BY t.grp
    HAVING count(*) * 45 > current_setting('max_locks_per_transaction')::integer * sessions;
    RETURN QUERY SELECT DISTINCT m.grp, 'function ' || p.oid::regprocedure,
        format('%s %s, and has a type that is too narrow, or asks a sequence',
            CASE WHEN f.runs THEN 'runs in a trigger of' ELSE 'mentions' END, m.rel),
        'bigint, text, or the type for what holds the number; RETURNING for currval() and lastval()'
    FROM unnest(s.columns) AS m, randflake_migrate.functions_of(ARRAY[m.rel::oid]) AS f
    JOIN pg_proc AS p ON p.oid = f.fn
    WHERE '{int2,int4,float4,float8}'::regtype[]::oid[]
            && (coalesce(p.proallargtypes, p.proargtypes::oid[]) || p.prorettype)
        -- An identifier has up to 19 digits, and a sign.
        OR p.prosrc ~* ('\y(int|int2|int4|integer|smallint|serial|real|float|float4|float8'
            '|double\s+precision|lastval|currval|nextval|pg_get_serial_sequence)\y'
            '|\y(numeric|decimal|dec)\s*\(\s*(\d|1[0-8])\s*[,)]'
            '|\y(varchar|bpchar|char|character|varying)\s*\(\s*1?\d\s*\)')
        OR s.target = 'randflake' AND f.runs AND p.prosrc ~* '\y(int8|bigint)\y';
    RETURN QUERY SELECT f.grp, f.identity,
        'is not validated: a row that refers to nothing stops the move',
        randflake_migrate.validation((f.k).conrelid, (f.k).conname)
    FROM randflake_migrate.constraints(s.hanging) AS f
    WHERE (f.k).contype = 'f' AND NOT (f.k).convalidated;
END
$$;

-- Returns why an integer column of a primary key stays, unless programs fill it.
CREATE FUNCTION randflake_migrate.known_to_stay(a pg_attribute, expression text, target text)
RETURNS text LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
    SELECT CASE WHEN x.extname IS NOT NULL THEN 'belongs to the extension ' || x.extname
        WHEN ($1).attinhcount > 0 THEN 'its column is inherited'
        WHEN ($1).attgenerated <> '' THEN 'is a generated column'
        WHEN $2 ~ '\yrandflake_generate\(\)' THEN 'has identifiers'
        WHEN $2 ~ '\yrandflake53_generate\(\)' THEN 'has identifiers of 53 bits'
            || CASE $3 WHEN 'randflake' THEN ', and the type has those of 64 bits' ELSE '' END
        WHEN f.parents IS NOT NULL THEN 'refers to ' || f.parents || ', which stays'
        WHEN $2 ~ '\ysnowflake_generate\(' THEN 'has Snowflake identifiers' END
    FROM (SELECT string_agg(DISTINCT f.confrelid::regclass::text, ', ') AS parents
        FROM pg_constraint AS f WHERE f.contype = 'f' AND f.conrelid = ($1).attrelid
            AND ($1).attnum = ANY (f.conkey)) AS f
    LEFT JOIN (pg_depend AS p JOIN pg_extension AS x ON x.oid = p.refobjid)
        ON p.classid = 'pg_class'::regclass AND p.objid = ($1).attrelid AND p.deptype = 'e'
$$;

-- Returns the integer primary keys that do not move, with the reason and what makes them move.
CREATE FUNCTION randflake_migrate.staying(target text, rows text)
RETURNS TABLE (grp regclass, object text, note text, remedy text)
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
    SELECT NULL::regclass, c.oid::regclass || '.' || quote_ident(a.attname),
        coalesce(o.note, 'its default is no sequence: ' || e.expression, CASE WHEN i.indnkeyatts = 1
            THEN 'has no default: programs fill it' ELSE 'is part of a key that programs fill' END
            || coalesce(', or the triggers ' || g.triggers, '')),
        CASE WHEN o.note IS NULL
            AND (i.indnkeyatts = 1 OR d.oid IS NOT NULL OR g.triggers IS NOT NULL)
            THEN format('ALTER TABLE %s %s%sALTER %I ADD GENERATED BY DEFAULT AS IDENTITY;'
                '  -- then it moves, and programs must leave it out', c.oid::regclass,
                CASE y.typtype WHEN 'd'
                    THEN format('ALTER %I TYPE %s, ', a.attname, y.typbasetype::regtype) END,
                CASE WHEN d.oid IS NOT NULL THEN format('ALTER %I DROP DEFAULT, ', a.attname) END,
                a.attname) END
    FROM pg_index AS i JOIN pg_class AS c ON c.oid = i.indrelid AND c.relpersistence <> 't'
    JOIN pg_class AS n ON n.oid = i.indexrelid AND NOT n.relispartition
    JOIN pg_attribute AS a ON a.attrelid = c.oid AND a.attnum = ANY (i.indkey::int2[])
    JOIN pg_type AS y ON y.oid = a.atttypid
        AND coalesce(nullif(y.typbasetype, 0), y.oid)::regtype::text
            IN ('smallint', 'integer', 'bigint')
    LEFT JOIN pg_attrdef AS d ON d.adrelid = c.oid AND d.adnum = a.attnum AND a.attgenerated = ''
    LEFT JOIN LATERAL pg_get_expr(d.adbin, d.adrelid) AS e (expression) ON true,
    LATERAL (SELECT string_agg(quote_ident(g.tgname), ', ') FROM pg_trigger AS g
        WHERE g.tgrelid = c.oid AND NOT g.tgisinternal AND g.tgtype & 7 = 7) AS g (triggers),
    randflake_migrate.known_to_stay(a, e.expression, $1) AS o (note)
    WHERE i.indisprimary AND c.relnamespace::regnamespace::text
            !~ '^(pg_catalog|pg_toast|information_schema|randflake_migrate)$'
        AND NOT EXISTS (SELECT FROM randflake_migrate.moving($1, $2) AS m WHERE m.name = a.attname
            AND (m.rel = c.oid OR EXISTS (
                WITH RECURSIVE up (rel) AS (
                    SELECT h.inhparent FROM pg_inherits AS h WHERE h.inhrelid = c.oid
                    UNION SELECT h.inhparent FROM up JOIN pg_inherits AS h ON h.inhrelid = up.rel)
                SELECT FROM up WHERE up.rel = m.rel)))
$$;

-- What programs lose in any move, and the line that mends it.
CREATE FUNCTION randflake_migrate.applications(generator text)
RETURNS TABLE (object text, note text, remedy text) LANGUAGE sql IMMUTABLE AS $$
VALUES ('lastval()', 'is an error or the number of another sequence; during the online steps the '
        'old number', 'INSERT … RETURNING id'),
    ('currval(pg_get_serial_sequence(…))', 'is NULL', 'INSERT … RETURNING id'),
    ('nextval(…) by a sequence''s name', 'is an error: the sequence is gone', 'SELECT ' || $1),
    ('PDO', 'lastInsertId() without a name is lastval(), with a name currval()',
        'INSERT … RETURNING id, and fetchColumn()'),
    ('Doctrine', 'IDENTITY and SEQUENCE ask the sequence', 'a generator: docs/drivers-ruby-php.md'),
    ('Dapper', 'Contrib''s Insert() returns lastval()',
        'connection.QuerySingle<long>("INSERT … RETURNING id", row)'),
    ('Django', 'sqlsequencereset does nothing, silently, and need not; AutoField holds 32 bits',
        'DEFAULT_AUTO_FIELD = BigAutoField, or the field of docs/drivers-python.md'),
    ('Hibernate', 'SEQUENCE takes allocationSize numbers from the sequence',
        '@GeneratedValue(strategy = IDENTITY), or the generator of docs/drivers-java-go.md'),
    ('ActiveRecord', 'reset_pk_sequence! does nothing; integer columns of old migrations hold 32 '
        'bits', 't.bigint in schema.rb: dump it again'),
    ('programs that hold keys', '32 bits overflow; JavaScript and JSON lose digits beyond 53 bits',
        'bigint, long, or text: docs/drivers.md'),
    ('fixtures and tests', 'expect 1, 2, 3', 'keys that they insert themselves, or RETURNING'),
    ('ORDER BY id, pages by id > last', 'is no order of time, but with the type',
        'a column with the time, or the target randflake'),
    ('INSERT and COPY without a list of columns', 'online steps add columns, and move keys to the '
        'end', 'name the columns, or transaction()')
$$;

-- Returns, in groups, all actions and requirements of a move. `what` is
--   moves        a key or a column that refers to one
--   kept, made again, dropped    a dependent object
--   blocker      prevents the move until the SQL in `remedy` has run ("online:" only for start())
--   stays        a primary key that the move leaves alone
--   look         may need a change that only its author can judge
--   application  what programs lose, and the line that mends it
CREATE FUNCTION randflake_migrate.entries(target text, rows text)
RETURNS TABLE (grp regclass, what text, object text, note text, remedy text)
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp SET jit = off AS $$
    WITH subject AS MATERIALIZED (
        SELECT s, s.columns, s.hanging FROM randflake_migrate.subject($1, $2) AS s
    ), entry (place, what, grp, object, note, remedy) AS (
        SELECT 1, 'moves', m.grp, m.shown, format('%s, %s%s', m.source
                || CASE WHEN m.source = 'reference'
                    THEN ' to ' || m.root || '.' || quote_ident(m.root_name) ELSE '' END,
            CASE WHEN m.type = m.to_type THEN m.type::text
                ELSE format('%s to %s', m.type, m.to_type) END,
            CASE WHEN m.keeps THEN ', values stay' ELSE ', new values' END), NULL
        FROM subject AS s, unnest(s.columns) AS m
        UNION ALL SELECT CASE h.how WHEN 'blocker' THEN 0 WHEN 'kept' THEN 2
                WHEN 'made again' THEN 3 ELSE 4 END,
            h.how, h.grp, h.kind || ' ' || h.identity, h.note, h.remedy
        FROM subject AS s, unnest(s.hanging) AS h
        -- A key that stays bigint loses its default only.
        UNION ALL SELECT 4, 'dropped', m.grp, 'sequence ' || q.name, NULL, NULL
        FROM subject AS s, unnest(s.columns) AS m,
            pg_get_serial_sequence(m.rel::text, m.name) AS q (name)
        WHERE NOT m.changes AND m.source IN ('identity', 'serial') AND q.name IS NOT NULL
        UNION ALL SELECT 0, 'blocker', r.* FROM subject, randflake_migrate.blocked_columns(s) AS r
        UNION ALL SELECT 0, 'blocker', r.* FROM subject, randflake_migrate.doubtful_columns(s) AS r
        UNION ALL SELECT 0, 'blocker', r.* FROM subject, randflake_migrate.blocked_tables(s) AS r
        UNION ALL SELECT 0, 'blocker', r.* FROM subject, randflake_migrate.taken_names(s) AS r
        UNION ALL SELECT 0, 'blocker', r.* FROM subject, randflake_migrate.blocked_owners(s) AS r
        UNION ALL SELECT 0, 'blocker', r.* FROM subject, randflake_migrate.blocked_objects(s) AS r
        UNION ALL SELECT 5, 'look', r.* FROM subject, randflake_migrate.looks(s) AS r
        UNION ALL SELECT 5, 'look', r.* FROM subject, randflake_migrate.possible_references(s) AS r
        UNION ALL SELECT CASE e.what WHEN 'look' THEN 5 ELSE 0 END, e.*
        FROM subject, randflake_migrate.expressions(s) AS e
        UNION ALL SELECT 6, 'stays', y.* FROM randflake_migrate.staying($1, $2) AS y
        UNION ALL SELECT 7, 'application', NULL, a.*
        FROM randflake_migrate.target($1) AS g, randflake_migrate.applications(g.generator) AS a
    )
    SELECT e.grp, e.what, e.object, e.note, e.remedy
    FROM entry AS e ORDER BY e.grp, e.place, e.object, e.note
$$;

-- Returns the plan. Groups' names include schemas only if the caller's search_path requires them.
CREATE FUNCTION randflake_migrate.plan(target text DEFAULT 'bigint', rows text DEFAULT 'all')
RETURNS TABLE (grp text, what text, object text, note text, remedy text) LANGUAGE sql STABLE AS $$
    SELECT e.grp::pg_catalog.text, e.what, e.object, e.note, e.remedy
    FROM randflake_migrate.entries($1, $2) AS e
$$;

-- Returns the name of a table's group. Raises an error if the group cannot move.
CREATE FUNCTION randflake_migrate.group_of(
    member regclass, target text, rows text, online boolean) RETURNS regclass
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    wanted regclass := (SELECT m.grp FROM randflake_migrate.moving(target, rows) AS m
        WHERE m.rel = member LIMIT 1);
    blockers text;
BEGIN
    IF rows NOT IN ('all', 'new') OR rows IS NULL THEN
        RAISE invalid_parameter_value USING MESSAGE = format('rows are all or new, not "%s"', rows);
    ELSIF wanted IS NULL THEN
        RAISE undefined_object USING
            MESSAGE = format('table %s has no generated key to move', member),
            HINT = 'Its key may have moved already, and a table that belongs to an extension '
                'stays as it is.';
    END IF;
    SELECT string_agg(concat_ws(' ', p.object, p.note, '— ' || p.remedy), E'\n') INTO blockers
    FROM randflake_migrate.entries(target, rows) AS p
    WHERE p.grp = wanted AND p.what = 'blocker' AND (online OR p.note NOT LIKE 'online:%');
    IF blockers IS NOT NULL THEN
        RAISE object_not_in_prerequisite_state USING
            MESSAGE = format('the group of %s cannot be moved yet', wanted), DETAIL = blockers,
            HINT = 'Remove the blockers that randflake_migrate.plan() lists.';
    END IF;
    RETURN wanted;
END
$$;

-- One transaction

-- Returns the statements that give new keys to the numbers of a column. With `definer`, other roles
-- call the column's function.
CREATE FUNCTION randflake_migrate.mapped(v randflake_migrate.moved, definer boolean)
RETURNS SETOF text LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    map name := randflake_migrate.map(v.rel, v.name);
    owner oid := randflake_migrate.owner_of(v.rel);
BEGIN
    IF EXISTS (SELECT FROM pg_class AS c WHERE c.relname = map
        AND c.relnamespace = 'randflake_migrate'::regnamespace)
    THEN
        RAISE duplicate_table USING
            MESSAGE = format('table randflake_migrate.%I has the numbers of an earlier move', map),
            HINT = 'Drop it, or rename it to keep them.';
    END IF;
    RETURN NEXT format('CREATE TABLE randflake_migrate.%I (old bigint PRIMARY KEY, '
        'new %s NOT NULL DEFAULT %s);', map, v.to_type, v.generator);
    RETURN NEXT format('CREATE FUNCTION randflake_migrate.%I(old bigint) RETURNS %s '
        'LANGUAGE plpgsql STABLE STRICT%s AS %L;', map, v.to_type,
        CASE WHEN definer THEN ' SECURITY DEFINER SET search_path = pg_catalog, pg_temp' END,
        format($f$
DECLARE
    result %s := (SELECT m.new FROM randflake_migrate.%I AS m WHERE m.old = $1);
BEGIN
    IF result IS NULL THEN
        RAISE foreign_key_violation USING MESSAGE = format('%%L is no key of %%s', $1, %L);
    END IF;
    RETURN result;
END
$f$, v.to_type, map, v.rel)) || rtrim(E'\n' || randflake_migrate.given(owner, map), E'\n');
    RETURN NEXT randflake_migrate.by(owner, format('INSERT INTO randflake_migrate.%I (old) '
        'SELECT %I FROM %s ON CONFLICT DO NOTHING;', map, v.name, v.rel));
    RETURN NEXT format('ANALYZE randflake_migrate.%I;', map);
END
$$;

-- Returns the sequence of a serial column, unless another object uses it.
CREATE FUNCTION randflake_migrate.unused_sequence(v randflake_migrate.moved) RETURNS regclass
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
    SELECT q.sequence FROM CAST(pg_get_serial_sequence(($1).rel::text, ($1).name) AS regclass)
        AS q (sequence)
    WHERE ($1).source = 'serial' AND NOT EXISTS (SELECT FROM pg_depend AS d
        LEFT JOIN pg_attrdef AS f ON d.classid = 'pg_attrdef'::regclass AND f.oid = d.objid
        WHERE d.refclassid = 'pg_class'::regclass AND d.refobjid = q.sequence AND d.deptype = 'n'
            AND (f.adrelid, f.adnum) IS DISTINCT FROM (($1).rel::oid, ($1).att))
$$;

-- PostgreSQL makes new indexes and statistics, but does not keep their old names and settings.
-- Returns the statements that do.
CREATE FUNCTION randflake_migrate.renamed(
    rels oid[], atts smallint[], hanging randflake_migrate.hung[]) RETURNS SETOF text
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    RETURN QUERY SELECT format('SELECT randflake_migrate.rename_index(%L, %L, %L);',
            h.inhparent::regclass, i.indrelid::regclass, c.relname)
        || randflake_migrate.marks(c.oid) || (
            SELECT concat(E'\n' || string_agg(d, E'\n')) FROM (SELECT 'pg_class'::regclass, c.oid
                UNION ALL SELECT 'pg_constraint'::regclass, k.oid FROM pg_constraint AS k
                WHERE k.conindid = c.oid AND k.conrelid = i.indrelid) AS o (class, object),
            randflake_migrate.comments(o.class, o.object) AS d)
    FROM pg_inherits AS h JOIN pg_class AS c ON c.oid = h.inhrelid
    JOIN pg_index AS i ON i.indexrelid = c.oid
    WHERE EXISTS (SELECT FROM randflake_migrate.places(rels, atts) AS p WHERE p.rel = i.indrelid
        AND (p.att = ANY (i.indkey::int2[]) OR EXISTS (SELECT FROM pg_depend AS d
            WHERE d.classid = 'pg_class'::regclass AND d.objid = c.oid AND d.refobjid = p.rel
                AND d.refobjsubid = p.att)))
    ORDER BY (SELECT count(*) FROM pg_partition_ancestors(i.indrelid));
    RETURN QUERY SELECT format('ALTER STATISTICS %s SET STATISTICS %s;', x.identity,
        e.stxstattarget)
    FROM unnest(hanging) AS x JOIN pg_statistic_ext AS e
        ON x.class = 'pg_statistic_ext'::regclass AND e.oid = x.object
    WHERE e.stxstattarget >= 0;
END
$$;

-- Returns the statements that change the columns' types, and make again what depends on them.
CREATE FUNCTION randflake_migrate.changed(moved randflake_migrate.moved[],
    rels oid[], atts smallint[], hung randflake_migrate.hung[]) RETURNS SETOF text
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    RETURN QUERY SELECT format('ALTER TABLE %s ALTER COLUMN %I DROP DEFAULT;', v.rel, v.name)
    FROM unnest(moved) AS v WHERE v.source = 'reference' AND v.changes
        AND randflake_migrate.constant(v.rel, v.att) IS NOT NULL;
    RETURN QUERY SELECT randflake_migrate.by(randflake_migrate.owner_of(v.rel),
        format('ALTER TABLE %s %s;', v.rel, string_agg(
            format('ALTER COLUMN %I TYPE %s USING ', v.name, v.to_type) || CASE WHEN v.keeps
                THEN format('%I::%s', v.name, v.to_type)
                ELSE format('randflake_migrate.%I(%I)',
                    randflake_migrate.map(v.root, v.root_name), v.name) END, ', ')))
    FROM unnest(moved) AS v WHERE v.changes GROUP BY v.rel ORDER BY v.rel;
    RETURN QUERY SELECT randflake_migrate.renamed(rels, atts, hung);
    RETURN QUERY SELECT format('ALTER TABLE %s ALTER COLUMN %I SET DEFAULT %s;', v.rel, v.name,
        v.generator) FROM unnest(moved) AS v WHERE v.source <> 'reference';
    RETURN QUERY SELECT CASE WHEN v.keeps
        THEN format('ALTER TABLE %s ALTER %I SET DEFAULT (%s)::bigint::%s;', v.rel, v.name,
            d.number, v.to_type)
        ELSE format('SELECT randflake_migrate.set_default(%L, %L, %s, ('
            'SELECT m.new::text FROM randflake_migrate.%I AS m WHERE m.old = %3$s));',
            v.rel, v.name, d.number, randflake_migrate.map(v.root, v.root_name)) END
    FROM unnest(moved) AS v, randflake_migrate.constant(v.rel, v.att) AS d (number)
    WHERE v.source = 'reference' AND v.changes AND d.number IS NOT NULL;
    RETURN QUERY SELECT randflake_migrate.by(x.owner, d.sql)
    FROM unnest(hung) WITH ORDINALITY AS x,
        randflake_migrate.definition(x.class, x.object) WITH ORDINALITY AS d (sql, n)
    WHERE x.how = 'made again' ORDER BY x.ordinality, d.n;
    RETURN QUERY SELECT randflake_migrate.compiled_again(rels);
    RETURN QUERY SELECT format('DROP FUNCTION randflake_migrate.%I(bigint);',
        randflake_migrate.map(v.root, v.root_name))
    FROM unnest(moved) AS v WHERE v.source <> 'reference' AND NOT v.keeps;
END
$$;

-- Returns the statements that move a table's group in one transaction. They hold ACCESS EXCLUSIVE
-- locks while PostgreSQL rewrites the rows. If rows get new keys, the table
-- randflake_migrate."schema.table.column" maps old keys to new keys.
CREATE FUNCTION randflake_migrate.transaction(
    member regclass, target text DEFAULT 'bigint', rows text DEFAULT 'all') RETURNS SETOF text
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
    wanted regclass := randflake_migrate.group_of(member, target, rows, false);
    moved randflake_migrate.moved[] := ARRAY(
        SELECT v FROM randflake_migrate.moving(target, rows) AS v WHERE v.grp = wanted);
    rels oid[] := ARRAY(SELECT v.rel FROM unnest(moved) AS v WHERE v.changes);
    atts smallint[] := ARRAY(SELECT v.att FROM unnest(moved) AS v WHERE v.changes);
    hung randflake_migrate.hung[] := ARRAY(
        SELECT x FROM randflake_migrate.hanging(rels, atts) AS x);
    tables text := (SELECT randflake_migrate.in_order(array_agg(v.rel), array_agg(v.root))
        FROM unnest(moved) AS v);
    definer boolean := EXISTS (SELECT FROM unnest(moved) AS v
        WHERE randflake_migrate.owner_of(v.rel) <> randflake_migrate.me());
    key randflake_migrate.moved;
BEGIN
    RETURN NEXT 'BEGIN;';
    RETURN NEXT format(E'SET LOCAL search_path = %s;\nSET LOCAL standard_conforming_strings = on;\n'
        'SET LOCAL check_function_bodies = off;\nSET LOCAL row_security = off;',
        randflake_migrate.path((randflake_migrate.target(target)).to_type));
    RETURN NEXT randflake_migrate.lock(concat_ws(', ', (SELECT randflake_migrate.views(
        array_agg(x.object ORDER BY x.level DESC)) FROM unnest(hung) AS x WHERE x.kind = 'view'),
        tables), 'ACCESS EXCLUSIVE');
    RETURN QUERY SELECT format('SELECT randflake_migrate.same(%L, %L, %L, %L);', current_user,
        array_agg(c.oid), array_agg(c.oid::regclass::text), array_agg(r.rolname))
    FROM pg_class AS c JOIN pg_roles AS r ON r.oid = c.relowner
    WHERE c.oid IN (SELECT v.rel FROM unnest(moved) AS v);
    RETURN QUERY SELECT randflake_migrate.looked_at(v.rel, v.name, v.keeps)
    FROM unnest(moved) AS v WHERE v.checked;
    RETURN QUERY SELECT randflake_migrate.removal(x.class, x.object) FROM unnest(hung) AS x
    WHERE x.how = 'made again' ORDER BY x.level DESC, x.class DESC, x.object DESC;
    FOREACH key IN ARRAY moved LOOP
        CONTINUE WHEN key.source = 'reference';
        IF NOT key.keeps THEN
            RETURN QUERY SELECT randflake_migrate.mapped(key, definer);
        END IF;
        RETURN NEXT format('ALTER TABLE %s ALTER COLUMN %I DROP %s;', key.rel, key.name,
            CASE key.source WHEN 'identity' THEN 'IDENTITY' ELSE 'DEFAULT' END);
        RETURN QUERY SELECT format('DROP SEQUENCE %s;', q)
        FROM randflake_migrate.unused_sequence(key) AS q WHERE q IS NOT NULL;
    END LOOP;
    RETURN QUERY SELECT randflake_migrate.changed(moved, rels, atts, hung);
    -- Resets settings, because a migration tool may later use its own tables in this transaction.
    RETURN NEXT E'SET LOCAL row_security TO DEFAULT;\nSET LOCAL check_function_bodies TO DEFAULT;\n'
        'SET LOCAL standard_conforming_strings TO DEFAULT;\nSET LOCAL search_path TO DEFAULT;';
    RETURN NEXT 'COMMIT;';
    RETURN NEXT format('ANALYZE %s;', tables);
END
$$;

-- Online steps

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
    kind  text NOT NULL
        CHECK (kind IN ('transaction', 'fill', 'constraint', 'index', 'swap', 'undo')),
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
CREATE TRIGGER unpublished BEFORE INSERT OR UPDATE OR DELETE ON randflake_migrate.step
    FOR EACH STATEMENT EXECUTE FUNCTION randflake_migrate.unpublished();
ALTER TABLE randflake_migrate.step ENABLE ALWAYS TRIGGER unpublished;

-- Returns the columns that move, in tables and in their partitions.
CREATE FUNCTION randflake_migrate.columns(
    move integer, OUT rel oid, OUT att smallint, OUT p randflake_migrate.part)
RETURNS SETOF record LANGUAGE sql STABLE ROWS 100 SET search_path = pg_catalog, pg_temp AS $$
    SELECT a.attrelid, a.attnum, v
    FROM randflake_migrate.part AS v, randflake_migrate.tree(v.rel) AS t
    JOIN pg_attribute AS a ON a.attrelid = t.rel AND a.attnum > 0 AND NOT a.attisdropped
    WHERE v.move = $1 AND a.attname = v.name
$$;

-- Returns the column of the key to which a column refers.
CREATE FUNCTION randflake_migrate.key_of(p randflake_migrate.part) RETURNS randflake_migrate.part
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
    SELECT r FROM randflake_migrate.part AS r
    WHERE r.move = ($1).move AND r.rel = ($1).root AND r.name = ($1).root_name
$$;

CREATE FUNCTION randflake_migrate.paths(move integer) RETURNS text
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
    SELECT randflake_migrate.path(VARIADIC array_agg(p.type) || array_agg(p.old_type))
    FROM randflake_migrate.part AS p WHERE p.move = $1
$$;

-- Returns the name of a column's object: the shadow's check, or an object that follow() makes.
CREATE FUNCTION randflake_migrate.called(p randflake_migrate.part, what text) RETURNS name
LANGUAGE sql IMMUTABLE
RETURN CASE $2 WHEN 'trigger' THEN format('zzz_randflake_%s_%s_%s_%s', p.move,
        CASE WHEN p.is_key THEN 2 ELSE 1 END, p.k, p.side)
    WHEN 'check' THEN format('randflake_%s_%s_%s', p.move, p.k, p.side)
    ELSE format('m%s_%s_%s_%s', p.move, p.k, p.side, $2) END::name;

-- Returns a column as it is after step 7, when the two columns have exchanged their names.
CREATE FUNCTION randflake_migrate.exchanged(p randflake_migrate.part)
RETURNS randflake_migrate.part LANGUAGE sql IMMUTABLE
RETURN ROW(p.move, p.k, 3 - p.side, p.rel, p.name, p.shadow_att, p.displaced, p.att, p.shadow,
    p.is_key, p.is_referred_to, p.root, p.root_name, p.was_same, p.old_type, p.old_maker,
    p.type, p.maker, p.was_same)::randflake_migrate.part;

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
        CROSS JOIN LATERAL (VALUES (p.name, p.att), (p.shadow, p.shadow_att), (p.displaced, NULL))
            AS c (name, att)
        LEFT JOIN pg_attribute AS a ON a.attrelid = p.rel AND a.attname = c.name
            AND a.attnum > 0 AND NOT a.attisdropped
        WHERE p.move = $1 AND a.attnum IS DISTINCT FROM c.att
        UNION ALL SELECT format('constraint %I of table %s', s.made, s.rel)
        FROM randflake_migrate.step AS s JOIN t ON t.rel = s.rel
        LEFT JOIN pg_constraint AS c ON c.conrelid = s.rel AND c.conname = s.made
        WHERE s.move = $1 AND s.kind = 'constraint' AND c.oid IS DISTINCT FROM s.object
        UNION ALL SELECT format('index %I of table %s', s.made, s.rel)
        FROM randflake_migrate.step AS s JOIN t ON t.rel = s.rel JOIN pg_class AS r ON r.oid = s.rel
        LEFT JOIN pg_class AS c ON c.relname = s.made AND c.relnamespace = r.relnamespace
        WHERE s.move = $1 AND s.kind = 'index' AND c.oid IS DISTINCT FROM s.object
            AND (s.object IS NOT NULL OR s.begun IS NULL)
        UNION ALL SELECT format('trigger %I of table %s', n.name, c.rel::regclass)
        FROM randflake_migrate.columns($1) AS c,
            randflake_migrate.called(c.p, 'trigger') AS n (name)
        WHERE (c.p).shadow_att IS NOT NULL AND NOT EXISTS (SELECT FROM pg_trigger AS g
            WHERE g.tgrelid = c.rel AND g.tgname = n.name AND g.tgenabled = 'A')
    ) AS x (what);
    IF other IS NOT NULL THEN
        RAISE object_not_in_prerequisite_state USING
            MESSAGE = format('%s is not what move %s left there', other, $1),
            HINT = format('Give the one that was there its name back, or a trigger its ENABLE '
                'ALWAYS if no row was written without it. '
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
    SELECT v.mover, v.tables, v.names, v.owners INTO m
    FROM randflake_migrate.move AS v WHERE v.id = $1 FOR UPDATE;
    SELECT * INTO next FROM randflake_migrate.step AS s
    WHERE s.move = $1 AND s.done IS NULL ORDER BY s.n LIMIT 1;
    IF next.n IS DISTINCT FROM $2 THEN
        RAISE object_not_in_prerequisite_state USING
            MESSAGE = format('step %s of move %s is not the next one', $2, $1),
            HINT = format('SELECT randflake_migrate.todo(%s) shows what is left.', $1);
    END IF;
    -- The steps of undo() skip a table that was dropped.
    PERFORM randflake_migrate.same(m.mover, array_agg(x.rel), array_agg(x.name), array_agg(x.owner))
    FROM unnest(m.tables, m.names, m.owners) AS x (rel, name, owner)
    WHERE next.kind <> 'undo' OR EXISTS (SELECT FROM pg_class AS c WHERE c.oid = x.rel);
    IF next.kind <> 'undo' THEN
        PERFORM randflake_migrate.check_made($1);
    END IF;
    IF next.kind = 'index' THEN
        next.object := (SELECT b.index FROM randflake_migrate.built($1, $2) AS b WHERE b.valid);
        IF next.object IS NULL THEN
            RAISE object_not_in_prerequisite_state USING
                MESSAGE = format('the index of step %s of move %s is not built', $2, $1),
                HINT = format('SELECT randflake_migrate.todo(%s) shows what is left.', $1);
        END IF;
    END IF;
    UPDATE randflake_migrate.step AS s SET done = clock_timestamp(), object = next.object
    WHERE s.move = $1 AND s.n = $2;
END
$$;

-- Records the columns or the constraint that the transaction of a step has just made.
CREATE FUNCTION randflake_migrate.made(
    move integer, n integer, rel regclass DEFAULT NULL, keys boolean DEFAULT NULL) RETURNS void
LANGUAGE sql SET search_path = pg_catalog, pg_temp AS $$
    UPDATE randflake_migrate.part AS p SET shadow_att = a.attnum FROM pg_attribute AS a
    WHERE p.move = $1 AND p.rel = $3 AND p.is_key = $4
        AND a.attrelid = p.rel AND a.attname = p.shadow;
    UPDATE randflake_migrate.step AS s SET object = c.oid FROM pg_constraint AS c
    WHERE s.move = $1 AND s.n = $2 AND s.kind = 'constraint'
        AND c.conrelid = s.rel AND c.conname = s.made;
$$;

-- Returns the database index that a step makes, if the index exists. Raises an error if something
-- else has the index's name.
CREATE FUNCTION randflake_migrate.built(move integer, n integer, OUT index oid, OUT valid boolean)
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    s record;
BEGIN
    SELECT v.*, r.relnamespace INTO s
    FROM randflake_migrate.step AS v JOIN pg_class AS r ON r.oid = v.rel
    WHERE v.move = $1 AND v.n = $2;
    SELECT c.oid, i.indisvalid INTO index, valid
    FROM pg_class AS c LEFT JOIN pg_index AS i ON i.indexrelid = c.oid
    WHERE c.relname = s.made AND c.relnamespace = s.relnamespace;
    IF index IS NOT NULL AND (s.begun IS NULL
        OR s.rel <> (SELECT i.indrelid FROM pg_index AS i WHERE i.indexrelid = index)
        OR pg_get_indexdef(index) || ';' IS DISTINCT FROM replace(s.sql,
            ' CONCURRENTLY ' || quote_ident(s.made), ' ' || quote_ident(s.made)))
    THEN
        RAISE duplicate_table USING MESSAGE = format('%s is not the index of step %s of move %s',
                index::regclass, $2, $1), HINT = 'Rename it: this move needs the name.';
    END IF;
END
$$;

-- Marks step `n` as begun. From then on, built() accepts an index with the step's name and SQL.
CREATE FUNCTION randflake_migrate.begin(move integer, n integer) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF (SELECT b.index FROM randflake_migrate.built($1, $2) AS b) IS NOT NULL THEN
        RAISE object_not_in_prerequisite_state USING
            MESSAGE = format('step %s of move %s was stopped while its index was built', $2, $1),
            HINT = format('SELECT randflake_migrate.todo(%s) shows what is left.', $1);
    END IF;
    UPDATE randflake_migrate.step AS s SET begun = clock_timestamp()
    WHERE s.move = $1 AND s.n = $2 AND s.done IS NULL;
END
$$;

-- Returns the statement that adds a shadow's check. With this check, SET NOT NULL needs no scan.
CREATE FUNCTION randflake_migrate.checked(p randflake_migrate.part, not_null boolean) RETURNS text
LANGUAGE sql IMMUTABLE SET search_path = pg_catalog, pg_temp AS $$
    SELECT format('ALTER TABLE %s ADD CONSTRAINT %I CHECK (%I IS NOT NULL%s) NOT VALID;', p.rel,
        randflake_migrate.called(p, 'check'), p.shadow,
        CASE WHEN NOT $2 THEN format(' OR %I IS NULL', p.name) END)
$$;

-- follow() makes the trigger and the functions that set a column's shadow. PostgreSQL runs triggers
-- in order of name: the program's triggers, then those of references, then those of keys. Triggers
-- of keys look for reserved shadows. A key to which others refer has these objects:
--   _kept     has shadows of numbers whose row left, or that a deferred reference used first
--   _find     returns a number's shadow from its row or from _kept, even if the table is renamed
--   _shadow   calls _find, and reserves a shadow in _kept if the number has none
--   _mixed    returns numbers for which _kept and the row have different shadows

-- Returns whether this column is such a key.
CREATE FUNCTION randflake_migrate.has_kept(p randflake_migrate.part) RETURNS boolean
LANGUAGE sql IMMUTABLE RETURN p.is_key AND p.is_referred_to AND NOT p.converts;

-- Returns a CREATE FUNCTION up to its body. `what` has the arguments and the result.
CREATE FUNCTION randflake_migrate.head(
    p randflake_migrate.part, name text, signature text, language text) RETURNS text
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
    SELECT format('CREATE FUNCTION randflake_migrate.%I%s LANGUAGE %s SECURITY DEFINER'
        ' SET search_path = %s', randflake_migrate.called($1, $2), $3, $4,
        randflake_migrate.paths(($1).move))
$$;

-- Returns the statements that make the objects of a key.
CREATE FUNCTION randflake_migrate.kept(p randflake_migrate.part) RETURNS text
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    kept name := randflake_migrate.called(p, 'kept');
    find name := randflake_migrate.called(p, 'find');
    shadow name := randflake_migrate.called(p, 'shadow');
    mixed name := randflake_migrate.called(p, 'mixed');
    number regtype := CASE WHEN p.old_type IN ('int2'::regtype, 'int4'::regtype) THEN 'int8'
        ELSE p.old_type END;
    types text := format('(%s) RETURNS %s', number, p.type);
BEGIN
    RETURN format(E'CREATE TABLE randflake_migrate.%I (number %s PRIMARY KEY,'
            ' shadow %s NOT NULL);\n', kept, number, p.type)
        || randflake_migrate.head(p, 'find', types, 'sql STRICT')
        || format(E'\n    RETURN coalesce((SELECT r.%I FROM %s AS r WHERE r.%I = $1),'
            ' (SELECT k.shadow FROM randflake_migrate.%I AS k WHERE k.number = $1));\n',
            p.shadow, p.rel, p.name, kept)
        || randflake_migrate.head(p, 'mixed',
            format('() RETURNS TABLE (number %s, shadow %s)', number, p.type), 'sql')
        || format(E'\nBEGIN ATOMIC\n    SELECT k.number, r.%1$I FROM randflake_migrate.%2$I AS k'
            ' JOIN %3$s AS r ON r.%4$I = k.number WHERE r.%1$I <> k.shadow;\nEND;\n',
            p.shadow, kept, p.rel, p.name)
        || randflake_migrate.head(p, 'shadow', types, 'plpgsql STRICT')
        || format(E' AS %L;\n', format($f$
DECLARE
    result %s := randflake_migrate.%I($1);
BEGIN
    IF result IS NULL THEN
        INSERT INTO randflake_migrate.%I AS k VALUES ($1, %s)
        ON CONFLICT (number) DO UPDATE SET shadow = k.shadow RETURNING k.shadow INTO result;
    END IF;
    RETURN result;
END
$f$, p.type, find, kept, p.maker))
        || format(E'REVOKE EXECUTE ON FUNCTION randflake_migrate.%1$I(%2$s),'
            ' randflake_migrate.%3$I(%2$s), randflake_migrate.%4$I() FROM PUBLIC;\n'
            'GRANT EXECUTE ON FUNCTION randflake_migrate.%3$I(%2$s), randflake_migrate.%4$I()'
            ' TO %5$s;\n', find, number, shadow, mixed,
            (SELECT string_agg(DISTINCT c.relowner::regrole::text, ', ')
            FROM randflake_migrate.part AS v, randflake_migrate.tree(v.rel) AS t
            JOIN pg_class AS c ON c.oid = t.rel
            WHERE v.move = p.move AND v.root = p.rel AND v.root_name = p.name))
        || randflake_migrate.given(randflake_migrate.owner_of(p.rel), kept, find, shadow, mixed);
END
$$;

-- Returns the body of the trigger's function. Column p refers to the key r, or is the key r.
CREATE FUNCTION randflake_migrate.body(p randflake_migrate.part, r randflake_migrate.part)
RETURNS text LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF p.converts THEN  -- an assignment to the type refuses small numbers
        RETURN format($f$
BEGIN
    NEW.%I := NEW.%I;
    RETURN NEW;
END
$f$, p.shadow, p.name);
    ELSIF NOT p.is_key THEN
        RETURN format($f$
BEGIN
    IF TG_OP = 'UPDATE' THEN
        IF NEW.%1$I IS NOT DISTINCT FROM OLD.%1$I AND NEW.%2$I IS NOT NULL THEN
            RETURN NEW;
        END IF;
    END IF;
    NEW.%2$I := randflake_migrate.%3$I(NEW.%1$I);
    RETURN NEW;
END
$f$, p.name, p.shadow, randflake_migrate.called(r, 'shadow'));
    ELSIF NOT p.is_referred_to THEN
        RETURN format($f$
BEGIN
    NEW.%1$I := coalesce(NEW.%1$I, %2$s);
    RETURN NEW;
END
$f$, p.shadow, p.maker);
    END IF;
    RETURN format($f$
BEGIN
    IF TG_OP = 'INSERT' THEN
        NEW.%2$I := coalesce(randflake_migrate.%3$I(NEW.%1$I), %4$s);
        RETURN NEW;
    END IF;
    IF TG_OP = 'UPDATE' THEN
        IF NEW.%1$I IS NOT DISTINCT FROM OLD.%1$I THEN
            NEW.%2$I := coalesce(NEW.%2$I, randflake_migrate.%3$I(NEW.%1$I), %5$s);
            RETURN NEW;
        END IF;
    END IF;
    IF OLD.%1$I IS NOT NULL AND OLD.%2$I IS NOT NULL THEN
        INSERT INTO randflake_migrate.%6$I VALUES (OLD.%1$I, OLD.%2$I)
        ON CONFLICT (number) DO UPDATE SET shadow = excluded.shadow;
    END IF;
    IF TG_OP = 'DELETE' THEN
        RETURN OLD;
    END IF;
    NEW.%2$I := coalesce(randflake_migrate.%3$I(NEW.%1$I), %5$s);
    RETURN NEW;
END
$f$, p.name, p.shadow, randflake_migrate.called(p, 'find'),
        CASE p.side WHEN 2 THEN format('NEW.%I, ', p.shadow) ELSE '' END || p.maker, p.maker,
        randflake_migrate.called(p, 'kept'));
END
$$;

CREATE FUNCTION randflake_migrate.follow(p randflake_migrate.part, r randflake_migrate.part)
RETURNS text LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
    SELECT concat(CASE WHEN k THEN randflake_migrate.kept(p) END,
        randflake_migrate.head(p, 'follow', '() RETURNS trigger', 'plpgsql'),
        format(E' AS %L;\n', randflake_migrate.body(p, r)),
        randflake_migrate.given(randflake_migrate.owner_of(p.rel), f),
        format(E'CREATE TRIGGER %1$I BEFORE INSERT OR UPDATE%2$s ON %3$s FOR EACH ROW'
            ' EXECUTE FUNCTION randflake_migrate.%4$I();\n'
            'ALTER TABLE %3$s ENABLE ALWAYS TRIGGER %1$I;', randflake_migrate.called(p, 'trigger'),
            CASE WHEN k THEN ' OR DELETE' END, p.rel, f))
    FROM randflake_migrate.has_kept(p) AS k, randflake_migrate.called(p, 'follow') AS f
$$;

-- Drops what follow() made. CASCADE drops only triggers that call the dropped function.
CREATE FUNCTION randflake_migrate.unfollow(p randflake_migrate.part) RETURNS text
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
    SELECT format('DROP FUNCTION IF EXISTS randflake_migrate.%I() CASCADE;',
            randflake_migrate.called(p, 'follow'))
        || CASE WHEN randflake_migrate.has_kept(p) THEN format(
            E'\nDROP FUNCTION IF EXISTS randflake_migrate.%I, randflake_migrate.%I,'
            ' randflake_migrate.%I;\nDROP TABLE IF EXISTS randflake_migrate.%I;',
            randflake_migrate.called(p, 'shadow'), randflake_migrate.called(p, 'mixed'),
            randflake_migrate.called(p, 'find'), randflake_migrate.called(p, 'kept')) ELSE '' END
$$;

-- Fills the shadows of a table and its partitions. After an interruption, another call continues.
CREATE PROCEDURE randflake_migrate.fill(move integer, n integer, rel regclass, keys boolean)
LANGUAGE plpgsql AS $$
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
                    ELSE format('randflake_migrate.%I(t.%I)',
                        randflake_migrate.called(r, 'shadow'), p.name) END), ', '),
                string_agg(format('t.%I IS NULL AND t.%I IS NOT NULL', p.shadow, p.name), ' OR ')
            INTO assignments, missing
            FROM randflake_migrate.part AS p, randflake_migrate.key_of(p) AS r
            WHERE p.move = $1 AND p.rel = $3 AND p.is_key = $4;
        END IF;
        SELECT v.*, s.leaf, s.page, s.pages AS until INTO m
        FROM randflake_migrate.move AS v JOIN randflake_migrate.step AS s ON s.move = v.id
        WHERE v.id = $1 AND s.n = $2 FOR UPDATE OF s;
        PERFORM randflake_migrate.same(m.mover, m.tables, m.names, m.owners);
        SELECT min(t.rel) INTO leaf FROM randflake_migrate.tree($3) AS t WHERE t.leaf
            AND (t.rel > m.leaf OR t.rel = m.leaf AND m.page < m.until OR m.leaf IS NULL);
        IF leaf IS NULL THEN
            IF randflake_migrate.as_owner(pg_get_userbyid(randflake_migrate.owner_of($3)),
                format('SELECT FROM %s AS t WHERE %s LIMIT 1', $3, missing)) = 0
            THEN
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
        filled := randflake_migrate.as_owner(pg_get_userbyid(randflake_migrate.owner_of(leaf)),
            format('UPDATE %s AS t SET %s WHERE t.ctid = ANY (ARRAY(SELECT t.ctid FROM %1$s AS t'
                ' WHERE t.ctid >= %3$L AND t.ctid < %4$L AND (%5$s)'
                ' FOR NO KEY UPDATE SKIP LOCKED))', leaf, assignments,
                format('(%s,0)', m.page), format('(%s,0)', m.page + m.pages), missing));
        total := total + filled;
        m.page := least(m.page + m.pages, m.until);
        UPDATE randflake_migrate.step AS s SET (leaf, page, pages) = (m.leaf, m.page, m.until)
        WHERE s.move = $1 AND s.n = $2;
        RAISE NOTICE '%: filled % rows, % of % pages', leaf, total, m.page, m.until;
        COMMIT;
        PERFORM pg_catalog.pg_sleep(pg_catalog.date_part('epoch', m.pause));
    END LOOP;
END
$$;

-- Indexes and foreign keys on the shadows

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
    SELECT x.indrelid::regclass AS rel, coalesce(pg_partition_root(x.indrelid), x.indrelid) AS top,
        length(format('CREATE %sINDEX %I ON %I.%I ', CASE WHEN x.indisunique THEN 'UNIQUE ' END,
            c.relname, n.nspname, t.relname)) AS head, pg_get_userbyid(t.relowner) AS owner INTO i
    FROM pg_index AS x JOIN pg_class AS c ON c.oid = x.indexrelid
    JOIN pg_namespace AS n ON n.oid = c.relnamespace
    JOIN pg_class AS t ON t.oid = x.indrelid WHERE x.indexrelid = $2;
    -- Leaves operators unqualified, for another type.
    PERFORM set_config('search_path', randflake_migrate.paths($1), true);
    tail := substr(pg_get_indexdef($2), i.head + 1);
    EXECUTE format('CREATE TEMPORARY TABLE randflake_migrate_copy (LIKE %s)', i.rel);
    FOR p IN SELECT v.*, row_number() OVER () AS k
        FROM randflake_migrate.part AS v WHERE v.move = $1 AND v.rel = i.top
    LOOP
        EXECUTE format('ALTER TABLE pg_temp.randflake_migrate_copy RENAME COLUMN %I TO %I', p.name,
            'randflake_migrate_' || p.k);
        IF EXISTS (SELECT FROM pg_attribute AS a WHERE a.attrelid = i.rel AND a.attname = p.shadow)
        THEN
            EXECUTE format('ALTER TABLE pg_temp.randflake_migrate_copy RENAME COLUMN %I TO %I',
                p.shadow, p.name);
        ELSE
            EXECUTE format('ALTER TABLE pg_temp.randflake_migrate_copy ADD COLUMN %I %s',
                p.name, p.type);
        END IF;
    END LOOP;
    -- PostgreSQL runs the code of an index as the owner of its table.
    EXECUTE format('ALTER TABLE pg_temp.randflake_migrate_copy OWNER TO %I', i.owner);
    EXECUTE 'CREATE INDEX randflake_migrate_copy_index ON pg_temp.randflake_migrate_copy ' || tail;
    FOR p IN SELECT v.* FROM randflake_migrate.part AS v WHERE v.move = $1 AND v.rel = i.top LOOP
        EXECUTE format('ALTER TABLE pg_temp.randflake_migrate_copy RENAME COLUMN %I TO %I',
            p.name, p.shadow);
    END LOOP;
    PERFORM set_config('search_path', 'pg_catalog, pg_temp', true);
    tail := regexp_replace(pg_get_indexdef('pg_temp.randflake_migrate_copy_index'::regclass),
        '^.*? ON [^ ]+ ', '');
    DROP TABLE pg_temp.randflake_migrate_copy;
    RETURN tail;
END
$$;

-- Returns two lists of columns. In `shadows`, a column's shadow replaces the column.
CREATE FUNCTION randflake_migrate.names(
    move integer, rel oid, atts smallint[], OUT names text, OUT shadows text)
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
    SELECT string_agg(quote_ident(a.attname), ', ' ORDER BY k.n),
        string_agg(quote_ident(coalesce(p.shadow, a.attname)), ', ' ORDER BY k.n)
    FROM unnest($3) WITH ORDINALITY AS k (att, n)
    JOIN pg_attribute AS a ON a.attrelid = $2 AND a.attnum = k.att
    LEFT JOIN randflake_migrate.part AS p ON p.move = $1
        AND p.rel = coalesce(pg_partition_root($2), $2) AND p.name = a.attname
$$;

-- Returns the definition of a foreign key on the shadows. A partitioned table's key needs
-- no NOT VALID, because the keys of the partitions are valid already.
CREATE FUNCTION randflake_migrate.key_on_shadows(move integer, k pg_constraint) RETURNS text
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
    SELECT format('FOREIGN KEY (%s) REFERENCES %s(%s)', c.shadows, f, p.shadows)
        || replace(substr(pg_get_constraintdef(($2).oid), length(
            format('FOREIGN KEY (%s) REFERENCES %s(%s)', c.names, f, p.names)) + 1),
            ' NOT VALID', '') || CASE WHEN t.relkind = 'r' THEN ' NOT VALID' ELSE '' END
    FROM pg_class AS t, CAST(($2).confrelid AS regclass) AS f,
        randflake_migrate.names($1, ($2).conrelid, ($2).conkey) AS c,
        randflake_migrate.names($1, ($2).confrelid, ($2).confkey) AS p
    WHERE t.oid = ($2).conrelid
$$;

-- Returns the indexes on the columns that move. Until step 7, `built` is the name of the index on
-- the shadow columns. `parent` is the partitioned index above a partition's index. Step 7 builds
-- the index `parent` on top of the partitions' indexes.
CREATE FUNCTION randflake_migrate.indexes(move integer)
RETURNS TABLE (rel regclass, index regclass, name name, built name, keys_only boolean,
    partitioned boolean, parent oid, step boolean)
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
    SELECT x.*, EXISTS (SELECT FROM randflake_migrate.step AS s WHERE s.move = $1
        AND s.kind = 'index' AND s.rel = x.indrelid AND s.made = x.built)
    FROM (SELECT i.indrelid, i.indexrelid, c.relname,
            format('randflake_%s_%s', $1, i.indexrelid)::name AS built, bool_and((p.p).is_key),
            c.relkind = 'I', h.inhparent
        FROM randflake_migrate.columns($1) AS p JOIN pg_index AS i ON i.indrelid = p.rel
        JOIN pg_class AS c ON c.oid = i.indexrelid
        LEFT JOIN pg_inherits AS h ON h.inhrelid = i.indexrelid
        WHERE p.att = ANY (i.indkey::int2[]) OR EXISTS (SELECT FROM pg_depend AS d
            WHERE d.classid = 'pg_class'::regclass AND d.objid = i.indexrelid
                AND d.refclassid = 'pg_class'::regclass AND d.refobjid = p.rel
                AND d.refobjsubid = p.att)
        GROUP BY i.indrelid, i.indexrelid, c.relname, c.relkind, h.inhparent) AS x
    ORDER BY x.indexrelid
$$;

-- Returns the foreign keys that move. Until step 7, `made` is the name of the key on the shadows. A
-- partition's key has the name of the parent key.
CREATE FUNCTION randflake_migrate.foreign_keys(move integer, OUT k pg_constraint, OUT made name)
RETURNS SETOF record LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
    SELECT f, format('randflake_%s_%s', $1, (
        WITH RECURSIVE up (oid, parent) AS (
            SELECT f.oid, f.conparentid
            UNION ALL SELECT c.oid, c.conparentid
            FROM up JOIN pg_constraint AS c ON c.oid = up.parent
        ) SELECT up.oid FROM up WHERE up.parent = 0))::name
    FROM pg_constraint AS f JOIN randflake_migrate.columns($1) AS p
        ON f.conrelid = p.rel AND p.att = ANY (f.conkey)
        OR f.confrelid = p.rel AND p.att = ANY (f.confkey)
    WHERE f.contype = 'f' AND (f.conparentid = 0 OR f.confrelid = (
        SELECT c.confrelid FROM pg_constraint AS c WHERE c.oid = f.conparentid))
    GROUP BY f.oid, f.* ORDER BY f.oid
$$;

-- Returns the statements that give a column's NOT NULL to the column that took its name. From
-- PostgreSQL 18 on, the constraint has a name, and a renaming fails if that of a partition has
-- another name. ALTER COLUMN TYPE gives the partition's constraint the name of the table's.
CREATE FUNCTION randflake_migrate.not_null(p randflake_migrate.part, rel regclass) RETURNS text
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
    WITH n AS (
        SELECT k.oid, k.conname, a.attname FROM pg_constraint AS k
        JOIN pg_attribute AS a ON a.attrelid = $2 AND k.conkey = ARRAY[a.attnum]
        WHERE k.contype = 'n' AND k.conrelid = $2
    )
    SELECT CASE WHEN o.oid IS NULL
        THEN format('ALTER TABLE %s ALTER COLUMN %I SET NOT NULL;', $2, p.name)
        ELSE concat(CASE WHEN EXISTS (SELECT FROM randflake_migrate.tree($2) AS t
                JOIN pg_attribute AS a ON a.attrelid = t.rel AND a.attname = p.name
                JOIN pg_constraint AS k ON k.contype = 'n' AND k.conrelid = t.rel
                    AND k.conkey = ARRAY[a.attnum] AND k.conname <> o.conname)
            THEN format(E'ALTER TABLE %s ALTER COLUMN %I TYPE %s;\n', $2, p.displaced,
                p.old_type) END,
            format(E'ALTER TABLE %s RENAME CONSTRAINT %I TO %I;\n', $2, o.conname,
                format('randflake_%s_%s', p.move, o.oid)),
            CASE WHEN s.oid IS NULL THEN format('ALTER TABLE %s ADD CONSTRAINT %I NOT NULL %I;',
                    $2, o.conname, p.name)
                ELSE format('ALTER TABLE %s RENAME CONSTRAINT %I TO %I;', $2, s.conname,
                    o.conname) END) END
    FROM (SELECT) AS x LEFT JOIN n AS o ON o.attname = p.name
    LEFT JOIN n AS s ON s.attname = p.shadow
$$;

-- Step 7, which exchanges all columns of a move. Each of these functions returns statements, and
-- their places in the step. They find operators as the statements will, by the same search_path.

CREATE FUNCTION randflake_migrate.swap_columns(move integer, back boolean)
RETURNS TABLE (place integer, n bigint, sql text)
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    PERFORM set_config('search_path', randflake_migrate.paths($1), true);
    RETURN QUERY SELECT l.place, a.attnum::bigint, l.sql
    FROM randflake_migrate.part AS p JOIN pg_attribute AS a
        ON a.attrelid = p.rel AND a.attname = p.name, randflake_migrate.exchanged(p) AS x,
    LATERAL (SELECT 2, randflake_migrate.unfollow(p)
        UNION ALL SELECT 5, concat(format(E'ALTER TABLE %1$s RENAME COLUMN %2$I TO %4$I;\n'
                'ALTER TABLE %1$s RENAME COLUMN %3$I TO %2$I;', p.rel, p.name, p.shadow,
                p.displaced),
            E'\n' || CASE WHEN a.attnotnull THEN randflake_migrate.not_null(p, p.rel)
                ELSE randflake_migrate.checked(x, false) END,
            format(E'\nALTER TABLE %s DROP CONSTRAINT IF EXISTS %I;', p.rel,
                randflake_migrate.called(p, 'check')),
            CASE WHEN p.is_key AND NOT back
                THEN format(E'\nALTER TABLE %s ALTER COLUMN %I SET DEFAULT %s;', p.rel, p.name,
                    p.maker) END)
        UNION ALL SELECT 10, randflake_migrate.follow(x,
            randflake_migrate.exchanged(randflake_migrate.key_of(p)))) AS l (place, sql)
    WHERE p.move = $1;
    RETURN QUERY SELECT 5, 10000::bigint, randflake_migrate.not_null(q.p, q.rel)
    FROM randflake_migrate.columns($1) AS q
    JOIN pg_attribute AS a ON a.attrelid = q.rel AND a.attnum = q.att AND a.attnotnull
    JOIN pg_attribute AS t ON t.attrelid = (q.p).rel AND t.attname = (q.p).name AND NOT t.attnotnull
    WHERE NOT EXISTS (SELECT FROM pg_constraint AS k WHERE k.contype = 'n' AND k.conrelid = q.rel
        AND k.conkey = ARRAY[q.att] AND k.coninhcount > 0);
    RETURN QUERY SELECT 8, l.n::bigint, l.sql FROM randflake_migrate.columns($1) AS q, LATERAL (
        SELECT 0, format('COMMENT ON COLUMN %s.%I IS %L;', q.rel::regclass, (q.p).name, d)
        FROM col_description(q.rel, q.att) AS d WHERE d IS NOT NULL
        UNION ALL SELECT 0, g FROM randflake_migrate.column_grants(q.rel, q.att) AS g
        UNION ALL SELECT 1, format('ALTER TABLE ONLY %s ALTER COLUMN %I SET%s;', q.rel::regclass,
            (q.p).name, o) FROM randflake_migrate.statistics(q.rel, q.att) AS o) AS l (n, sql);
END
$$;

CREATE FUNCTION randflake_migrate.swap_indexes(move integer)
RETURNS TABLE (place integer, n bigint, sql text)
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    PERFORM set_config('search_path', randflake_migrate.paths($1), true);
    RETURN QUERY SELECT l.* FROM (
        SELECT x.*, k.oid AS k, k.conname, k.contype, k.condeferrable, k.condeferred,
            length(format('CREATE %sINDEX %I ON ', CASE WHEN d.indisunique THEN 'UNIQUE ' END,
                x.name)) AS head, s.nspname, x.index::oid::bigint + CASE WHEN x.partitioned
            THEN (100 - (SELECT count(*) FROM pg_partition_ancestors(x.rel))) << 32 ELSE 0 END AS n
        FROM randflake_migrate.indexes($1) AS x JOIN pg_index AS d ON d.indexrelid = x.index
        JOIN pg_class AS c ON c.oid = x.index JOIN pg_namespace AS s ON s.oid = c.relnamespace
        LEFT JOIN pg_constraint AS k
            ON k.conindid = x.index AND k.contype IN ('p', 'u') AND k.conrelid = x.rel
        WHERE x.step OR x.partitioned) AS i,
    LATERAL (SELECT 4, i.n, CASE WHEN i.k IS NULL THEN format('DROP INDEX %s;', i.index)
            ELSE randflake_migrate.removal('pg_constraint'::regclass, i.k) END
        WHERE i.parent IS NULL
        UNION ALL SELECT 6, i.n, CASE WHEN i.partitioned AND i.k IS NULL
                THEN regexp_replace(pg_get_indexdef(i.index), format('^(.{%s})ONLY ', i.head),
                    '\1') || ';'
            WHEN i.partitioned THEN format('ALTER TABLE %s ADD CONSTRAINT %I %s;', i.rel,
                i.conname, pg_get_constraintdef(i.k))
            WHEN i.k IS NULL
                THEN format('ALTER INDEX %I.%I RENAME TO %I;', i.nspname, i.built, i.name)
            ELSE format('ALTER TABLE %s ADD CONSTRAINT %I %s USING INDEX %I%s%s;', i.rel, i.conname,
                CASE i.contype WHEN 'p' THEN 'PRIMARY KEY' ELSE 'UNIQUE' END, i.built,
                CASE WHEN i.condeferrable THEN ' DEFERRABLE' END,
                CASE WHEN i.condeferred THEN ' INITIALLY DEFERRED' END) END
            || randflake_migrate.marks(i.index)
        UNION ALL SELECT 8, 0, randflake_migrate.comments('pg_class'::regclass, i.index)
        UNION ALL SELECT 8, 0, randflake_migrate.comments('pg_constraint'::regclass, i.k)) AS l;
    RETURN QUERY SELECT l.* FROM randflake_migrate.foreign_keys($1) AS f, LATERAL (
        SELECT 3, (f.k).oid::bigint, randflake_migrate.removal('pg_constraint'::regclass, (f.k).oid)
        WHERE (f.k).conparentid = 0
        UNION ALL SELECT 7, (f.k).oid::bigint, format('ALTER TABLE %s RENAME CONSTRAINT %I TO %I;',
            (f.k).conrelid::regclass, f.made, (f.k).conname)
        UNION ALL SELECT 8, 0, randflake_migrate.comments('pg_constraint'::regclass, (f.k).oid)
    ) AS l;
END
$$;

CREATE FUNCTION randflake_migrate.swap_dependents(move integer)
RETURNS TABLE (place integer, n bigint, sql text)
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    PERFORM set_config('search_path', randflake_migrate.paths($1), true);
    RETURN QUERY WITH p AS (
        SELECT array_agg(p.rel::oid) AS rels, array_agg(a.attnum) AS atts,
            randflake_migrate.in_order(array_agg(p.rel), array_agg(p.root)) AS tables
        FROM randflake_migrate.part AS p
        JOIN pg_attribute AS a ON a.attrelid = p.rel AND a.attname = p.name WHERE p.move = $1
    ), again AS MATERIALIZED (
        SELECT h.*, k.contype FROM p, randflake_migrate.hanging(p.rels, p.atts) WITH ORDINALITY AS h
        LEFT JOIN pg_constraint AS k ON h.class = 'pg_constraint'::regclass AND k.oid = h.object
        WHERE k.contype IS DISTINCT FROM 'f'
            AND (h.how = 'made again' OR h.kind = 'statistics object' OR k.contype = 'c'
                AND k.conislocal AND k.conname !~ format('^randflake_%s_', $1))
    )
    SELECT 0, 0::bigint, randflake_migrate.lock(concat_ws(', ', (SELECT randflake_migrate.views(
        array_agg(h.object ORDER BY h.ordinality DESC)) FROM again AS h WHERE h.kind = 'view'),
        p.tables), 'ACCESS EXCLUSIVE') FROM p
    UNION ALL SELECT 1, -h.ordinality, randflake_migrate.removal(h.class, h.object) FROM again AS h
    UNION ALL SELECT 9, h.ordinality * 1000 + d.n, randflake_migrate.by(h.owner,
        CASE WHEN h.contype = 'c' THEN regexp_replace(d.sql, '^(ALTER TABLE .*?)( NOT VALID)?;$',
            '\1 NOT VALID;') ELSE d.sql END)
    FROM again AS h, randflake_migrate.definition(h.class, h.object) WITH ORDINALITY AS d (sql, n)
    UNION ALL SELECT 9, 1000000, f.sql FROM p, randflake_migrate.compiled_again(p.rels) AS f (sql);
END
$$;

-- Returns the statements of step 7. Until step 7 runs, each call returns the same statements,
-- unless the columns' dependents change.
CREATE FUNCTION randflake_migrate.swap(move integer, back boolean) RETURNS text
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
    SELECT string_agg(l.sql, E'\n' ORDER BY l.place, l.n, l.sql) FROM (
        SELECT * FROM randflake_migrate.swap_columns($1, $2)
        UNION ALL SELECT * FROM randflake_migrate.swap_indexes($1)
        UNION ALL SELECT * FROM randflake_migrate.swap_dependents($1)
        UNION ALL SELECT 0, 1, format('SELECT randflake_migrate.unchanged(%s);', $1)
        UNION ALL SELECT 11, 0, format(E'UPDATE randflake_migrate.part AS p SET (side, att, '
            'shadow_att, shadow, displaced, converts, type, maker, old_type, old_maker) =\n'
            '    (3 - p.side, p.shadow_att, p.att, p.displaced, p.shadow, p.was_same, p.old_type, '
            'p.old_maker, p.type, p.maker) WHERE p.move = %s;\n'
            'UPDATE randflake_migrate.step AS s SET (made, object) = (NULL, NULL) '
            'WHERE s.move = %1$s AND s.done IS NOT NULL;', $1)
        UNION ALL SELECT 11, 2, format('UPDATE randflake_migrate.move SET state = %L '
            'WHERE id = %s;', CASE WHEN $2 THEN 'going back' ELSE 'swapped' END, $1)) AS l
$$;

-- Returns SQL that drops all objects that the steps of a move have made. undo() uses it.
CREATE FUNCTION randflake_migrate.without_shadows(move integer) RETURNS text
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
    WITH p AS (SELECT v AS part, v.*
        FROM randflake_migrate.part AS v JOIN pg_class AS c ON c.oid = v.rel WHERE v.move = $1)
    SELECT concat_ws(E'\n', randflake_migrate.lock((SELECT randflake_migrate.in_order(
            array_agg(p.rel), array_agg(p.root)) FROM p), 'ACCESS EXCLUSIVE'),
        format('SELECT randflake_migrate.unchanged(%s);', $1),
        (SELECT string_agg(format('ALTER TABLE %s DROP CONSTRAINT %I;', c.conrelid::regclass,
            c.conname), E'\n' ORDER BY s.n)
        FROM randflake_migrate.step AS s
        JOIN pg_constraint AS c ON c.oid = s.object AND c.conparentid = 0
        WHERE s.move = $1 AND s.kind = 'constraint'),
        (SELECT string_agg(concat_ws(E'\n', randflake_migrate.unfollow(p.part),
            CASE WHEN a.attname IS NOT NULL
                THEN format('ALTER TABLE %s DROP COLUMN %I;', p.rel, a.attname) END),
            E'\n' ORDER BY p.is_key, p.k)
        FROM p LEFT JOIN pg_attribute AS a
            ON a.attrelid = p.rel AND a.attnum = p.shadow_att AND NOT a.attisdropped
        WHERE p.shadow_att IS NOT NULL),
        format('UPDATE randflake_migrate.move SET state = ''undone'' WHERE id = %s;', $1))
$$;

-- Raises an error if the tables' dependents have changed since the steps were printed.
CREATE FUNCTION randflake_migrate.unchanged(move integer) RETURNS void
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    s record;
    other text;
BEGIN
    SELECT v.kind, v.sql, m.state INTO s
    FROM randflake_migrate.step AS v JOIN randflake_migrate.move AS m ON m.id = v.move
    WHERE v.move = $1 AND v.kind IN ('swap', 'undo') ORDER BY v.n DESC LIMIT 1;
    IF s.kind = 'swap' THEN
        PERFORM randflake_migrate.check_made($1);
        SELECT min(x.what) INTO other FROM (
            SELECT 'index ' || i.index FROM randflake_migrate.indexes($1) AS i
            WHERE i.parent IS NULL AND NOT (i.partitioned OR i.step)
            UNION ALL SELECT format('foreign key %I of table %s', (f.k).conname,
                (f.k).conrelid::regclass) FROM randflake_migrate.foreign_keys($1) AS f
            WHERE (f.k).conparentid = 0 AND NOT EXISTS (SELECT FROM randflake_migrate.step AS o
                WHERE o.move = $1 AND o.rel = (f.k).conrelid AND o.made = f.made)
        ) AS x (what);
        IF other IS NOT NULL THEN
            RAISE object_not_in_prerequisite_state USING
                MESSAGE = format('%s was made since move %s began, which does not know it',
                    other, $1),
                HINT = format('Drop it, and make it again after step 7, when its columns have the '
                    'new keys. Or go back by randflake_migrate.undo(%s).', $1);
        END IF;
    END IF;
    IF strpos(s.sql, CASE s.kind WHEN 'swap'
        THEN randflake_migrate.swap($1, s.state = 'going back')
        ELSE randflake_migrate.without_shadows($1) END) = 0
    THEN
        RAISE object_not_in_prerequisite_state USING MESSAGE =
            'what hangs on the tables has changed since these statements were printed',
            HINT = format('SELECT randflake_migrate.todo(%s) prints them anew.', $1);
    END IF;
END
$$;

-- Returns a step's statements as one transaction.
CREATE FUNCTION randflake_migrate.in_transaction(move integer, n integer, sql text) RETURNS text
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
    SELECT format(E'BEGIN;\nSET LOCAL search_path = %s;\n'
        'SET LOCAL standard_conforming_strings = on;\nSET LOCAL check_function_bodies = off;\n'
        'SET LOCAL lock_timeout = ''2s'';\nSELECT randflake_migrate.done(%s, %s);\n%s\nCOMMIT;',
        randflake_migrate.paths($1), $1, $2, $3)
$$;

-- Adds a step. A step of the kind fill calls fill(), and needs no `sql`.
CREATE FUNCTION randflake_migrate.add(move integer, step integer, sql text,
    kind text DEFAULT 'transaction', rel regclass DEFAULT NULL, made name DEFAULT NULL,
    keys boolean DEFAULT NULL) RETURNS void
LANGUAGE sql SET search_path = pg_catalog, pg_temp AS $$
    INSERT INTO randflake_migrate.step AS s (move, n, step, sql, kind, rel, made)
    SELECT $1, l.n, $2, CASE WHEN $4 = 'index' THEN $3
        WHEN $4 = 'fill' THEN
            format('CALL randflake_migrate.fill(%s, %s, %L, %s);', $1, l.n, $5, $7::text)
        ELSE randflake_migrate.in_transaction($1, l.n, $3 || CASE
            WHEN $4 = 'constraint' OR $7 IS NOT NULL THEN
                format(E'\nSELECT randflake_migrate.made(%s, %s, %s, %s);', $1, l.n, $5::oid,
                    coalesce($7::text, 'NULL')) ELSE '' END) END, $4, $5, $6
    FROM (SELECT coalesce(max(o.n), 0) + 1 AS n
        FROM randflake_migrate.step AS o WHERE o.move = $1) AS l
$$;

-- Writes the steps that make and fill the shadows of keys, or those of references.
CREATE FUNCTION randflake_migrate.write_columns(move integer, keys boolean, back boolean)
RETURNS void LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    r record;
    last integer := CASE WHEN keys THEN 3 ELSE 5 END;
BEGIN
    FOR r IN SELECT v.rel, string_agg(format(E'ALTER TABLE %s ADD COLUMN %I %s;\n', v.rel,
            v.shadow, v.type) || randflake_migrate.checked(v, a.attnotnull) || E'\n'
            || randflake_migrate.follow(v, randflake_migrate.key_of(v)), E'\n') AS sql
        FROM randflake_migrate.part AS v
        JOIN pg_attribute AS a ON a.attrelid = v.rel AND a.attname = v.name
        WHERE v.move = $1 AND NOT back AND v.is_key = keys GROUP BY v.rel ORDER BY v.rel
    LOOP
        PERFORM randflake_migrate.add($1, CASE WHEN keys THEN 1 ELSE 4 END, r.sql, rel => r.rel,
            keys => keys);
        PERFORM randflake_migrate.add($1, CASE WHEN keys THEN 2 ELSE 4 END, NULL, 'fill', r.rel,
            keys => keys);
    END LOOP;
    FOR r IN SELECT x.*, d.indisunique FROM randflake_migrate.indexes($1) AS x
        JOIN pg_index AS d ON d.indexrelid = x.index WHERE x.keys_only = keys AND NOT x.partitioned
    LOOP
        PERFORM randflake_migrate.add($1, last, format('CREATE %sINDEX CONCURRENTLY %I ON %s %s;',
            CASE WHEN r.indisunique THEN 'UNIQUE ' END, r.built, r.rel,
            randflake_migrate.on_shadows($1, r.index)), 'index', r.rel, r.built);
    END LOOP;
    FOR r IN SELECT v.rel, randflake_migrate.called(v, 'check') AS made
        FROM randflake_migrate.part AS v
        LEFT JOIN pg_attribute AS a ON a.attrelid = v.rel AND a.attnum = v.shadow_att
        WHERE v.move = $1 AND v.is_key = keys AND a.attnotnull IS NOT TRUE
    LOOP
        PERFORM randflake_migrate.add($1, last,
            format('ALTER TABLE %s VALIDATE CONSTRAINT %I;', r.rel, r.made));
    END LOOP;
    PERFORM randflake_migrate.add($1, last, randflake_migrate.looked_at(v.rel, v.name, v.converts))
    FROM randflake_migrate.part AS v
    WHERE v.move = $1 AND NOT back AND v.is_key = keys AND v.old_type = 'int8'::regtype
        AND CASE WHEN v.converts THEN v.was_same AND v.type <> v.old_type ELSE v.is_key END;
END
$$;

-- Returns the statements that correct references before a foreign key is made: while a trigger
-- reserved a shadow for a reference, another transaction may have given the referenced row a
-- different shadow.
CREATE FUNCTION randflake_migrate.corrected(move integer, k pg_constraint) RETURNS text
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
    SELECT coalesce(string_agg(randflake_migrate.by(randflake_migrate.owner_of(($2).conrelid),
        format('UPDATE %s AS t SET %I = m.shadow FROM randflake_migrate.%I() AS m'
            ' WHERE t.%I = m.number AND t.%2$I <> m.shadow;', c.rel::regclass, (c.p).shadow,
            randflake_migrate.called(randflake_migrate.key_of(c.p), 'mixed'), (c.p).name))
        || E'\n', ''), '')
    FROM randflake_migrate.columns($1) AS c
    WHERE c.rel = ($2).conrelid AND NOT (c.p).is_key AND NOT (c.p).converts
$$;

-- Writes the steps that make foreign keys. First those of partitions and plain tables. That of a
-- partitioned table (`parents`) drops triggers of theirs on the table to which they refer, and
-- takes ACCESS EXCLUSIVE for that.
CREATE FUNCTION randflake_migrate.write_keys(move integer, parents boolean) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    f record;
BEGIN
    FOR f IN SELECT v.made, v.k, t.owner, (v.k).conrelid::regclass AS rel,
            format('ALTER TABLE %s ADD CONSTRAINT %I %s;', (v.k).conrelid::regclass, v.made,
                randflake_migrate.key_on_shadows($1, v.k)) AS sql
        FROM randflake_migrate.foreign_keys($1) AS v JOIN pg_class AS c ON c.oid = (v.k).conrelid,
            randflake_migrate.owner_of((v.k).conrelid) AS t (owner)
        WHERE parents = CASE WHEN c.relkind <> 'p' THEN false
            WHEN (v.k).conparentid = 0 THEN true END
    LOOP
        PERFORM randflake_migrate.add($1, 6, randflake_migrate.lock(
                concat_ws(', ', (f.k).confrelid::regclass, f.rel),
                CASE WHEN parents THEN 'ACCESS EXCLUSIVE' ELSE 'SHARE ROW EXCLUSIVE' END) || E'\n'
            || randflake_migrate.corrected($1, f.k)
            || CASE WHEN parents THEN randflake_migrate.by(f.owner, f.sql) ELSE f.sql END,
            'constraint', f.rel, f.made);
    END LOOP;
    FOR f IN SELECT v.made, (v.k).conrelid::regclass AS rel
        FROM randflake_migrate.foreign_keys($1) AS v JOIN pg_class AS c ON c.oid = (v.k).conrelid
        WHERE NOT parents AND c.relkind <> 'p' AND (v.k).convalidated
    LOOP
        PERFORM randflake_migrate.add($1, 6, randflake_migrate.validation(f.rel, f.made),
            rel => f.rel);
    END LOOP;
END
$$;

-- Writes all steps of a move. With `back`, writes the steps that reverse the move.
CREATE FUNCTION randflake_migrate.write(move integer, back boolean) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    f record;
BEGIN
    PERFORM randflake_migrate.write_columns($1, true, back);
    PERFORM randflake_migrate.write_columns($1, false, back);
    PERFORM randflake_migrate.write_keys($1, false);
    PERFORM randflake_migrate.write_keys($1, true);
    PERFORM randflake_migrate.add($1, 7, randflake_migrate.swap($1, back), 'swap');
    FOR f IN SELECT c.conrelid::regclass AS rel, c.conname FROM pg_constraint AS c
        WHERE c.contype = 'c' AND c.convalidated AND c.conislocal
            AND c.oid IN (SELECT k.oid FROM randflake_migrate.columns($1) AS v
                JOIN pg_constraint AS k ON k.conrelid = v.rel AND v.att = ANY (k.conkey))
    LOOP
        PERFORM randflake_migrate.add($1, 7, randflake_migrate.validation(f.rel, f.conname));
    END LOOP;
    PERFORM randflake_migrate.add($1, 8, (
        SELECT randflake_migrate.lock(randflake_migrate.in_order(array_agg(v.rel),
                array_agg(v.root)), 'ACCESS EXCLUSIVE')
            || format(E'\nSELECT randflake_migrate.check_made(%s);\n', $1)
            || string_agg(randflake_migrate.unfollow(randflake_migrate.exchanged(v))
                || format(E'\nALTER TABLE %s DROP COLUMN %I;', v.rel, v.displaced), E'\n'
                ORDER BY v.is_key, v.rel, v.name)
        FROM randflake_migrate.part AS v WHERE v.move = $1)
        || format(E'\nUPDATE randflake_migrate.move SET state = %L WHERE id = %s;',
            CASE WHEN back THEN 'undone' ELSE 'moved' END, $1));
END
$$;

-- Begins the online move of a table's group by recording its steps. Returns the move's number.
CREATE FUNCTION randflake_migrate.start(
    member regclass, target text DEFAULT 'bigint', rows text DEFAULT 'all') RETURNS integer
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
    wanted regclass;
    moved randflake_migrate.moved[];
    made integer;
BEGIN
    LOCK TABLE randflake_migrate.move;
    SELECT v.id INTO made
    FROM randflake_migrate.move AS v JOIN randflake_migrate.part AS p ON p.move = v.id
    WHERE p.rel = member AND v.state NOT IN ('moved', 'undone') LIMIT 1;
    IF FOUND THEN
        RAISE object_in_use USING MESSAGE = format('%s is being moved already', member),
            HINT = format('SELECT randflake_migrate.todo(%s) shows what is left.', made);
    END IF;
    wanted := randflake_migrate.group_of(member, target, rows, true);
    moved := ARRAY(SELECT v FROM randflake_migrate.moving(target, rows) AS v WHERE v.grp = wanted);
    IF NOT EXISTS (SELECT FROM unnest(moved) AS v WHERE v.changes) THEN
        RAISE object_not_in_prerequisite_state USING
            MESSAGE = format('nothing but defaults changes in the group of %s', wanted),
            HINT = 'randflake_migrate.transaction() takes a moment.';
    END IF;
    INSERT INTO randflake_migrate.move AS v (id, grp, mover, tables, names, owners, target, rows)
    SELECT randflake_migrate.next_move(), wanted::text, current_user, array_agg(c.oid),
        array_agg(c.oid::regclass::text), array_agg(r.rolname), $2, $3
    FROM pg_class AS c JOIN pg_roles AS r ON r.oid = c.relowner
    WHERE c.oid IN (SELECT m.rel FROM unnest(moved) AS m) RETURNING v.id INTO made;
    INSERT INTO randflake_migrate.part
    SELECT made, row_number() OVER (ORDER BY v.rel, v.att), 1, v.rel, v.name, v.att,
        randflake_migrate.beside('new_', v.name, v.att), NULL,
        randflake_migrate.beside('old_', v.name, v.att), v.source <> 'reference',
        v.source <> 'reference' AND EXISTS (SELECT FROM unnest(moved) AS o
            WHERE o.source = 'reference' AND o.root = v.rel AND o.root_name = v.name),
        v.root, v.root_name, v.keeps, v.to_type,
        CASE WHEN v.source <> 'reference' THEN v.generator END, v.type,
        CASE WHEN v.source IN ('identity', 'serial') THEN format('nextval(%L::regclass)',
            randflake_migrate.sequence_of(v.rel, v.att)::regclass) END, k.source = 'randflake'
    FROM unnest(moved) AS v JOIN unnest(moved) AS k ON k.rel = v.root AND k.name = v.root_name;
    PERFORM randflake_migrate.write(made, false);
    RETURN made;
END
$$;

-- Returns the remaining statements in order, for \gexec. Includes step 8 only with `clean_up`.
CREATE FUNCTION randflake_migrate.todo(move integer, clean_up boolean DEFAULT false)
RETURNS SETOF text LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
    s record;
    b record;
BEGIN
    UPDATE randflake_migrate.step AS v SET sql = randflake_migrate.in_transaction($1, v.n,
        CASE v.kind WHEN 'swap' THEN randflake_migrate.swap($1, m.state = 'going back')
            ELSE randflake_migrate.without_shadows($1) END)
    FROM randflake_migrate.move AS m
    WHERE m.id = $1 AND v.move = $1 AND v.done IS NULL AND v.kind IN ('swap', 'undo');
    -- A step for a dropped partition counts as done.
    UPDATE randflake_migrate.step AS v SET done = clock_timestamp()
    WHERE v.move = $1 AND v.done IS NULL
        AND v.rel NOT IN (SELECT c.rel FROM randflake_migrate.columns($1) AS c
            UNION ALL SELECT p.rel FROM randflake_migrate.part AS p WHERE p.move = $1);
    FOR s IN SELECT v.* FROM randflake_migrate.step AS v
        WHERE v.move = $1 AND v.done IS NULL AND (v.step < 8 OR clean_up) ORDER BY v.n
    LOOP
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
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
    m record;
BEGIN
    SELECT * INTO m FROM randflake_migrate.move AS v WHERE v.id = $1 FOR UPDATE;
    IF m.state IS NULL OR m.state NOT IN ('moving', 'swapped') THEN
        RAISE object_not_in_prerequisite_state USING
            MESSAGE = format('move %s cannot be undone', $1),
            DETAIL = format('It is %s.', coalesce(m.state, 'unknown')),
            HINT = 'After step 8 the old numbers are gone. A move that is going back goes back to '
                'its end.';
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
END
$$;

-- Sets search_path to the session's default for later statements in the transaction.
SET LOCAL search_path TO DEFAULT;
