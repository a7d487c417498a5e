-- Returns the statement that adds a shadow's check. With this check, SET NOT NULL needs no scan.
CREATE FUNCTION randflake_migrate.checked(p randflake_migrate.part, not_null boolean) RETURNS text
LANGUAGE sql IMMUTABLE SET search_path = pg_catalog, pg_temp AS $$
    SELECT format('ALTER TABLE %s ADD CONSTRAINT %I CHECK (%I IS NOT NULL%s) NOT VALID;', p.rel,
        randflake_migrate.called(p, 'check'), p.shadow,
        CASE WHEN NOT $2 THEN format(' OR %I IS NULL', p.name) END)
$$;

-- follow() makes the trigger and the functions that set a column's shadow. PostgreSQL runs triggers
-- in order of name: the program's triggers, then those of references, then those of keys. Triggers
-- of keys look for reserved shadows. A key to which others refer has these objects:
--   _kept     has shadows of numbers whose row left, or that a deferred reference used first
--   _find     returns a number's shadow from its row or from _kept, even if the table is renamed
--   _shadow   calls _find, and reserves a shadow in _kept if the number has none
--   _mixed    returns numbers for which _kept and the row have different shadows

-- Returns whether this column is such a key.
CREATE FUNCTION randflake_migrate.has_kept(p randflake_migrate.part) RETURNS boolean
LANGUAGE sql IMMUTABLE RETURN p.is_key AND p.is_referred_to AND NOT p.converts;

-- Returns a CREATE FUNCTION up to its body. `what` has the arguments and the result.
CREATE FUNCTION randflake_migrate.head(
    p randflake_migrate.part, name text, signature text, language text) RETURNS text
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
    SELECT format('CREATE FUNCTION randflake_migrate.%I%s LANGUAGE %s SECURITY DEFINER'
        ' SET search_path = %s', randflake_migrate.called($1, $2), $3, $4,
        randflake_migrate.paths(($1).move))
$$;

-- Returns the statements that make the objects of a key.
CREATE FUNCTION randflake_migrate.kept(p randflake_migrate.part) RETURNS text
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    kept name := randflake_migrate.called(p, 'kept');
    find name := randflake_migrate.called(p, 'find');
    shadow name := randflake_migrate.called(p, 'shadow');
    mixed name := randflake_migrate.called(p, 'mixed');
    number regtype := CASE WHEN p.old_type IN ('int2'::regtype, 'int4'::regtype) THEN 'int8'
        ELSE p.old_type END;
    types text := format('(%s) RETURNS %s', number, p.type);
BEGIN
    RETURN format(E'CREATE TABLE randflake_migrate.%I (number %s PRIMARY KEY,'
            ' shadow %s NOT NULL);\n', kept, number, p.type)
        || randflake_migrate.head(p, 'find', types, 'sql STRICT')
        || format(E'\n    RETURN coalesce((SELECT r.%I FROM %s AS r WHERE r.%I = $1),'
            ' (SELECT k.shadow FROM randflake_migrate.%I AS k WHERE k.number = $1));\n',
            p.shadow, p.rel, p.name, kept)
        || randflake_migrate.head(p, 'mixed',
            format('() RETURNS TABLE (number %s, shadow %s)', number, p.type), 'sql')
        || format(E'\nBEGIN ATOMIC\n    SELECT k.number, r.%1$I FROM randflake_migrate.%2$I AS k'
            ' JOIN %3$s AS r ON r.%4$I = k.number WHERE r.%1$I <> k.shadow;\nEND;\n',
            p.shadow, kept, p.rel, p.name)
        || randflake_migrate.head(p, 'shadow', types, 'plpgsql STRICT')
        || format(E' AS %L;\n', format($f$
DECLARE
    result %s := randflake_migrate.%I($1);
BEGIN
    IF result IS NULL THEN
        INSERT INTO randflake_migrate.%I AS k VALUES ($1, %s)
        ON CONFLICT (number) DO UPDATE SET shadow = k.shadow RETURNING k.shadow INTO result;
    END IF;
    RETURN result;
END
$f$, p.type, find, kept, p.maker))
        || format(E'REVOKE EXECUTE ON FUNCTION randflake_migrate.%1$I(%2$s),'
            ' randflake_migrate.%3$I(%2$s), randflake_migrate.%4$I() FROM PUBLIC;\n'
            'GRANT EXECUTE ON FUNCTION randflake_migrate.%3$I(%2$s), randflake_migrate.%4$I()'
            ' TO %5$s;\n', find, number, shadow, mixed,
            (SELECT string_agg(DISTINCT c.relowner::regrole::text, ', ')
            FROM randflake_migrate.part AS v, randflake_migrate.tree(v.rel) AS t
            JOIN pg_class AS c ON c.oid = t.rel
            WHERE v.move = p.move AND v.root = p.rel AND v.root_name = p.name))
        || randflake_migrate.given(randflake_migrate.owner_of(p.rel), kept, find, shadow, mixed);
