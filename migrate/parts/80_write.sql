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
    PERFORM randflake_migrate.add($1, last, randflake_migrate.judgments(v.rel, v.name, v.converts))
    FROM randflake_migrate.part AS v
    WHERE v.move = $1 AND NOT back AND v.is_key = keys AND v.old_type = 'int8'::regtype
        AND CASE WHEN v.converts THEN v.was_same AND v.type <> v.old_type ELSE v.is_key END;
END $$;

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
END $$;

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
END $$;
