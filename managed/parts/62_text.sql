-- The following functions mask numbers with the first secret.

CREATE OR REPLACE FUNCTION randflake.randflake_masked(number bigint, label text, inverse boolean)
RETURNS bigint LANGUAGE plpgsql STABLE STRICT SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    secret text;
    utf8 bytea;
    label_hint constant text :=
        'Use a fixed text that names what the numbers identify, as "customer".';
BEGIN
    SELECT substring(s.secret FROM '(?n)^[0-9A-Fa-f]{32}') INTO secret
    FROM randflake.randflake_state AS s;
    --@ use known
    utf8 := convert_to(label,
        CASE getdatabaseencoding() WHEN 'SQL_ASCII' THEN 'SQL_ASCII' ELSE 'UTF8' END);
    IF utf8 = '' THEN
        RAISE invalid_parameter_value USING MESSAGE = 'label of a mask is empty', HINT = label_hint;
    ELSIF length(utf8) > 255 THEN
        RAISE invalid_parameter_value USING
            MESSAGE = format('label of a mask is too long: "%s..."', left(label, 128)),
            DETAIL = 'It may have at most 255 bytes in UTF-8.', HINT = label_hint;
    ELSIF getdatabaseencoding() = 'SQL_ASCII' AND encode(utf8, 'hex') ~ '^(..)*[89a-f]' THEN
        RAISE character_not_in_repertoire USING MESSAGE = 'label of a mask is not valid text',
            DETAIL = 'It must be UTF-8, and ASCII in a database with the encoding SQL_ASCII.',
            HINT = label_hint;
    ELSIF number NOT BETWEEN 0 AND 9007199254740991 THEN
        RAISE invalid_parameter_value USING
            MESSAGE = format('%s %s is out of range',
                CASE WHEN inverse THEN 'mask' ELSE 'number to mask' END, number),
            DETAIL = 'It must be from 0 to 9007199254740991.',
            HINT = CASE WHEN inverse
                THEN 'No number has this mask: answer as for a row that does not exist.'
                ELSE 'Masks are for keys that count up. Identifiers that are random already need '
                    'none.' END;
    END IF;
    RETURN randflake.randflake_permute(number,
        randflake.randflake_permutation_key(secret, 'randflake mask', utf8), inverse);
END $$;

CREATE OR REPLACE FUNCTION randflake.randflake_mask(id bigint, label text) RETURNS bigint
LANGUAGE sql STABLE STRICT SECURITY DEFINER SET search_path = pg_catalog, pg_temp
RETURN randflake.randflake_masked(id, label, false);

CREATE OR REPLACE FUNCTION randflake.randflake_unmask(masked bigint, label text) RETURNS bigint
LANGUAGE sql STABLE STRICT SECURITY DEFINER SET search_path = pg_catalog, pg_temp
RETURN randflake.randflake_masked(masked, label, true);

-- PostgreSQL resolves the names in these functions at creation. So they need no search_path, and
-- PostgreSQL can inline them.

CREATE OR REPLACE FUNCTION randflake.randflake_to_text(id bigint) RETURNS text
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
RETURN coalesce(nullif(ltrim(
    substr('0123456789abcdef', ((id >> 60) & 15)::integer + 1, 1)
    || (SELECT string_agg(substr('0123456789abcdefghijklmnopqrstuv',
            ((id >> (5 * i)) & 31)::integer + 1, 1), '' ORDER BY i DESC)
        FROM generate_series(0, 11) AS i), '0'), ''), '0');

CREATE OR REPLACE FUNCTION randflake.randflake_generate_text() RETURNS text
LANGUAGE sql VOLATILE RETURN randflake.randflake_to_text(randflake.randflake_generate());

CREATE OR REPLACE FUNCTION randflake.randflake53_generate() RETURNS bigint
LANGUAGE sql VOLATILE RETURN (SELECT id FROM randflake.randflake53_generate(1) AS id);

-- Returns the identifier that `digits` represents. Errors show `all_`, the text form that contains
-- these digits. The function compares under collation "C", not under the column's collation.
CREATE OR REPLACE FUNCTION randflake.randflake_from_digits(all_ text, digits text) RETURNS bigint
LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    d constant text COLLATE "C" := digits;
    bad text COLLATE "C" := substr(d, length(substring(d FROM '^[0-9a-vA-V]*')) + 1, 1);
    id bigint := 0;
    problem text;
BEGIN
    problem := CASE WHEN d = '' THEN 'It is empty.'
        WHEN bad <> '' THEN format('Character "%s" is not a digit of base32hex (0-9, a-v).', bad)
        WHEN length(d) > 13 THEN format('It has %s characters; at most 13 are possible.', length(d))
        WHEN length(d) = 13 AND d !~ '^[0-9a-fA-F]' THEN 'It exceeds 64 bits.' END;
    IF problem IS NOT NULL THEN
        RAISE invalid_text_representation USING DETAIL = problem,
            MESSAGE = format('invalid text form of an identifier: "%s"',
            CASE WHEN length(all_) > 128 THEN left(all_, 128) || '...' ELSE all_ END);
    END IF;
    FOR i IN 1..length(d) LOOP
        id := (id << 5) | (strpos('0123456789abcdefghijklmnopqrstuv', translate(substr(d, i, 1),
            'ABCDEFGHIJKLMNOPQRSTUV', 'abcdefghijklmnopqrstuv')) - 1)::bigint;
    END LOOP;
    RETURN id;
END $$;

CREATE OR REPLACE FUNCTION randflake.randflake_from_text(text) RETURNS bigint
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE RETURN randflake.randflake_from_digits($1, $1);

-- These functions handle prefixes as src/core/identifier/id_text.h does.

CREATE OR REPLACE FUNCTION randflake.randflake_prefixed(prefix text) RETURNS text
LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF prefix COLLATE "C" !~ '^[a-z]([a-z_]{0,61}[a-z])?$' THEN
        RAISE invalid_parameter_value USING
            MESSAGE = format('invalid prefix of identifiers: "%s"',
                CASE WHEN length(prefix) > 128 THEN left(prefix, 128) || '...' ELSE prefix END),
            DETAIL = 'A prefix has 1 to 63 characters, a to z and _, and begins and ends with a '
                'letter.';
    END IF;
    RETURN prefix || '_';
END $$;

CREATE OR REPLACE FUNCTION randflake.randflake_to_text(id bigint, prefix text) RETURNS text
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
RETURN randflake.randflake_prefixed(prefix) || randflake.randflake_to_text(id);

CREATE OR REPLACE FUNCTION randflake.randflake_from_text(text, prefix text) RETURNS bigint
LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    prefixed constant text COLLATE "C" := randflake.randflake_prefixed(prefix);
    digits   constant text COLLATE "C" := substr($1, length(prefixed) + 1);
BEGIN
    IF left($1, length(prefixed)) COLLATE "C" <> prefixed OR strpos(digits, '_') > 0 THEN
        RAISE invalid_text_representation USING
            MESSAGE = format('text form of an identifier does not have the prefix "%s": "%s"',
                prefix, CASE WHEN length($1) > 128 THEN left($1, 128) || '...' ELSE $1 END),
            DETAIL = format('It must begin with "%s".', prefixed);
    END IF;
    RETURN randflake.randflake_from_digits($1, digits);
END $$;
