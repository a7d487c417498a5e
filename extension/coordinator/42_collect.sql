-- Collects ended leases, oldest first, until they have more node ids than the class of `count`. If
-- a lease has more than 64 node ids, a call locks and frees only two of the lease's chunks.
CREATE FUNCTION randflake_lease_collect(own randflake_lease_internal, number bigint, count integer,
                                        pool int4range, now bigint) RETURNS void
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    most CONSTANT integer := @extschema@.randflake_lease_class(own, count);
    -- Every 64th grant examines 64 node ids from `turn` on, to finish earlier grants' cleanup.
    turn CONSTANT integer := lower(pool) + number % (upper(pool) - lower(pool));
    lease record;
    chunk @extschema@.randflake_lease_chunk;
    taken_over CONSTANT timestamptz := (SELECT to_timestamp((last_value >> 31) + 1)
                                        FROM @extschema@.randflake_lease_takeover
                                        WHERE is_called AND now < (last_value >> 31) + 86400);
    node_ids integer := 0;
    undone int4multirange;
BEGIN
    IF number % 64 = 0 THEN
        FOR chunk IN SELECT * FROM @extschema@.randflake_lease_chunk c
            WHERE c.first BETWEEN turn AND turn + 63 FOR UPDATE SKIP LOCKED LOOP
            PERFORM @extschema@.randflake_lease_scan(
                own, chunk, pool, 'empty'::int4range, now);
        END LOOP;
    END IF;
    -- No state says where the former grant stopped. Such a state would outlive its transaction, or
    -- another transaction that collects leases and then rolls back.
    FOR lease IN
        SELECT l.ctid AS place, l.nodes, upper(l.nodes) - lower(l.nodes) > 64 AS wide
        FROM @extschema@.randflake_lease l
        WHERE NOT l.collected AND upper(l.span) <= now
          AND (greatest(l.granted_at, l.renewed_at) < taken_over) IS NOT TRUE
        ORDER BY upper(l.span) LIMIT most + 1
        FOR NO KEY UPDATE SKIP LOCKED
    LOOP
        EXIT WHEN node_ids > most;
        undone := int4multirange(lease.nodes * pool);
        FOR chunk IN
            SELECT * FROM @extschema@.randflake_lease_chunk c
            WHERE c.first BETWEEN lower(lease.nodes) - 63 AND upper(lease.nodes) - 1
              AND c.first + c.size > lower(lease.nodes)
              AND (c.open_at IS NULL OR NOT lease.wide)
            LIMIT CASE WHEN lease.wide THEN 2 ELSE 64 END FOR UPDATE SKIP LOCKED
        LOOP
            PERFORM @extschema@.randflake_lease_scan(own, chunk, lease.nodes,
                                                     'empty'::int4range, now);
            undone := undone - int4multirange(int4range(chunk.first, chunk.first + chunk.size));
        END LOOP;
        IF lease.wide THEN
            node_ids := node_ids + 128;
            SELECT coalesce(range_agg(int4range(c.first, c.first + c.size)), '{}') INTO undone
            FROM @extschema@.randflake_lease_chunk c
            WHERE c.first BETWEEN lower(lease.nodes) - 63 AND upper(lease.nodes) - 1
              AND c.first + c.size > lower(lease.nodes) AND c.open_at IS NULL;
        ELSIF isempty(undone) THEN
            node_ids := node_ids + @extschema@.randflake_lease_class(
                own, upper(lease.nodes) - lower(lease.nodes));
        END IF;
        -- While a chunk of the lease is locked, only every 64th grant tries to collect the lease.
        IF isempty(undone) OR number % 64 = 0 AND NOT lease.wide THEN
            UPDATE @extschema@.randflake_lease l SET collected = true
            WHERE l.ctid = lease.place;
        END IF;
    END LOOP;
END $$;

-- If `chosen` is free, removes its old leases and returns true. The caller has locked the chunks.
CREATE FUNCTION randflake_lease_take(own randflake_lease_internal, chosen int4range, now bigint)
RETURNS boolean LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    places tid[];
    wider tid[];
BEGIN
    IF chosen && @extschema@.randflake_lease_static_nodes(own) THEN
        RETURN false;
    ELSIF EXISTS (SELECT FROM @extschema@.randflake_lease l WHERE l.nodes && chosen) THEN
        -- All leases that overlap `chosen` must have ended. The locks stop renewals by holders
        -- whose clocks are behind. A lease that reaches beyond `chosen` stays in the table.
        places := ARRAY(SELECT l.ctid FROM @extschema@.randflake_lease l
                        WHERE l.nodes && chosen AND l.nodes <@ chosen AND upper(l.span) <= now
                        FOR UPDATE SKIP LOCKED);
        wider := ARRAY(SELECT l.ctid FROM @extschema@.randflake_lease l
                       WHERE l.nodes && chosen AND NOT l.nodes <@ chosen AND upper(l.span) <= now
                       FOR KEY SHARE SKIP LOCKED);
        IF EXISTS (SELECT FROM @extschema@.randflake_lease l
                   WHERE l.nodes && chosen AND l.ctid <> ALL (places || wider)) THEN
            RETURN false;
        END IF;
        DELETE FROM @extschema@.randflake_lease l WHERE l.ctid = ANY (places);
    END IF;
    RETURN true;
END $$;
