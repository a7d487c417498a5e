-- Online steps

-- Each row is one moved column. Step 7 renames `name` to `displaced`, and `shadow` to `name`.
CREATE TABLE randflake_migrate.part (
    move      integer NOT NULL REFERENCES randflake_migrate.move ON DELETE CASCADE,
    k         integer NOT NULL,
    side      integer NOT NULL DEFAULT 1,  -- 2 after step 7
    rel       regclass NOT NULL,
    name      name NOT NULL,
    att       smallint NOT NULL,
    shadow    name NOT NULL,
    shadow_att smallint,         -- from the step that makes it
    displaced name NOT NULL,
    is_key    boolean NOT NULL,
    is_referred_to boolean NOT NULL,
    root      regclass NOT NULL,
    root_name name NOT NULL,
    converts  boolean NOT NULL,  -- the shadow has the same value in another type
    type      regtype NOT NULL,  -- of the shadow
    maker     text,              -- generates the shadow of a key
    old_type  regtype NOT NULL,
    old_maker text,
    was_same  boolean NOT NULL,  -- has identifiers: both columns are always equal
    PRIMARY KEY (move, rel, name)
);

-- Each row is a step: CREATE INDEX CONCURRENTLY, or a transaction that also marks the step done.
CREATE TABLE randflake_migrate.step (
    move  integer NOT NULL REFERENCES randflake_migrate.move ON DELETE CASCADE,
    n     integer NOT NULL,
    step  integer NOT NULL,  -- of the eight in docs/migrating.md
    sql   text NOT NULL,
    kind  text NOT NULL
        CHECK (kind IN ('transaction', 'fill', 'constraint', 'index', 'swap', 'undo')),
    rel   regclass,          -- table of the constraint or index that it makes
    made  name,              -- its name until step 7
    object oid,              -- and its oid, from its creation
    begun timestamptz,       -- an index: this step reserved the free name
    leaf  oid,               -- progress of fill(): table or partition, and page
    page  bigint,
    pages bigint,
    done  timestamptz,
    PRIMARY KEY (move, n)
);
CREATE TRIGGER unpublished BEFORE INSERT OR UPDATE OR DELETE ON randflake_migrate.step
    FOR EACH STATEMENT EXECUTE FUNCTION randflake_migrate.unpublished();
ALTER TABLE randflake_migrate.step ENABLE ALWAYS TRIGGER unpublished;

-- Returns the columns that move, in tables and in their partitions.
CREATE FUNCTION randflake_migrate.columns(
    move integer, OUT rel oid, OUT att smallint, OUT p randflake_migrate.part)
RETURNS SETOF record LANGUAGE sql STABLE ROWS 100 SET search_path = pg_catalog, pg_temp AS $$
    SELECT a.attrelid, a.attnum, v
    FROM randflake_migrate.part AS v, randflake_migrate.tree(v.rel) AS t
    JOIN pg_attribute AS a ON a.attrelid = t.rel AND a.attnum > 0 AND NOT a.attisdropped
    WHERE v.move = $1 AND a.attname = v.name
$$;

-- Returns the column of the key to which a column refers.
CREATE FUNCTION randflake_migrate.key_of(p randflake_migrate.part) RETURNS randflake_migrate.part
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
    SELECT r FROM randflake_migrate.part AS r
    WHERE r.move = ($1).move AND r.rel = ($1).root AND r.name = ($1).root_name
$$;

CREATE FUNCTION randflake_migrate.paths(move integer) RETURNS text
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
    SELECT randflake_migrate.path(VARIADIC array_agg(p.type) || array_agg(p.old_type))
    FROM randflake_migrate.part AS p WHERE p.move = $1
$$;

-- Returns the name of a column's object: the shadow's check, or an object that follow() makes.
CREATE FUNCTION randflake_migrate.called(p randflake_migrate.part, what text) RETURNS name
LANGUAGE sql IMMUTABLE
RETURN CASE $2 WHEN 'trigger' THEN format('zzz_randflake_%s_%s_%s_%s', p.move,
        CASE WHEN p.is_key THEN 2 ELSE 1 END, p.k, p.side)
    WHEN 'check' THEN format('randflake_%s_%s_%s', p.move, p.k, p.side)
    ELSE format('m%s_%s_%s_%s', p.move, p.k, p.side, $2) END::name;

-- Returns a column as it is after step 7, when the two columns have exchanged their names.
CREATE FUNCTION randflake_migrate.exchanged(p randflake_migrate.part)
RETURNS randflake_migrate.part LANGUAGE sql IMMUTABLE
RETURN ROW(p.move, p.k, 3 - p.side, p.rel, p.name, p.shadow_att, p.displaced, p.att, p.shadow,
    p.is_key, p.is_referred_to, p.root, p.root_name, p.was_same, p.old_type, p.old_maker,
    p.type, p.maker, p.was_same)::randflake_migrate.part;
