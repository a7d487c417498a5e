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
END $$;

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
            AND c.relnamespace OPERATOR(pg_catalog.=) 'randflake_migrate'::pg_catalog.regnamespace)
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
END $$;

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
END $$;

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
            --@ for catalog rel: pg_constraint conrelid; pg_trigger tgrelid; pg_rewrite ev_class;
            --@ and pg_policy polrelid; pg_attrdef adrelid; pg_statistic_ext stxrelid
            UNION ALL SELECT x.@rel@ FROM @catalog@ AS x
            WHERE $2 = '@catalog@'::regclass AND x.oid = $1
            --@ end
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
END $$;