END $$;

-- Returns the body of the trigger's function. Column p refers to the key r, or is the key r.
CREATE FUNCTION randflake_migrate.body(p randflake_migrate.part, r randflake_migrate.part)
RETURNS text LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF p.converts THEN  -- an assignment to the type refuses small numbers
        RETURN format($f$
BEGIN
    NEW.%I := NEW.%I;
    RETURN NEW;
END
$f$, p.shadow, p.name);
    ELSIF NOT p.is_key THEN
        RETURN format($f$
BEGIN
    IF TG_OP = 'UPDATE' THEN
        IF NEW.%1$I IS NOT DISTINCT FROM OLD.%1$I AND NEW.%2$I IS NOT NULL THEN
            RETURN NEW;
        END IF;
    END IF;
    NEW.%2$I := randflake_migrate.%3$I(NEW.%1$I);
    RETURN NEW;
END
$f$, p.name, p.shadow, randflake_migrate.called(r, 'shadow'));
    ELSIF NOT p.is_referred_to THEN
        RETURN format($f$
BEGIN
    NEW.%1$I := coalesce(NEW.%1$I, %2$s);
    RETURN NEW;
END
$f$, p.shadow, p.maker);
    END IF;
    RETURN format($f$
BEGIN
    IF TG_OP = 'INSERT' THEN
        NEW.%2$I := coalesce(randflake_migrate.%3$I(NEW.%1$I), %4$s);
        RETURN NEW;
    END IF;
    IF TG_OP = 'UPDATE' THEN
        IF NEW.%1$I IS NOT DISTINCT FROM OLD.%1$I THEN
            NEW.%2$I := coalesce(NEW.%2$I, randflake_migrate.%3$I(NEW.%1$I), %5$s);
            RETURN NEW;
        END IF;
    END IF;
    IF OLD.%1$I IS NOT NULL AND OLD.%2$I IS NOT NULL THEN
        INSERT INTO randflake_migrate.%6$I VALUES (OLD.%1$I, OLD.%2$I)
        ON CONFLICT (number) DO UPDATE SET shadow = excluded.shadow;
    END IF;
    IF TG_OP = 'DELETE' THEN
        RETURN OLD;
    END IF;
    NEW.%2$I := coalesce(randflake_migrate.%3$I(NEW.%1$I), %5$s);
    RETURN NEW;
END
$f$, p.name, p.shadow, randflake_migrate.called(p, 'find'),
        CASE p.side WHEN 2 THEN format('NEW.%I, ', p.shadow) ELSE '' END || p.maker, p.maker,
        randflake_migrate.called(p, 'kept'));
END $$;

CREATE FUNCTION randflake_migrate.follow(p randflake_migrate.part, r randflake_migrate.part)
RETURNS text LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
    SELECT concat(CASE WHEN k THEN randflake_migrate.kept(p) END,
        randflake_migrate.head(p, 'follow', '() RETURNS trigger', 'plpgsql'),
        format(E' AS %L;\n', randflake_migrate.body(p, r)),
        randflake_migrate.given(randflake_migrate.owner_of(p.rel), f),
        format(E'CREATE TRIGGER %1$I BEFORE INSERT OR UPDATE%2$s ON %3$s FOR EACH ROW'
            ' EXECUTE FUNCTION randflake_migrate.%4$I();\n'
            'ALTER TABLE %3$s ENABLE ALWAYS TRIGGER %1$I;', randflake_migrate.called(p, 'trigger'),
            CASE WHEN k THEN ' OR DELETE' END, p.rel, f))
    FROM randflake_migrate.has_kept(p) AS k, randflake_migrate.called(p, 'follow') AS f
$$;

-- Drops what follow() made. CASCADE drops only triggers that call the dropped function.
CREATE FUNCTION randflake_migrate.unfollow(p randflake_migrate.part) RETURNS text
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
    SELECT format('DROP FUNCTION IF EXISTS randflake_migrate.%I() CASCADE;',
            randflake_migrate.called(p, 'follow'))
        || CASE WHEN randflake_migrate.has_kept(p) THEN format(
            E'\nDROP FUNCTION IF EXISTS randflake_migrate.%I, randflake_migrate.%I,'
            ' randflake_migrate.%I;\nDROP TABLE IF EXISTS randflake_migrate.%I;',
            randflake_migrate.called(p, 'shadow'), randflake_migrate.called(p, 'mixed'),
            randflake_migrate.called(p, 'find'), randflake_migrate.called(p, 'kept')) ELSE '' END
$$;
