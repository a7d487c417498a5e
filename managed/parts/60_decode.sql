-- Decode and encode identifiers of 64 and of 53 bits.
--@ define known
IF NOT FOUND THEN
    RAISE object_not_in_prerequisite_state USING
        MESSAGE = 'randflake is not configured in this database',
        HINT = 'Run SELECT randflake.randflake_configure(NULL, 1), with a node id that no '
            'other database uses. NULL makes a new secret: if identifiers exist, '
            'pass theirs.';
END IF;
--@ end
--@ define in_range_randflake
--@ end
--@ define in_range_randflake53
IF id NOT BETWEEN 0 AND 9007199254740991 THEN
    RAISE invalid_parameter_value USING MESSAGE = format('%s is not a 53-bit identifier', id),
        DETAIL = 'They are from 0 to 9007199254740991.';
END IF;
--@ end
--@ for name keys time_at node_at nodes sequences: randflake keys 34 17 131071 131071;
--@ and randflake53 keys53 23 15 255 32767

CREATE OR REPLACE FUNCTION randflake.@name@_decode(
    id bigint, OUT generated_at timestamptz, OUT node_id integer, OUT sequence integer)
LANGUAGE plpgsql STABLE STRICT SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    raw bigint;
BEGIN
    --@ use in_range_@name@
    SELECT randflake.@name@_ring_decrypt(id, s.valid_from, s.@keys@) INTO raw
    FROM randflake.randflake_state AS s;
    --@ use known
    generated_at := to_timestamp(1730000000 + ((raw >> @time_at@) & 1073741823));
    node_id := (raw >> @node_at@) & @nodes@;
    sequence := raw & @sequences@;
END $$;

CREATE OR REPLACE FUNCTION randflake.@name@_encode(
    generated_at timestamptz, node_id integer, sequence integer) RETURNS bigint
LANGUAGE plpgsql STABLE STRICT SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    raw bigint;
    id bigint;
    problem text[];
BEGIN
    IF generated_at < to_timestamp(1730000000) OR generated_at >= to_timestamp(2803741824) THEN
        problem := ARRAY['timestamp out of range', format('It must be from %s to %s.',
            to_timestamp(1730000000), to_timestamp(2803741823))];
    ELSIF node_id NOT BETWEEN 0 AND @nodes@ THEN
        problem := ARRAY[format('node id %s is out of range', node_id),
            'It must be from 0 to @nodes@.'];
    ELSIF sequence NOT BETWEEN 0 AND @sequences@ THEN
        problem := ARRAY[format('sequence %s is out of range', sequence),
            'It must be from 0 to @sequences@.'];
    ELSE
        raw := ((floor(date_part('epoch', generated_at))::bigint - 1730000000) << @time_at@)
            | (node_id::bigint << @node_at@) | sequence;
        SELECT randflake.@name@_ring_encrypt(raw, s.valid_from, s.@keys@) INTO id
        FROM randflake.randflake_state AS s;
        --@ use known
        problem := CASE WHEN id IS NULL THEN ARRAY[
            'there is no identifier of this second, node id and sequence',
            'An identifier of an earlier secret takes its place.'] END;
    END IF;
    IF problem IS NOT NULL THEN
        RAISE invalid_parameter_value USING MESSAGE = problem[1], DETAIL = problem[2];
    END IF;
    RETURN id;
END $$;
--@ end

CREATE OR REPLACE FUNCTION randflake.randflake_generated_at(id bigint) RETURNS timestamptz
LANGUAGE sql STABLE STRICT SECURITY DEFINER SET search_path = pg_catalog, pg_temp
RETURN (SELECT d.generated_at FROM randflake.randflake_decode(id) AS d);
