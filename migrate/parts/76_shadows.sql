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
END $$;

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
