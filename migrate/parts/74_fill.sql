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
END $$;
