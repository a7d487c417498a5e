CREATE FUNCTION randflake_lease_pool_state(
    OUT state text, OUT grants_from timestamptz, OUT first_node_id integer, OUT node_count integer,
    OUT own_first_node_id integer, OUT own_node_count integer, OUT max_duration integer,
    OUT max_clock_skew integer, OUT max_nodes_per_role integer, OUT max_grants_per_role integer,
    OUT secrets text, OUT leased_node_ids integer, OUT largest_request integer)
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
DECLARE
    own CONSTANT @extschema@.randflake_lease_internal := NULL;
    pool @extschema@.randflake_lease_pool;
    static_nodes CONSTANT int4range := @extschema@.randflake_lease_static_nodes(own);
    pool_nodes int4range;
    identity text;
    noted bigint;
    called boolean;
    mark bigint;
    --@ use defaults
    now CONSTANT bigint := @extschema@.randflake_lease_clock(own);
BEGIN
    SELECT * INTO pool FROM @extschema@.randflake_lease_pool;
    pool_nodes := coalesce(pool.nodes, int4range(0, 131072));
    first_node_id := lower(pool_nodes);
    node_count := upper(pool_nodes) - lower(pool_nodes);
    own_first_node_id := lower(static_nodes * pool_nodes);
    own_node_count := upper(static_nodes * pool_nodes) - lower(static_nodes * pool_nodes);
    max_duration := pool.max_duration;
    max_clock_skew := pool.max_clock_skew;
    max_nodes_per_role := pool.max_nodes_per_role;
    max_grants_per_role := pool.max_grants_per_role;
    secrets := pool.secrets;
    IF pg_is_in_recovery() THEN
        state := 'unused';
        RETURN;
    END IF;
    SELECT coalesce(sum(upper(r) - lower(r)) FILTER (WHERE r <@ leased), 0),
           coalesce(max(upper(r) - lower(r)) FILTER (WHERE NOT r <@ leased), 0)
    INTO STRICT leased_node_ids, largest_request
    FROM (SELECT coalesce(range_agg(l.nodes), '{}') * int4multirange(pool_nodes) AS leased
          FROM @extschema@.randflake_lease l WHERE upper(l.span) > now) AS leases,
         LATERAL (SELECT unnest(leased) AS r UNION ALL
                  SELECT unnest(int4multirange(pool_nodes) - int4multirange(static_nodes)
                                - leased)) AS ranges;
    -- The first request after a takeover starts the wait. Until then, the mark follows the clock.
    identity := @extschema@.randflake_lease_identity(own);
    SELECT last_value, is_called INTO STRICT noted, called
    FROM @extschema@.randflake_lease_takeover;
    mark := pool.high_water;
    IF NOT @extschema@.randflake_lease_noted_here(own, identity, noted)
        OR NOT @extschema@.randflake_lease_guarded(own)
        OR pool.coordinator <> identity AND NOT called THEN
        mark := now + coalesce(pool.max_duration, longest)
            + 2 * coalesce(pool.max_clock_skew, widest) + 1;
    ELSIF pool.coordinator IS DISTINCT FROM identity
        OR (CASE WHEN called THEN noted END) IS DISTINCT FROM pool.takeover THEN
        mark := (noted >> 31) + coalesce(pool.max_duration, longest)
            + 2 * coalesce(pool.max_clock_skew, widest) + 1;
    END IF;
    mark := greatest(mark, pool.high_water);
    IF pool.closed THEN
        state := 'closed';
    ELSIF mark > now THEN
        state := 'holding off';
        grants_from := to_timestamp(mark);
    ELSE
        state := 'open';
    END IF;
END $$;
COMMENT ON FUNCTION randflake_lease_pool_state() IS 'the row of the view randflake_pool';
