-- Measures how often a coordinator with a half-full pool refuses a request, in random histories.
--
--   psql -v seed=1 -v requests=100000 -v sizes='{1,4,16,64}' -f bench/fragmentation.sql
--
-- Run this in an empty database. On average, leases of the given `sizes` fill half of the default
-- pool. Each request replaces a random lease, and advances the script's clock by a second. The
-- script first makes ten requests for each lease, and does not count refusals of these requests.
\set ON_ERROR_STOP 1
\set QUIET 1
SET client_min_messages = warning;
CREATE EXTENSION randflake_coordinator;
CREATE OR REPLACE FUNCTION randflake_lease_clock(own randflake_lease_internal) RETURNS bigint LANGUAGE sql VOLATILE
AS $$ SELECT 1750000000 + current_setting('test.request')::bigint $$;
SET test.request = 0;
DO $$ BEGIN PERFORM setval('randflake_lease_takeover', 1740000000::bigint << 31 | randflake_lease_identity_hash(NULL, randflake_lease_identity(NULL)), false); END $$;
SELECT randflake_lease_configure(max_duration => 86400, secrets => '0123456789abcdef') AS pool \gset
CREATE PROCEDURE history(seed integer, requests integer, sizes integer[], INOUT refused integer DEFAULT 0) LANGUAGE plpgsql AS $$
DECLARE
    many CONSTANT integer := 65536 / (SELECT avg(size) FROM unnest(sizes) AS size);
    ids bigint[] := array_fill(NULL::bigint, ARRAY[many]);
    place integer;
BEGIN
    PERFORM setseed(seed / 1000.0);
    FOR request IN 1 .. 10 * many + requests LOOP
        place := CASE WHEN request <= many THEN request ELSE 1 + floor(random() * many) END;
        PERFORM set_config('test.request', request::text, false),
                randflake_lease_release(ids[place], md5('')::uuid, NULL) WHERE ids[place] IS NOT NULL;
        BEGIN
            ids[place] := lease_id FROM randflake_lease_acquire(
                'bench', md5('')::uuid, sizes[1 + floor(random() * cardinality(sizes))], 86400, '0123456789abcdef');
        EXCEPTION WHEN configuration_limit_exceeded THEN
            ids[place] := NULL;
            refused := refused + (request > 10 * many)::integer;
        END;
        COMMIT;
    END LOOP;
END $$;
CALL history(:seed, :requests, :'sizes') \gset
\echo :refused of :requests requests were refused
