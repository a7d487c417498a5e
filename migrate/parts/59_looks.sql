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
END $$;

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
END $$;
