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
END $$;

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
END $$;

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
END $$;

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
    RETURN QUERY SELECT randflake_migrate.judgments(v.rel, v.name, v.keeps)
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
END $$;
