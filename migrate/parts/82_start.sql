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
END $$;

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
END $$;

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
END $$;
