-- The plan

-- Each row is a move that start() began.
CREATE TABLE randflake_migrate.move (
    id       integer PRIMARY KEY,
    grp      text NOT NULL,
    mover    name NOT NULL,
    tables   oid[] NOT NULL,  -- and their names and owners in the steps
    names    text[] NOT NULL,
    owners   name[] NOT NULL,
    target   text NOT NULL,
    rows     text NOT NULL,
    state    text NOT NULL DEFAULT 'moving'
        CHECK (state IN ('moving', 'swapped', 'moved', 'going back', 'undone')),
    pages    integer NOT NULL DEFAULT 64 CHECK (pages > 0),  -- that fill() fills in one transaction
    pause    interval NOT NULL DEFAULT '0'                   -- after each such transaction
);

CREATE FUNCTION randflake_migrate.next_move() RETURNS integer LANGUAGE sql STABLE
RETURN (SELECT coalesce(max(m.id), 0) + 1 FROM randflake_migrate.move AS m);

CREATE FUNCTION randflake_migrate.beside(prefix text, name name, att smallint) RETURNS name
LANGUAGE sql IMMUTABLE
RETURN ($1 || CASE WHEN octet_length($1 || $2) < 64 THEN $2::text ELSE $3::text END)::name;

-- Returns the sequence of an identity column, or of a column whose default is nextval().
CREATE FUNCTION randflake_migrate.sequence_of(rel regclass, att smallint) RETURNS oid
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
    SELECT d.objid FROM pg_depend AS d
    WHERE d.classid = 'pg_class'::regclass AND d.refclassid = 'pg_class'::regclass
        AND d.refobjid = $1 AND d.refobjsubid = $2 AND d.deptype = 'i'
    UNION ALL SELECT s.oid FROM pg_attrdef AS f
    JOIN pg_depend AS d ON d.classid = 'pg_attrdef'::regclass AND d.objid = f.oid
        AND d.refclassid = 'pg_class'::regclass
    JOIN pg_class AS s ON s.oid = d.refobjid AND s.relkind = 'S'
    WHERE f.adrelid = $1 AND f.adnum = $2 AND regexp_replace(pg_get_expr(f.adbin, f.adrelid),
            '^\((.*)\)::(integer|smallint)$', '\1')
        = format('nextval(''%s''::regclass)', replace(s.oid::regclass::text, '''', ''''''))
$$;

-- Returns the publications that include this schema's tables, and SQL that excludes them. A
-- publication of all tables counts even if it excludes the tables that exist now.
CREATE FUNCTION randflake_migrate.publications(OUT name name, OUT remedy text) RETURNS SETOF record
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
    SELECT p.pubname, CASE
        WHEN p.puballtables THEN format(E'DROP PUBLICATION %I;\nCREATE PUBLICATION %1$I%s'
            ' WITH (publish = %L, publish_via_partition_root = %s);'
            '  -- and on each subscriber: ALTER SUBSCRIPTION … REFRESH PUBLICATION', p.pubname,
            ' FOR TABLE ' || (SELECT string_agg(c.oid::regclass::text, ', ' ORDER BY c.oid)
                FROM pg_publication_tables AS x JOIN pg_class AS c ON c.relname = x.tablename
                    AND c.relnamespace::regnamespace = quote_ident(x.schemaname)::regnamespace
                WHERE x.pubname = p.pubname AND x.schemaname <> 'randflake_migrate'
                    AND NOT EXISTS (SELECT FROM pg_depend AS d WHERE d.objid = c.oid
                        AND d.classid = 'pg_class'::regclass AND d.deptype = 'e')),
            concat_ws(', ', CASE WHEN p.pubinsert THEN 'insert' END,
                CASE WHEN p.pubupdate THEN 'update' END, CASE WHEN p.pubdelete THEN 'delete' END,
                CASE WHEN p.pubtruncate THEN 'truncate' END), p.pubviaroot::text)
        WHEN EXISTS (SELECT FROM pg_publication_namespace AS n
            WHERE n.pnpubid = p.oid AND n.pnnspid = 'randflake_migrate'::regnamespace)
            THEN format('ALTER PUBLICATION %I DROP TABLES IN SCHEMA randflake_migrate;', p.pubname)
        ELSE format('ALTER PUBLICATION %I DROP TABLE %s;', p.pubname,
            (SELECT string_agg(r.prrelid::regclass::text, ', ')
            FROM pg_publication_rel AS r JOIN pg_class AS c ON c.oid = r.prrelid
            WHERE r.prpubid = p.oid AND c.relnamespace = 'randflake_migrate'::regnamespace)) END
    FROM pg_publication AS p WHERE p.puballtables OR EXISTS (SELECT FROM pg_publication_tables AS x
        WHERE x.pubname = p.pubname AND x.schemaname = 'randflake_migrate')
$$;

-- A publication may be created after the plan. Then no step changes the state of a move.
CREATE FUNCTION randflake_migrate.unpublished() RETURNS trigger
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    p record;
BEGIN
    SELECT * INTO p FROM randflake_migrate.publications() LIMIT 1;
    IF FOUND THEN
        RAISE object_not_in_prerequisite_state USING
            MESSAGE = format('publication "%s" would send the state of the move to subscribers',
                p.name),
            DETAIL = 'The subscribers lack these tables, and would stop.', HINT = p.remedy;
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER unpublished BEFORE INSERT OR UPDATE OR DELETE ON randflake_migrate.move
    FOR EACH STATEMENT EXECUTE FUNCTION randflake_migrate.unpublished();
ALTER TABLE randflake_migrate.move ENABLE ALWAYS TRIGGER unpublished;
