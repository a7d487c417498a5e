-- Returns the class of a lease: its number of node ids, rounded up to a power of two, at most 64.
CREATE FUNCTION randflake_lease_class(own randflake_lease_internal, count integer) RETURNS integer
LANGUAGE sql IMMUTABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
    SELECT CASE WHEN count <= 1 THEN 1 WHEN count <= 2 THEN 2
                WHEN count <= 4 THEN 4 WHEN count <= 8 THEN 8
                WHEN count <= 16 THEN 16 WHEN count <= 32 THEN 32 ELSE 64 END
$$;

-- Records the free cells of a chunk, whose row the caller has locked. Only cells whose node ids are
-- in `place` may have changed. The node ids of `granted` belong to a lease that has no row yet.
CREATE FUNCTION randflake_lease_scan(own randflake_lease_internal, chunk randflake_lease_chunk,
                                     place int4range, granted int4range, now bigint) RETURNS void
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    cell integer := chunk.class;
    bits bit varying := chunk.free;
    from_cell integer := 0;
    to_cell integer := 0;
    around int4range := int4range(chunk.first, chunk.first + chunk.size);
    busy int4multirange;
    widest integer;
    -- After a failover, the former primary may still run and renew its leases. So for a day,
    -- grants avoid node ids of earlier leases that no holder has renewed at this coordinator.
    taken_over CONSTANT timestamptz := (SELECT to_timestamp((last_value >> 31) + 1)
                                        FROM @extschema@.randflake_lease_takeover
                                        WHERE is_called AND now < (last_value >> 31) + 86400);
BEGIN
    IF cell > 0 THEN
        from_cell := (lower(around * place) - chunk.first) / cell;
        to_cell := (upper(around * place) - 1 - chunk.first) / cell;
        around := int4range(chunk.first + from_cell * cell, chunk.first + (to_cell + 1) * cell);
    END IF;
    SELECT coalesce(range_agg(lease.nodes), '{}')
               + int4multirange(@extschema@.randflake_lease_static_nodes(own)),
           max(@extschema@.randflake_lease_class(
               own, upper(lease.nodes) - lower(lease.nodes)))
    INTO STRICT busy, widest
    FROM (SELECT l.nodes FROM @extschema@.randflake_lease l
          WHERE l.nodes && around
            AND (l.span && int8range(now, NULL)
                 OR greatest(l.granted_at, l.renewed_at) < taken_over)
          UNION ALL SELECT granted WHERE granted && around) AS lease;
    IF cell = 0 THEN
        IF NOT busy && around THEN
            RETURN;
        END IF;
        cell := coalesce(widest, 1);
        to_cell := 64 / cell - 1;
        bits := repeat('1', to_cell + 1)::bit varying;
    END IF;
    FOR i IN from_cell .. to_cell LOOP
        bits := set_bit(bits, i,
                        (NOT busy && int4range(chunk.first + i * cell,
                                               chunk.first + (i + 1) * cell))::integer);
    END LOOP;
    IF chunk.size = 64 AND position(B'0' IN bits) = 0 THEN
        cell := 0;
        bits := B'1';
    END IF;
    IF cell <> chunk.class OR bits <> chunk.free THEN
        UPDATE @extschema@.randflake_lease_chunk c SET class = cell, free = bits
        WHERE c.first = chunk.first;
    END IF;
END $$;

-- Recreates the chunks of a locked pool.
CREATE FUNCTION randflake_lease_chunks(own randflake_lease_internal, pool int4range) RETURNS void
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    now CONSTANT bigint := @extschema@.randflake_lease_clock(own);
    chunk @extschema@.randflake_lease_chunk;
BEGIN
    DELETE FROM @extschema@.randflake_lease_chunk;
    INSERT INTO @extschema@.randflake_lease_chunk (first, size, class, free)
    SELECT node_id, size, CASE WHEN size = 1 THEN 1 ELSE 0 END, B'1'
    FROM generate_series(lower(pool) / 64 * 64, upper(pool) - 1, 64) AS start,
         LATERAL (SELECT CASE WHEN int4range(start, start + 64) <@ pool
                                   AND upper(pool) / 64 - (lower(pool) + 63) / 64 >= 16
                              THEN 64 ELSE 1 END) AS of_chunk (size),
         generate_series(greatest(start, lower(pool)), least(start + 63, upper(pool) - 1), size)
             AS node_id;
    FOR chunk IN SELECT * FROM @extschema@.randflake_lease_chunk LOOP
        PERFORM @extschema@.randflake_lease_scan(
            own, chunk, pool, 'empty'::int4range, now);
    END LOOP;
END $$;
