\set ECHO none
-- Other roles may own objects in the extension's schema. If their function or operator fits a call
-- better than PostgreSQL's, the call runs it with the privileges of the coordinator's owner. This
-- test's functions and operators report such a call.
\pset format unaligned
\pset tuples_only on
CREATE SCHEMA overloads;
DO $$
DECLARE
    signature text;
    result text;
    range text;
BEGIN
    FOR signature, result IN VALUES
        ('lower(int4range)', 'integer'), ('lower(int8range)', 'bigint'),
        ('upper(int4range)', 'integer'), ('upper(int8range)', 'bigint'),
        ('isempty(int4range)', 'boolean'), ('isempty(int8range)', 'boolean'),
        ('overlaps(int4range, int4range)', 'boolean'), ('overlaps(int8range, int8range)', 'boolean'),
        ('within(int4range, int4range)', 'boolean'), ('within(int8range, int8range)', 'boolean'),
        ('to_timestamp(bigint)', 'timestamptz'), ('setval(text, bigint)', 'bigint'),
        ('hashtextextended(text, integer)', 'bigint'),
        ('format(text, integer)', 'text'), ('format(text, bigint)', 'text'),
        ('format(text, text, oid)', 'text'), ('format(text, text, text)', 'text'),
        ('format(text, integer, bigint)', 'text'), ('format(text, integer, integer)', 'text'),
        ('format(text, timestamptz)', 'text')
    LOOP
        EXECUTE format('CREATE FUNCTION overloads.%s RETURNS %s LANGUAGE plpgsql AS %L', signature, result,
                       format('BEGIN RAISE EXCEPTION ''%s ran''; END', signature));
    END LOOP;
    FOREACH range IN ARRAY ARRAY['int4range', 'int8range'] LOOP
        EXECUTE format('CREATE OPERATOR overloads.&& (LEFTARG = %1$s, RIGHTARG = %1$s, FUNCTION = overloads.overlaps)', range);
        EXECUTE format('CREATE OPERATOR overloads.<@ (LEFTARG = %1$s, RIGHTARG = %1$s, FUNCTION = overloads.within)', range);
    END LOOP;
END $$;
\echo '-- PostgreSQL prefers them in the search path.'
SET search_path = overloads;
SELECT lower(int4range(1, 2));
SELECT int8range(1, 2) && int8range(1, 2);
SET search_path = public;

\echo '-- The extensions never call them, whether they exist before the extensions or later.'
DROP EXTENSION randflake_coordinator, randflake_type, randflake;
CREATE EXTENSION randflake_coordinator SCHEMA overloads;
CREATE EXTENSION randflake_type SCHEMA overloads CASCADE;
SELECT overloads.randflake_lease_configure(max_clock_skew => 0, never_leased => true);
SELECT pg_sleep(1.1);

-- A view keeps the functions that PostgreSQL found for its call when it was made.
CREATE TABLE call (n serial, statement text);
INSERT INTO call (statement) VALUES
    ('SELECT overloads.randflake_lease_configure(0, 1000, 30, 0, false, false, true, 5, NULL)'),
    ($$SELECT first_node_id, node_count FROM overloads.randflake_lease_acquire('holder', repeat('1', 32)::uuid, 1, 60, '0123456789abcdef')$$),
    ($$SELECT (overloads.randflake_lease_renew(lease_id, incarnation, upper(span) - 1, 60, '0123456789abcdef')).lease_end IS NOT NULL AS renewed
       FROM overloads.randflake_lease WHERE released_at IS NULL$$),
    ($$SELECT overloads.randflake_lease_add_secret('fedcba9876543210', to_timestamp(2500000000)) IS NOT NULL AS added$$),
    ('SELECT extract(epoch FROM stops_at)::bigint AS stops_at FROM overloads.randflake_leases'),
    ($$SELECT (overloads.randflake_lease_renew(lease_id, incarnation, upper(span) - 1, 60, '0123456789abcdef fedcba9876543210@2500000000')).lease_end IS NOT NULL AS renewed
       FROM overloads.randflake_lease WHERE released_at IS NULL$$),
    ('SELECT holder, node_count, state, secrets, stops_at FROM overloads.randflake_leases'),
    ($$SELECT overloads.randflake_lease_remove_secret('fedcba9876543210') IS NOT NULL AS removed$$),
    ('SELECT overloads.randflake_lease_release(lease_id, incarnation, lower(span)) IS NOT NULL AS released FROM overloads.randflake_lease'),
    ($$SELECT overloads.randflake_lease_purge('1 hour')$$),
    ('SELECT state, first_node_id, node_count, max_nodes_per_role FROM overloads.randflake_pool'),
    -- The takeover of another coordinator's leases
    ($$UPDATE overloads.randflake_lease_pool SET coordinator = 'another'$$), ('SELECT count(*) FROM call_2'),
    ('SELECT overloads.randflake_bind_secret() IS NOT NULL AS bound'),
    ('DELETE FROM overloads.randflake_key; DELETE FROM overloads.randflake_key_check'),
    ('SELECT overloads.randflake_next() IS NOT NULL AS made'), ('SELECT count(*) FROM overloads.randflake_key'),
    ($$SELECT overloads.randflake_generate() IS NOT NULL AS made, (overloads.randflake_decode(1)).node_id IS NOT NULL AS decoded,
       overloads.randflake_shard(1, 4) AS shard,
       overloads.randflake_lower('2030-01-01') OPERATOR(pg_catalog.<) overloads.randflake_lower('2030-01-02') AS compares$$),
    ('SELECT count(*) > 0 AS shown FROM overloads.randflake_status, overloads.randflake_slots');
