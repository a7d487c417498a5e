CREATE OR REPLACE FUNCTION randflake.randflake_shard(id bigint, shards integer) RETURNS integer
LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF shards < 1 THEN
        RAISE invalid_parameter_value USING
            MESSAGE = format('number of shards must be at least 1, not %s', shards);
    END IF;
    -- Multiplies a 64-bit number, in two halves, by a 31-bit number.
    RETURN (((id >> 32) + 2147483648) * shards + (((id & 4294967295) * shards) >> 32)) >> 32;
END $$;

CREATE OR REPLACE FUNCTION randflake.randflake_shard_ranges(
    shards integer, OUT shard integer, OUT lower bigint, OUT upper bigint)
RETURNS SETOF record
LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    next bigint;
BEGIN
    PERFORM randflake.randflake_shard(0, shards);  -- an error if there are none
    lower := -9223372036854775808;
    FOR i IN 0..shards - 1 LOOP
        shard := i;
        upper := div((i + 1) * 18446744073709551616 + shards - 1, shards) - 9223372036854775808 - 1;
        RETURN NEXT;
        IF i < shards - 1 THEN
            lower := upper + 1;
        END IF;
    END LOOP;
END $$;
