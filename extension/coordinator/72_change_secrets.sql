-- Returns the first Unix second after all leases, including those that the table may lack. An
-- operator can add or withdraw only secrets that begin at this second or later.
CREATE FUNCTION randflake_lease_untouched(own randflake_lease_internal, pool randflake_lease_pool)
RETURNS bigint LANGUAGE sql VOLATILE SET search_path = pg_catalog, pg_temp AS $$
    SELECT greatest(max(upper(span)), pool.high_water,
                    @extschema@.randflake_lease_clock(own) + pool.max_duration
                        + 2 * pool.max_clock_skew + 1)
    FROM @extschema@.randflake_lease
$$;

CREATE FUNCTION randflake_lease_add_secret(fingerprint text, valid_from timestamptz) RETURNS void
LANGUAGE plpgsql VOLATILE STRICT SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    own CONSTANT @extschema@.randflake_lease_internal := NULL;
    pool @extschema@.randflake_lease_pool;
    second bigint;
    entries text[];
    same text;
    earliest bigint;
BEGIN
    IF fingerprint !~ '^[0-9a-f]{16}$' THEN
        RAISE invalid_parameter_value USING
            MESSAGE = 'key fingerprint must be 16 lower-case hexadecimal digits';
    END IF;
    IF NOT isfinite(valid_from)
        OR extract(epoch FROM valid_from) <> floor(extract(epoch FROM valid_from)) THEN
        RAISE invalid_parameter_value USING MESSAGE = 'a secret must begin on a full second';
    END IF;
    second := extract(epoch FROM valid_from)::bigint;
    IF second <= @extschema@.randflake_lease_epoch(own)
        OR second >= @extschema@.randflake_lease_limit(own) THEN
        RAISE invalid_parameter_value USING
            MESSAGE = 'a secret must begin in a second that an identifier can hold';
    END IF;
    pool := @extschema@.randflake_lease_lock_pool(own);
    entries := string_to_array(pool.secrets, ' ');
    IF entries IS NULL THEN
        RAISE object_not_in_prerequisite_state USING
            MESSAGE = 'the coordinator knows no secret yet',
            HINT = 'Set the first one with randflake_lease_configure, or let a holder name it.';
    END IF;
    SELECT entry INTO same FROM unnest(entries) AS entry
    WHERE split_part(entry, '@', 1) = fingerprint;
    IF same = format('%s@%s', fingerprint, second) THEN
        RETURN;
    ELSIF same IS NOT NULL THEN
        RAISE object_not_in_prerequisite_state USING
            MESSAGE = 'the coordinator has this secret with another time',
            DETAIL = format('Its secrets are: %s', pool.secrets),
            HINT = 'Withdraw the last one with randflake_lease_remove_secret.';
    END IF;
    IF cardinality(entries) >= 16 THEN
        RAISE object_not_in_prerequisite_state USING MESSAGE = 'there are 16 secrets already';
    END IF;
    IF second <= nullif(split_part(entries[cardinality(entries)], '@', 2), '')::bigint THEN
        RAISE object_not_in_prerequisite_state USING
            MESSAGE = 'a secret must begin after the one before',
            DETAIL = format('The last one begins at %s.',
                to_timestamp(split_part(entries[cardinality(entries)], '@', 2)::bigint));
    END IF;
    earliest := @extschema@.randflake_lease_untouched(own, pool);
    IF second < earliest THEN
        RAISE object_not_in_prerequisite_state USING
            MESSAGE = 'the secret begins too early',
            DETAIL = format('Leases may reach beyond its time; the earliest possible time is %s.',
                            to_timestamp(earliest)),
            HINT = 'Let it begin later, on every server. If its time has come and no lease was '
                   'granted beyond it, see randflake_lease_configure.';
    END IF;
    IF EXISTS (SELECT FROM @extschema@.randflake_lease WHERE upper(span) > second) THEN
        PERFORM @extschema@.randflake_lease_broken(
            own, 'no lease reaches into the time of a secret that is added'::text);
    END IF;
    UPDATE @extschema@.randflake_lease_pool
    SET secrets = format('%s %s@%s', pool.secrets, fingerprint, second);
END $$;
COMMENT ON FUNCTION randflake_lease_add_secret(text, timestamptz) IS
'coordinator: adds a secret by its fingerprint in randflake_secrets; a holder without this secret '
'gets no lease beyond the given time';

CREATE FUNCTION randflake_lease_remove_secret(fingerprint text) RETURNS void
LANGUAGE plpgsql VOLATILE STRICT SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    own CONSTANT @extschema@.randflake_lease_internal := NULL;
    pool CONSTANT @extschema@.randflake_lease_pool :=
        @extschema@.randflake_lease_lock_pool(own);
    entries CONSTANT text[] := string_to_array(pool.secrets, ' ');
    last CONSTANT text := entries[cardinality(entries)];
    earliest bigint;
BEGIN
    IF split_part(last, '@', 1) IS DISTINCT FROM fingerprint OR cardinality(entries) = 1 THEN
        RAISE object_not_in_prerequisite_state USING
            MESSAGE = 'only the last of several secrets can be withdrawn',
            DETAIL = format('The coordinator''s secrets are: %s', coalesce(pool.secrets, 'none'));
    END IF;
    earliest := @extschema@.randflake_lease_untouched(own, pool);
    IF split_part(last, '@', 2)::bigint < earliest THEN
        RAISE object_not_in_prerequisite_state USING
            MESSAGE = 'it is too late to withdraw the secret',
            DETAIL = format('It begins at %s, and leases may reach to %s.',
                            to_timestamp(split_part(last, '@', 2)::bigint), to_timestamp(earliest));
    END IF;
    IF EXISTS (SELECT FROM @extschema@.randflake_lease
               WHERE upper(span) > split_part(last, '@', 2)::bigint) THEN
        PERFORM @extschema@.randflake_lease_broken(
            own, 'no lease reaches into the time of a secret that is withdrawn'::text);
    END IF;
    UPDATE @extschema@.randflake_lease_pool
    SET secrets = array_to_string(entries[:cardinality(entries) - 1], ' ');
END $$;
COMMENT ON FUNCTION randflake_lease_remove_secret(text) IS
'coordinator: withdraws the secret that was added last, while no lease reaches its time';
