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
END $$;

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
END $$;

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
END $$;

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
END $$;
