-- Finds at most 64 node ids for the lease with this number in a free cell, locks them, and removes
-- their former leases. Returns the first node id, or null if no cell is free.
CREATE FUNCTION randflake_lease_find_cell(
    own randflake_lease_internal, number bigint, count integer, pool int4range, now bigint)
RETURNS integer LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    cell CONSTANT integer := @extschema@.randflake_lease_class(own, count);
    -- If a former primary still runs, it uses other lease numbers, and therefore other node ids.
    turn CONSTANT integer := lower(pool) + 64 * (number - 1) % (upper(pool) - lower(pool));
    chunk @extschema@.randflake_lease_chunk;
    place integer;
    first integer;
    chosen int4range;
BEGIN
    FOR attempt IN 1 .. 16 LOOP
        SELECT * INTO chunk FROM @extschema@.randflake_lease_chunk c
        WHERE c.class = cell AND c.open_at IS NOT NULL
        ORDER BY c.open_at LIMIT 1 FOR UPDATE SKIP LOCKED;
        IF NOT FOUND THEN
            SELECT * INTO chunk FROM @extschema@.randflake_lease_chunk c
            WHERE c.class = 0 AND c.open_at >= turn
            ORDER BY c.open_at LIMIT 1 FOR UPDATE SKIP LOCKED;
            IF NOT FOUND THEN
                SELECT * INTO chunk FROM @extschema@.randflake_lease_chunk c
                WHERE c.class = 0 AND c.open_at < turn
                ORDER BY c.open_at LIMIT 1 FOR UPDATE SKIP LOCKED;
                EXIT WHEN NOT FOUND;
            END IF;
            chunk.class := cell;
            chunk.free := repeat('1', 64 / cell)::bit varying;
        END IF;
        LOOP
            place := (number - 1) % length(chunk.free);
            place := place + position(B'1' IN substring(chunk.free FROM place + 1)) - 1;
            IF place < (number - 1) % length(chunk.free) THEN
                place := position(B'1' IN chunk.free) - 1;
                EXIT WHEN place < 0;
            END IF;
            chunk.free := set_bit(chunk.free, place, 0);
            first := chunk.first + place * cell;
            chosen := int4range(first, first + count);
            EXIT WHEN chosen <@ pool
                AND @extschema@.randflake_lease_take(own, chosen, now);
            first := NULL;
        END LOOP;
        UPDATE @extschema@.randflake_lease_chunk c
        SET class = chunk.class, free = chunk.free WHERE c.first = chunk.first;
        IF first IS NOT NULL THEN
            RETURN first;
        END IF;
    END LOOP;
    RETURN NULL;
END $$;

-- Finds consecutive node ids for the lease with this number, locks them, and removes their former
-- leases. If it finds none, `first` is null. `free_at` is then the time to retry; null means soon.
CREATE FUNCTION randflake_lease_find(own randflake_lease_internal, number bigint, count integer,
                                     pool int4range, now bigint,
                                     OUT first integer, OUT free_at bigint)
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    static_nodes CONSTANT int4range := @extschema@.randflake_lease_static_nodes(own);
    cell CONSTANT integer := @extschema@.randflake_lease_class(own, count);
    has_chunks CONSTANT boolean := EXISTS (SELECT FROM @extschema@.randflake_lease_chunk c
                                           WHERE c.size = 64);
    chunk @extschema@.randflake_lease_chunk;
    chunks @extschema@.randflake_lease_chunk[];
    chosen int4range;
    busy int4multirange := '{}';  -- locked by others
BEGIN
    IF NOT EXISTS (SELECT FROM unnest(int4multirange(pool) - int4multirange(static_nodes)) AS r
                   WHERE upper(r) - lower(r) >= count) THEN
        RAISE configuration_limit_exceeded USING
            MESSAGE = format('the pool has fewer than %s node ids', count),
            DETAIL = format('It has node ids %s to %s%s.', lower(pool), upper(pool) - 1,
                            CASE WHEN static_nodes && pool
                                 THEN format(', without %s to %s, which this server uses itself',
                                             lower(static_nodes), upper(static_nodes) - 1)
                                 ELSE '' END),
            HINT = 'Widen it with randflake_lease_configure, or ask for fewer.';
    END IF;
    PERFORM @extschema@.randflake_lease_collect(own, number, count, pool, now);
    IF count <= 64 THEN
        first := @extschema@.randflake_lease_find_cell(own, number, count, pool, now);
        IF first IS NOT NULL THEN
            RETURN;
        END IF;
    END IF;
    FOR attempt IN 1 .. 64 LOOP
        -- Prefers a whole chunk to a cell, and a cell to any other gap.
        SELECT candidate.start INTO first
        FROM (SELECT unnest(int4multirange(pool) - int4multirange(static_nodes) - busy
                            - coalesce(range_agg(l.nodes), '{}')) AS r
              FROM @extschema@.randflake_lease l WHERE upper(l.span) > now) AS gap,
             LATERAL (VALUES (1, (lower(r) + 63) / 64 * 64, greatest(count, 64)),
                             (2, (lower(r) + cell - 1) / cell * cell, count),
                             (3, lower(r), count)) AS candidate (preference, start, size)
        WHERE candidate.start + candidate.size <= upper(r)
          AND (candidate.preference > 1 OR has_chunks)
        ORDER BY candidate.preference, candidate.start LIMIT 1;
        IF first IS NULL THEN
            SELECT min(upper(l.span)) INTO free_at
            FROM @extschema@.randflake_lease l
            WHERE upper(l.span) > now AND l.nodes && pool AND isempty(busy);
            RETURN;
        END IF;
        chosen := int4range(first, first + count);
        chunks := ARRAY(SELECT c FROM @extschema@.randflake_lease_chunk c
                        WHERE c.first BETWEEN lower(chosen) - 63 AND upper(chosen) - 1
                          AND c.first + c.size > lower(chosen)
                        ORDER BY c.first FOR UPDATE SKIP LOCKED);
        IF (SELECT range_agg(int4range(c.first, c.first + c.size)) @> chosen
            FROM unnest(chunks) AS c)
            AND @extschema@.randflake_lease_take(own, chosen, now) THEN
            FOREACH chunk IN ARRAY chunks LOOP
                PERFORM @extschema@.randflake_lease_scan(own, chunk, pool, chosen, now);
            END LOOP;
            RETURN;
        END IF;
        SELECT busy + int4multirange(chosen)
            + coalesce(range_agg(int4range(c.first, c.first + c.size)), '{}') INTO busy
        FROM @extschema@.randflake_lease_chunk c
        WHERE c.first BETWEEN lower(chosen) - 63 AND upper(chosen) - 1
          AND c.first + c.size > lower(chosen);
    END LOOP;
    first := NULL;
END $$;
