-- The expressions of objects

-- Returns an object's expressions as PostgreSQL stores them, but leaves out implicit casts. The
-- word KEY replaces each given column ("table.number"), OTHER replaces any other column, and CONST
-- replaces any constant. Each UNION gets a number, which the result columns of its branches also
-- get: "{SETOPERATIONSTMT/1", ":resno 3/1".
CREATE FUNCTION randflake_migrate.tree(class oid, object oid, keys text[]) RETURNS text
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    tree text;
    token text;
    v text[];
    nodes text[] := '{}';        -- open ones
    queries integer[] := '{0}';  -- of these; their numbers; the count of relations before each
    numbers integer[] := '{0}';
    before integer[] := '{0}';
    last integer := 0;
    relations oid[];             -- in the range tables of these queries
    result text[] := '{}';
BEGIN
    SELECT x.tree, ARRAY[x.rel, x.rel] INTO tree, relations FROM (
        SELECT concat(i.indexprs, i.indpred), i.indrelid FROM pg_index AS i
        WHERE $1 = 'pg_class'::regclass AND i.indexrelid = $2
        UNION ALL SELECT concat(r.ev_qual, r.ev_action), r.ev_class FROM pg_rewrite AS r
        WHERE $1 = 'pg_class'::regclass AND r.ev_class = $2 AND r.rulename = '_RETURN'
        --@ for catalog first second rel: pg_constraint conbin NULL conrelid;
        --@ and pg_rewrite ev_qual ev_action ev_class; pg_policy polqual polwithcheck polrelid;
        --@ and pg_trigger tgqual NULL tgrelid; pg_proc prosqlbody NULL 0;
        --@ and pg_publication_rel prqual NULL prrelid; pg_statistic_ext stxexprs NULL stxrelid
        UNION ALL SELECT concat(@first@, @second@), @rel@ FROM @catalog@ AS x
        WHERE $1 = '@catalog@'::regclass AND x.oid = $2
        --@ end
    ) AS x (tree, rel);
    FOR token IN SELECT m[1] FROM regexp_matches(tree, '(\{VAR [^{}]*\}|\{\w*|\}|:relid \d+'
        '|(?:[^{}:\\]|\\.|:(?!relid ))+)', 'g') AS m
    LOOP
        IF token LIKE '{VAR %' THEN
            v := regexp_match(token, ':varno (\d+) :varattno (-?\d+) .*:varlevelsup (\d+)');
            v[1] := relations[before[cardinality(before) - v[3]::integer] + v[1]::integer];
            token := CASE WHEN v[1] || '.' || v[2] = ANY ($3) THEN 'KEY'
                WHEN EXISTS (SELECT FROM pg_class AS c
                    WHERE c.oid = v[1]::oid AND c.relkind IN ('r', 'p')) THEN 'OTHER'
                ELSE token END;
        ELSIF token LIKE '{%' THEN
            nodes := nodes || token;
            IF token = '{QUERY' THEN
                last := last + 1;
                queries := queries || cardinality(nodes);
                numbers := numbers || last;
                before := before || cardinality(relations);
            ELSIF token = '{RANGETBLENTRY' THEN
                relations := relations || 0::oid;
            ELSIF token = '{SETOPERATIONSTMT' THEN
                token := token || '/' || numbers[cardinality(numbers)];
            END IF;
        ELSIF token LIKE ':relid %' AND nodes[cardinality(nodes)] = '{RANGETBLENTRY' THEN
            relations[cardinality(relations)] := substr(token, 8)::oid;
        ELSIF queries[cardinality(queries)] = cardinality(nodes) - 1 AND token LIKE ' :resno %' THEN
            token := regexp_replace(token, '(\d+)', '\1/' || numbers[cardinality(numbers) - 1]);
        ELSIF token = '}' THEN
            IF queries[cardinality(queries)] = cardinality(nodes) THEN
                relations := relations[:before[cardinality(before)]];
                queries := trim_array(queries, 1);
                numbers := trim_array(numbers, 1);
                before := trim_array(before, 1);
            END IF;
            nodes := trim_array(nodes, 1);
        END IF;
        result := result || token;
    END LOOP;
    tree := regexp_replace(array_to_string(result, ''), '\{CONST [^{}]*\}', 'CONST', 'g');
    tree := regexp_replace(tree, '\{FUNCEXPR [^{}]*:args \(CONST\)[^{}]*\}', 'CONST', 'g');
    tree := regexp_replace(tree, '\{ARRAY(?:EXPR)? [^{}]*:elements \(CONST[^{}]*\}', 'CONST', 'g');
    RETURN regexp_replace(tree,
        '\{FUNCEXPR [^{}]*:funcformat 2 [^{}]*:args \((KEY|OTHER)\)[^{}]*\}', '\1', 'g');
END $$;

-- Returns the operations that this expression applies to a key, but that the type does not support.
CREATE FUNCTION randflake_migrate.lacking(tree text, type regtype) RETURNS text
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
    SELECT string_agg(DISTINCT x.what, ', ') FROM (
        SELECT format('%s with %s', o.oprname,
            format_type(CASE r[2] WHEN 'KEY' THEN o.oprright ELSE o.oprleft END, NULL))
        FROM regexp_matches($1, ':opno (\d+) [^{}]*:args '
            '\((KEY|CONST|OTHER|\{[^{}]*\}) ?(KEY|CONST|OTHER)?', 'g') AS r
        JOIN pg_operator AS o ON o.oid = r[1]::oid
        WHERE 'KEY' IN (r[2], r[3]) AND ('CONST' IN (r[2], r[3]) OR 'OTHER' IN (r[2], r[3])
            OR NOT EXISTS (SELECT FROM pg_operator AS n WHERE n.oprname = o.oprname
                AND n.oprright = $2 AND n.oprresult = 'bool'::regtype))
        UNION ALL SELECT p.oid::regprocedure::text
        FROM regexp_matches($1, '\{(?:FUNCEXPR :funcid|AGGREF :aggfnoid) (\d+) [^{}]*'
            ':args \((?:[^{}]*|\{TARGETENTRY :expr )KEY', 'g') AS r
        JOIN pg_proc AS p ON p.oid = r[1]::oid
        WHERE p.proargtypes::oid[] && '{int2,int4,int8,numeric,float8}'::regtype[]::oid[]
            AND p.proname <> 'int8' AND NOT EXISTS (SELECT FROM pg_proc AS n
                WHERE n.proname = p.proname AND $2 = ANY (n.proargtypes::oid[]))
        UNION ALL SELECT lower(r[1]) || ' with a number'
        FROM regexp_matches($1, '\{(COALESCE|MINMAX)(?:EXPR)? [^{}]*'
            ':args \([^{}]*(?:KEY CONST|CONST KEY)', 'g') AS r
        UNION ALL SELECT 'UNION with what is no key'
        FROM regexp_matches($1, '\{SETOPERATIONSTMT/(\d+)', 'g') AS s WHERE EXISTS (
            SELECT FROM regexp_matches($1, '(KEY)? :resno (\d+)/(\d+)', 'g') AS r
            WHERE r[3] = s[1] GROUP BY r[2] HAVING count(r[1]) BETWEEN 1 AND count(*) - 1)
    ) AS x (what)
$$;
