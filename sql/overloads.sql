-- Others may own objects in the extension's schema. Functions and operators of theirs that fit
-- better than PostgreSQL's would run with the rights of the coordinator's owner: these would say so.
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
-- They are preferred where the search path has them.
SET search_path = overloads;
SELECT lower(int4range(1, 2));
SELECT int8range(1, 2) && int8range(1, 2);
SET search_path = public;

-- Nothing of the extensions calls them, whether they are there before they are made or later.
DROP EXTENSION randflake_coordinator, randflake_type, randflake;
CREATE EXTENSION randflake_coordinator SCHEMA overloads;
CREATE EXTENSION randflake_type SCHEMA overloads CASCADE;
SELECT overloads.randflake_lease_configure(max_clock_skew => 0, never_leased => true);
SELECT pg_sleep(1.1);
CREATE VIEW leased AS
SELECT * FROM overloads.randflake_lease_acquire('holder', repeat('1', 32)::uuid, 1, 60, '0123456789abcdef');
SELECT first_node_id, node_count FROM leased;
SELECT overloads.randflake_lease_renew(lease_id, incarnation, upper(span) - 1, 60) IS NOT NULL AS renewed
FROM overloads.randflake_lease;
SELECT holder, first_node_id, node_count, state FROM overloads.randflake_leases;
SELECT overloads.randflake_lease_release(lease_id, incarnation, lower(span)) FROM overloads.randflake_lease;
SELECT overloads.randflake_lease_purge('1 hour');
SELECT overloads.randflake_lease_configure(0, 1000, 30, 1, false, false, true);
SELECT state, first_node_id, node_count FROM overloads.randflake_pool;
-- The takeover of another coordinator's leases
UPDATE overloads.randflake_lease_pool SET coordinator = 'another';
\set VERBOSITY sqlstate
SELECT count(*) FROM leased;
-- Other errors
SELECT overloads.randflake_lease_acquire('holder', repeat('1', 32)::uuid, 0, 60, '0123456789abcdef');
SELECT overloads.randflake_lease_acquire('holder', repeat('1', 32)::uuid, 2000, 60, '0123456789abcdef');
SELECT overloads.randflake_lease_renew(0, repeat('1', 32)::uuid, 1, 60);
SELECT overloads.randflake_lease_configure(131072);
BEGIN;
UPDATE overloads.randflake_key SET fingerprint = 'another';
SELECT overloads.randflake_bind_secret();
ROLLBACK;
\set VERBOSITY default

DROP VIEW leased;
RESET search_path;
DROP EXTENSION randflake_coordinator, randflake_type, randflake;
SET client_min_messages = warning;
DROP SCHEMA overloads CASCADE;
RESET client_min_messages;
CREATE EXTENSION randflake;
CREATE EXTENSION randflake_type;
CREATE EXTENSION randflake_coordinator;