SELECT format('CREATE VIEW call_%s AS %s', n, statement) FROM call WHERE statement ~ '^SELECT' ORDER BY n \gexec
CREATE VIEW resolved AS SELECT CASE WHEN statement ~ '^SELECT' THEN format('SELECT * FROM public.call_%s', n) ELSE statement END FROM call ORDER BY n;
\set VERBOSITY sqlstate
TABLE resolved \gexec
\echo '-- Other errors'
SELECT overloads.randflake_lease_acquire('holder', repeat('1', 32)::uuid, 0, 60, '0123456789abcdef');
SELECT overloads.randflake_lease_acquire('holder', repeat('1', 32)::uuid, 2000, 60, '0123456789abcdef');
SELECT overloads.randflake_lease_renew(0, repeat('1', 32)::uuid, 1750000000, 60, '0123456789abcdef');
SELECT overloads.randflake_lease_configure(131072);
BEGIN;
UPDATE overloads.randflake_key SET fingerprint = 'another';
SELECT overloads.randflake_bind_secret();
ROLLBACK;

-- If two functions differ only in an argument that has a default, PostgreSQL cannot choose between
-- them. Here, a role that may create objects in the extensions' schema gives each function of the
-- extensions such a twin. It skips functions whose arguments have internal types, because it may
-- not use these types.
CREATE ROLE regress_randflake_hostile;
GRANT USAGE, CREATE ON SCHEMA overloads TO regress_randflake_hostile;
CREATE FUNCTION define(statement text) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
    EXECUTE statement || ' LANGUAGE plpgsql AS $f$ BEGIN RAISE EXCEPTION ''captured''; END $f$';
    RETURN 'made';
EXCEPTION WHEN OTHERS THEN
    RETURN format('%s %s', SQLSTATE, SQLERRM);
END $$;
CREATE VIEW functions AS
SELECT extname AS extension, p.oid::regproc AS function, oidvectortypes(proargtypes) AS arguments,
       format_type(prorettype, NULL) AS result
FROM pg_extension e JOIN pg_depend d ON refclassid = 'pg_extension'::regclass AND refobjid = e.oid
JOIN pg_proc p ON classid = 'pg_proc'::regclass AND objid = p.oid
WHERE extname LIKE 'randflake%' AND oidvectortypes(proargtypes) !~ 'internal$|internal,.*internal|cstring'
   OR oidvectortypes(proargtypes) ~ 'randflake_\w+_internal';
GRANT SELECT ON functions TO regress_randflake_hostile;

SET ROLE regress_randflake_hostile;
CREATE TEMP TABLE attempt AS
SELECT extension, function,
       define(format('CREATE FUNCTION %s(%smore point DEFAULT NULL) RETURNS %s', function, arguments || CASE WHEN arguments <> '' THEN ', ' ELSE '' END, result)) AS result
FROM functions;
SELECT extension, result, count(*) FROM attempt WHERE result <> 'made'
GROUP BY 1, 2 ORDER BY extension COLLATE "C", result COLLATE "C";
SELECT extension, count(*) > 5 AS many_made FROM attempt WHERE result = 'made' GROUP BY 1 ORDER BY 1;
\echo '-- With any type in place of the first, and with any number of arguments'
SELECT define(format('CREATE FUNCTION %s(%s, more point DEFAULT NULL) RETURNS %s', function,
                               regexp_replace(arguments, '^[^,]*', 'anyelement'), result)) AS polymorphic, count(*) > 1 AS several
FROM functions WHERE arguments <> '' GROUP BY 1 ORDER BY 1;
\echo '-- And with the possible types of a literal in place of others'
SELECT left(define(format('CREATE FUNCTION %s(%s) RETURNS %s', function,
                          replace(regexp_replace(arguments, '^[^,]*', 'anyelement'), was, other), result)), 5) AS of_literals, count(*) > 1 AS several
FROM functions, (VALUES ('bigint', 'integer'), ('integer', 'bigint'), ('text', 'name'), ('text', 'varchar')) AS types (was, other)
WHERE arguments LIKE '%, %' || was || '%' GROUP BY 1 ORDER BY 1;
SELECT define(format('CREATE FUNCTION %s(VARIADIC more point[] DEFAULT ''{}'') RETURNS %s', function, result)) AS variadic, count(*) > 1 AS several
FROM functions WHERE arguments = '' GROUP BY 1 ORDER BY 1;
CREATE CAST (bigint AS integer) WITH INOUT;
CREATE CAST (text AS regclass) WITH INOUT;
RESET ROLE;

\echo '-- They make users'' calls ambiguous.'
\c -
SET search_path = overloads, pg_temp, public;
SELECT randflake_lease_acquire('holder', repeat('1', 32)::uuid, 1, 60, '0123456789abcdef');
SELECT randflake_lease_purge('1 hour');
SELECT randflake_bind_secret();
\echo '-- A resolved call does what it should, whichever function it calls.'
DELETE FROM randflake_lease_hold;
UPDATE randflake_lease_pool SET high_water = 0, coordinator = randflake_lease_identity(NULL::randflake_lease_internal),
    takeover = (SELECT last_value FROM randflake_lease_takeover WHERE is_called);
TABLE resolved \gexec
RESET search_path;

SET client_min_messages = warning;
DROP VIEW functions;
DROP FUNCTION define(text);
DROP EXTENSION randflake_coordinator, randflake_type, randflake CASCADE;
DROP SCHEMA overloads CASCADE;
DROP TABLE call CASCADE;
DROP ROLE regress_randflake_hostile;
RESET client_min_messages;
CREATE EXTENSION randflake;
CREATE EXTENSION randflake_type;
CREATE EXTENSION randflake_coordinator;
