-- If a refused request can succeed after a known second, the error's column field has that second.
CREATE FUNCTION randflake_lease_acquire(
    holder text, incarnation uuid, nodes integer, duration integer, secrets text,
    OUT lease_id bigint, OUT first_node_id integer, OUT node_count integer, OUT lease_start bigint,
    OUT lease_end bigint, OUT clock_ms bigint, OUT differs_from bigint)
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
SET plan_cache_mode = force_generic_plan -- planning takes longer than the search
SET enable_seqscan = off -- outdated statistics must not lead to a plan that reads all
SET enable_bitmapscan = off
SET enable_sort = off
SET jit = off -- the costs of disabled plans would start it
AS $$
#variable_conflict use_column
DECLARE
    own CONSTANT @extschema@.randflake_lease_internal := NULL;
    pool @extschema@.randflake_lease_pool;
    now bigint;
    free_at bigint;   -- node ids are free from here on
    newest bigint;    -- the largest number of a lease
    lease @extschema@.randflake_lease;
BEGIN
    IF num_nulls(holder, incarnation, nodes, duration, secrets) > 0 THEN
        RAISE null_value_not_allowed USING MESSAGE = 'arguments of a lease must not be null';
    END IF;
    IF randflake_lease_acquire.nodes NOT BETWEEN 1 AND 131072 THEN
        RAISE invalid_parameter_value USING
            MESSAGE = format('number of node ids must be from 1 to 131072, not %s', nodes);
    END IF;
    IF octet_length(randflake_lease_acquire.holder) > 256 THEN
        RAISE invalid_parameter_value USING
            MESSAGE = format('name of a holder must be at most 256 bytes, not %s',
                             octet_length(randflake_lease_acquire.holder));
    END IF;
    PERFORM @extschema@.randflake_lease_require_request(own, duration, secrets);
    pool := @extschema@.randflake_lease_open_pool(own, randflake_lease_acquire.secrets);
    now := @extschema@.randflake_lease_clock(own);
    PERFORM @extschema@.randflake_lease_require_time(own, pool, secrets, now);
    PERFORM @extschema@.randflake_lease_require_share(own, pool, nodes, now);
    node_count := randflake_lease_acquire.nodes;
    -- A restore or a refresh of sequences may have set the numbers back.
    SELECT max(l.lease_id) INTO newest FROM @extschema@.randflake_lease l;
    PERFORM setval('@extschema@.randflake_lease_lease_id_seq', newest)
    FROM @extschema@.randflake_lease_lease_id_seq WHERE last_value < newest;
    lease_id := nextval('@extschema@.randflake_lease_lease_id_seq');
    SELECT found.first, found.free_at INTO first_node_id, free_at
    FROM @extschema@.randflake_lease_find(own, lease_id, node_count, pool.nodes, now)
             AS found;
    IF first_node_id IS NULL THEN
        RAISE configuration_limit_exceeded USING
            MESSAGE = CASE WHEN node_count = 1 THEN 'no node id is free'
                           ELSE format('no %s consecutive node ids are free', node_count) END,
            DETAIL = CASE WHEN free_at > now
                          THEN format('Node ids become free at %s.', to_timestamp(free_at))
                          ELSE 'Others are being leased at this moment.' END,
            COLUMN = coalesce(free_at::text, ''),
            HINT = 'Widen the pool with randflake_lease_configure, or wait.';
    END IF;
    lease_start := now;
    lease_end := least(now + least(duration, pool.max_duration),
                       @extschema@.randflake_lease_limit(own),
                       @extschema@.randflake_lease_stops_at(
                           own, randflake_lease_acquire.secrets, pool.secrets)) - 1;
    INSERT INTO @extschema@.randflake_lease
        (lease_id, holder, incarnation, nodes, span, secrets) OVERRIDING SYSTEM VALUE
    VALUES (lease_id, randflake_lease_acquire.holder, randflake_lease_acquire.incarnation,
            int4range(first_node_id, first_node_id + node_count),
            int8range(lease_start, lease_end + 1), randflake_lease_acquire.secrets)
    RETURNING * INTO STRICT lease;
    IF lower(lease.span) < pool.high_water THEN
        PERFORM @extschema@.randflake_lease_broken(
            own, 'a grant does not begin before the mark'::text);
    END IF;
    PERFORM @extschema@.randflake_lease_require_contracts(
        own, pool, lease, now + pool.max_duration,
        int4range(first_node_id, first_node_id + node_count),
        int8range(lease_start, lease_end + 1));
    differs_from := @extschema@.randflake_lease_lacks_from(own, secrets, pool.secrets);
    clock_ms := floor(1000 * extract(epoch FROM clock_timestamp()));
END $$;
COMMENT ON FUNCTION randflake_lease_acquire(text, uuid, integer, integer, text) IS
'coordinator: grants a lease of consecutive node ids for at most this number of seconds; start and '
'end are Unix seconds, both inclusive; clock_ms is the coordinator''s clock in Unix milliseconds; '
'differs_from is the second of the first secret that the holder lacks, or null';
