--@ use server

-- Returns the static node ids of this server as a range. The coordinator never leases them.
CREATE FUNCTION randflake_lease_static_nodes(own randflake_lease_internal) RETURNS int4range
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
    -- int4range(NULL, NULL) would contain all node ids.
    SELECT CASE WHEN first_node_id IS NULL THEN 'empty'
                ELSE int4range(first_node_id, first_node_id + node_count) END
    FROM @extschema@.randflake_coordinator_static_nodes(own)
$$;

CREATE FUNCTION randflake_lease_clock(own randflake_lease_internal) RETURNS bigint
LANGUAGE sql VOLATILE PARALLEL SAFE SET search_path = pg_catalog, pg_temp
AS $$ SELECT floor(extract(epoch FROM clock_timestamp()))::bigint $$;

-- Returns the first Unix second that an identifier can hold.
CREATE FUNCTION randflake_lease_epoch(own randflake_lease_internal) RETURNS bigint
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$ SELECT 1730000000::bigint $$;

-- Returns the first Unix second that is too late for an identifier.
CREATE FUNCTION randflake_lease_limit(own randflake_lease_internal) RETURNS bigint
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$ SELECT 1730000000 + (1::bigint << 30) $$;

CREATE FUNCTION randflake_lease_identity(own randflake_lease_internal) RETURNS text
LANGUAGE sql VOLATILE SET search_path = pg_catalog, pg_temp
-- A restore of a dump gives the table another oid, and so another identity.
AS $$
    SELECT format('%s/%s', @extschema@.randflake_coordinator_identity(own),
                  '@extschema@.randflake_lease'::regclass::oid)
$$;

-- Returns the Unix second of the server's start.
CREATE FUNCTION randflake_lease_started(own randflake_lease_internal) RETURNS bigint
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp
AS $$ SELECT floor(extract(epoch FROM pg_postmaster_start_time()))::bigint $$;

CREATE FUNCTION randflake_lease_identity_hash(own randflake_lease_internal, identity text)
RETURNS bigint LANGUAGE sql IMMUTABLE SET search_path = pg_catalog, pg_temp
-- Starts count by their time.
AS $$
    SELECT hashtextextended(regexp_replace(identity, '@[^/]*', ''), 0) & ((1::bigint << 31) - 1)
$$;

-- Returns true if this value of randflake_lease_takeover was written here, since the last start.
CREATE FUNCTION randflake_lease_noted_here(own randflake_lease_internal, identity text,
                                           noted bigint) RETURNS boolean
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
    SELECT (noted - @extschema@.randflake_lease_identity_hash(own, identity))
        & ((1::bigint << 31) - 1) = 0
        AND noted >> 31 >= @extschema@.randflake_lease_started(own)
$$;

-- Returns true if this coordinator is the former one after a start of its server, or a promoted
-- standby of the former one: its timeline is higher by 1, and the rest of the identity is equal. If
-- the timeline is higher by more than 1, another standby was promoted before this coordinator, and
-- may have granted leases that this table lacks.
CREATE FUNCTION randflake_lease_promoted(own randflake_lease_internal, former text, identity text)
RETURNS boolean LANGUAGE sql IMMUTABLE SET search_path = pg_catalog, pg_temp AS $$
    SELECT coalesce(
        (SELECT bool_and(split_part(former, '/', part) = split_part(identity, '/', part))
         FROM unnest('{1,4,5}'::integer[]) AS part)
        AND former <> identity
        AND CASE nullif(split_part(identity, '/', 2), '')::bigint
                 - nullif(split_part(former, '/', 2), '')::bigint
            WHEN 1 THEN true
            WHEN 0 THEN split_part(split_part(former, '/', 3), '@', 1)
                        = split_part(split_part(identity, '/', 3), '@', 1)
            END, false)
$$;

-- While is_called is false, the sequence holds the time of the extension's creation.
SELECT pg_catalog.setval('@extschema@.randflake_lease_takeover',
                         least(@extschema@.randflake_lease_clock(own),
                               @extschema@.randflake_lease_limit(own))
                         OPERATOR(pg_catalog.<<) 31
                         OPERATOR(pg_catalog.|) @extschema@.randflake_lease_identity_hash(
                             own, @extschema@.randflake_lease_identity(own)),
                         false)
FROM (SELECT NULL::@extschema@.randflake_lease_internal) AS internal (own);
