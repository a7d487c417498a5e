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
END $$;

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
END $$;

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
END $$;

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
END $$;
