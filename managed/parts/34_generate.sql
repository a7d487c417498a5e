-- Reads the state. Sets v to the last number, or to NULL if `numbers` is not the configured
-- sequence. Sets now_ to the first number of the clock's second.
--@ define read_state
SELECT * INTO c FROM randflake.randflake_state AS s WHERE s.xmin = s.writer;
IF randflake.randflake_format() <> 1 THEN  -- replaced while this body waited for the row
    RAISE serialization_failure USING MESSAGE = 'randflake was updated during this call',
        HINT = 'Repeat the transaction.';
END IF;
v := CASE WHEN pg_relation_filepath(c.numbers) LIKE c.file AND NOT pg_is_in_recovery()
    THEN pg_sequence_last_value(c.numbers) END;
now_ := ((date_part('microseconds', pg_postmaster_start_time())::bigint & 65535) << 47)
    | ((floor(date_part('epoch', clock_timestamp()))::bigint - 1730000000) << 17);
--@ end

-- Checks the number again after nextval, because another session may have opened a new second.
CREATE OR REPLACE FUNCTION randflake.randflake_generate() RETURNS bigint
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    c randflake.randflake_state;
    now_ bigint;
    v bigint;
    z bigint;
    t bigint;
BEGIN
    LOOP
        --@ use read_state
        IF (v - now_ BETWEEN 0 AND 7995391 AND (v & 131071) < 122880) IS NOT TRUE THEN
            PERFORM randflake.randflake_open();
            CONTINUE;
        END IF;
        v := nextval(c.numbers);
        CONTINUE WHEN v - now_ NOT BETWEEN 0 AND 7995391;
        z := (((v >> 17) & 1073741823) << 34) | (c.node_id::bigint << 17) | (v & 131071);
        EXIT WHEN cardinality(c.valid_from) = 1;
        z := randflake.randflake_ring_encrypt(z, c.valid_from, c.keys);
        CONTINUE WHEN z IS NULL;
        RETURN z;
    END LOOP;
    --@ use encrypt k=c.keys
END $$;

-- These functions make many identifiers in one call. 53-bit identifiers use the first 32,768
-- numbers of a second. After nextval, a session skips numbers that are not usable. It takes a run
-- of numbers after each check, and the runs of all sessions together have at most 8,192.
--@ define refuse_node_randflake
--@ end
--@ define refuse_node_randflake53
IF c.node_id > 255 THEN
    RAISE object_not_in_prerequisite_state USING
        MESSAGE = format('node ids %1$s to %1$s do not fit in 53-bit identifiers',
            c.node_id),
        DETAIL = 'They have 8 bits for node ids, which are from 0 to 255.',
        HINT = 'Run SELECT randflake.randflake_configure(NULL, 1), with a node id up to '
            '255 that no other database uses.';
END IF;
--@ end
--@ define return_randflake
IF cardinality(c.valid_from) = 1 THEN
    RETURN QUERY SELECT unnest(randflake.randflake_encrypt_many(raw, c.keys));
ELSE
    RETURN QUERY SELECT i.id FROM (
        SELECT randflake.randflake_ring_encrypt(n, c.valid_from, c.keys) AS id
        FROM unnest(raw) AS n OFFSET 0) AS i WHERE i.id IS NOT NULL;
END IF;
--@ end
--@ define return_randflake53
RETURN QUERY SELECT i.id FROM (
    SELECT randflake.randflake53_ring_encrypt(n, c.valid_from, c.keys53) AS id
    FROM unnest(raw) AS n OFFSET 0) AS i WHERE i.id IS NOT NULL;
--@ end
--@ for name below numbers time_at node_at: randflake 122880 131072 34 17;
--@ and randflake53 32768 32768 23 15

CREATE OR REPLACE FUNCTION randflake.@name@_generate(count integer) RETURNS SETOF bigint
LANGUAGE plpgsql VOLATILE STRICT SECURITY DEFINER SET search_path = pg_catalog, pg_temp
SET plan_cache_mode = force_generic_plan SET jit = off AS $$
DECLARE
    c randflake.randflake_state;
    now_ bigint;
    v bigint;
    raw bigint[];
    wanted integer := count;
    made integer;
    run constant integer := greatest(1, least(64, 8192 / (1
        + current_setting('max_connections')::integer + current_setting('max_wal_senders')::integer
        + current_setting('max_worker_processes')::integer)));
BEGIN
    IF count < 0 THEN
        RAISE invalid_parameter_value USING
            MESSAGE = 'number of identifiers must not be negative';
    END IF;
    WHILE wanted > 0 LOOP
        --@ use read_state
        --@ use refuse_node_@name@
        IF (v - now_ BETWEEN 0 AND 7995391 AND (v & 131071) < @below@) IS NOT TRUE THEN
            PERFORM randflake.randflake_open(@below@);
            CONTINUE;
        END IF;
        raw := ARRAY(SELECT (((n.v >> 17) & 1073741823) << @time_at@)
                | (c.node_id::bigint << @node_at@) | (n.v & 131071)
            FROM (SELECT nextval(c.numbers) AS v FROM (
                SELECT generate_series(first, CASE
                    WHEN (pg_sequence_last_value(c.numbers) & 131071) < @below@
                    THEN least(first + run - 1, wanted, 4096) END)
                FROM generate_series(1, least(wanted, 4096), run) AS first) AS i) AS n
            WHERE n.v - now_ BETWEEN 0 AND 7995391 AND (n.v & 131071) < @numbers@);
        --@ use return_@name@
        GET DIAGNOSTICS made = ROW_COUNT;
        wanted := wanted - made;
    END LOOP;
END $$;
--@ end
