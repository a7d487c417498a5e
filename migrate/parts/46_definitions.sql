-- The statements that drop dependent objects and make them again

CREATE FUNCTION randflake_migrate.comments(class oid, object oid) RETURNS SETOF text
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
    SELECT format('COMMENT ON %s %s IS %L;', CASE i.type WHEN 'statistics object' THEN 'STATISTICS'
        ELSE upper(regexp_replace(i.type, '^(table|view|materialized view) (column|constraint)$',
            '\2')) END, i.identity, d.description)
    FROM pg_description AS d, pg_identify_object(d.classoid, d.objoid, d.objsubid) AS i
    WHERE d.classoid = $1 AND d.objoid = $2 ORDER BY d.objsubid
$$;

CREATE FUNCTION randflake_migrate.grantee(role oid) RETURNS text
LANGUAGE sql STABLE RETURN coalesce(nullif(role, 0)::regrole::text, 'PUBLIC');

-- Returns statements that set the owner and grants of a new view or function.
CREATE FUNCTION randflake_migrate.grants(what text, kind text, owner oid, acl aclitem[])
RETURNS SETOF text LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
    WITH k (object, letter) AS (
        SELECT CASE WHEN $2 LIKE '%view' THEN 'TABLE ' ELSE 'ROUTINE ' END || $1,
            CASE WHEN $2 LIKE '%view' THEN 'r' ELSE 'f' END::"char"
        WHERE $4 IS NOT NULL OR EXISTS (SELECT FROM pg_default_acl)
    )
    SELECT format('ALTER %s %s OWNER TO %s;', upper($2), $1, $3::regrole)
    UNION ALL SELECT format('REVOKE ALL ON %s FROM %s;', k.object,
        (SELECT string_agg(DISTINCT r.name, ', ') FROM (
            SELECT randflake_migrate.grantee(g.grantee)
            FROM pg_default_acl AS d, aclexplode(d.defaclacl) AS g
            UNION SELECT 'PUBLIC' UNION SELECT $3::regrole::text) AS r (name))) FROM k
    UNION ALL SELECT format('GRANT %s ON %s TO %s%s;', g.privilege_type, k.object,
        randflake_migrate.grantee(g.grantee),
        CASE WHEN g.is_grantable THEN ' WITH GRANT OPTION' END)
    FROM k, aclexplode(coalesce($4, acldefault(k.letter, $3))) AS g
$$;

-- Returns the grants on one column of a relation, or on each of its columns.
CREATE FUNCTION randflake_migrate.column_grants(rel oid, att smallint DEFAULT NULL)
RETURNS SETOF text LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
    SELECT format('GRANT %s (%I) ON TABLE %s TO %s%s;', g.privilege_type, a.attname, $1::regclass,
        randflake_migrate.grantee(g.grantee),
        CASE WHEN g.is_grantable THEN ' WITH GRANT OPTION' END)
    FROM pg_attribute AS a, aclexplode(a.attacl) AS g
    WHERE a.attrelid = $1 AND (a.attnum = $2 OR $2 IS NULL) AND NOT a.attisdropped
$$;

-- Returns a column's statistics settings in the form that SET takes. Ignores other options.
CREATE FUNCTION randflake_migrate.statistics(rel oid, att smallint) RETURNS SETOF text
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
    SELECT ' STATISTICS ' || a.attstattarget FROM pg_attribute AS a
    WHERE a.attrelid = $1 AND a.attnum = $2 AND a.attstattarget >= 0
    UNION ALL SELECT ' (' || string_agg(o, ', ') || ')'
    FROM pg_attribute AS a, unnest(a.attoptions) AS o
    WHERE a.attrelid = $1 AND a.attnum = $2 AND o LIKE 'n\_distinct%' HAVING count(*) > 0
$$;

-- Returns the statements that mark an index as its table's cluster index or replica identity.
CREATE FUNCTION randflake_migrate.marks(index oid) RETURNS text
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
    SELECT concat(CASE WHEN i.indisreplident
            THEN format(E'\nALTER TABLE %s REPLICA IDENTITY USING INDEX %I;', t, c.relname) END,
        CASE WHEN i.indisclustered
            THEN format(E'\nALTER TABLE %s CLUSTER ON %I;', t, c.relname) END)
    FROM pg_index AS i JOIN pg_class AS c ON c.oid = i.indexrelid, CAST(i.indrelid AS regclass) AS t
    WHERE i.indexrelid = $1
$$;

-- ALTER COLUMN TYPE renames the index of `rel` that belongs to `parent`. Restores the former name.
CREATE FUNCTION randflake_migrate.rename_index(parent regclass, rel regclass, name name)
RETURNS void LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    index regclass := (SELECT i.indexrelid
        FROM pg_inherits AS h JOIN pg_index AS i ON i.indexrelid = h.inhrelid
        JOIN pg_class AS c ON c.oid = i.indexrelid AND c.relname <> $3
        WHERE h.inhparent = $1 AND i.indrelid = $2);
BEGIN
    IF index IS NOT NULL THEN
        EXECUTE format('ALTER INDEX %s RENAME TO %I', index, $3);
    END IF;
END $$;

-- Returns the statement that drops an object that the move later creates again.
CREATE FUNCTION randflake_migrate.removal(class oid, object oid) RETURNS text
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
    SELECT CASE i.type
        WHEN 'table constraint' THEN (
            SELECT format('ALTER TABLE %s DROP CONSTRAINT %I;', c.conrelid::regclass, c.conname)
            FROM pg_constraint AS c WHERE c.oid = $2)
        WHEN 'default value' THEN (
            SELECT format('ALTER VIEW %s ALTER COLUMN %I DROP DEFAULT;', a.attrelid::regclass,
                a.attname)
            FROM pg_attrdef AS d JOIN pg_attribute AS a
                ON a.attrelid = d.adrelid AND a.attnum = d.adnum WHERE d.oid = $2)
        WHEN 'publication relation' THEN (
            SELECT format('ALTER PUBLICATION %I DROP TABLE %s;', p.pubname, r.prrelid::regclass)
            FROM pg_publication_rel AS r JOIN pg_publication AS p ON p.oid = r.prpubid
            WHERE r.oid = $2)
        WHEN 'statistics object' THEN format('DROP STATISTICS %s;', i.identity)
        ELSE format('DROP %s %s;', upper(i.type), i.identity) END
    FROM pg_identify_object($1, $2, 0) AS i
$$;
