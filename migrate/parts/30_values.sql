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
END $$;

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
END $$;

-- Raises an error if doubt() finds one. While a step runs, a table's owner can call this function,
-- so that the owner's role can read the table, but not decode its identifiers.
CREATE FUNCTION randflake_migrate.judge(rel regclass, name name, numbers bigint[], keeps boolean)
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
END $$;
REVOKE EXECUTE ON FUNCTION randflake_migrate.judge(regclass, name, bigint[], boolean) FROM PUBLIC;

-- Returns the statements that look at all values of a column, as the owner of its table.
CREATE FUNCTION randflake_migrate.judgments(rel regclass, name name, keeps boolean) RETURNS text
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
    SELECT CASE WHEN c.relowner = randflake_migrate.me() THEN s.sql ELSE format(
        E'GRANT EXECUTE ON FUNCTION %1$s TO %2$s;\n%3$s\n'
        'REVOKE EXECUTE ON FUNCTION %1$s FROM %2$s;', 'randflake_migrate.judge',
        c.relowner::regrole, randflake_migrate.by(c.relowner, s.sql)) END
    FROM pg_class AS c, format('SELECT sum(randflake_migrate.judge(%L, %L, s.numbers, %s))'
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
END $$;
