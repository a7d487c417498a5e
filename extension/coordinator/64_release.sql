CREATE FUNCTION randflake_lease_release(lease_id bigint, incarnation uuid, last_used bigint)
RETURNS void LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
DECLARE
    own CONSTANT @extschema@.randflake_lease_internal := NULL;
    lease @extschema@.randflake_lease;
    kept int8range;
BEGIN
    IF randflake_lease_release.lease_id IS NULL OR randflake_lease_release.incarnation IS NULL THEN
        RAISE null_value_not_allowed USING MESSAGE = 'arguments of a lease must not be null';
    END IF;
    PERFORM @extschema@.randflake_lease_share_pool(own);
    SELECT * INTO lease FROM @extschema@.randflake_lease l
    WHERE l.lease_id = randflake_lease_release.lease_id
      AND l.incarnation = randflake_lease_release.incarnation
      AND l.role = SESSION_USER
    FOR UPDATE;
    IF NOT FOUND THEN
        RAISE object_not_in_prerequisite_state USING
            MESSAGE = format('lease %s does not exist or is not this holder''s',
                             randflake_lease_release.lease_id);
    ELSIF lease.released_at IS NOT NULL THEN
        -- Only the first release of a lease counts.
        RETURN;
    ELSE
        -- A release never prolongs the lease. An unused lease keeps its first second, so that the
        -- table shows when the node ids were last leased.
        UPDATE @extschema@.randflake_lease l
        SET span = int8range(lower(l.span),
                             least(greatest(last_used, lower(l.span)), upper(l.span) - 1) + 1),
            released_at = clock_timestamp()
        WHERE l.role = SESSION_USER AND l.lease_id = lease.lease_id
        RETURNING l.span INTO STRICT kept;
        IF NOT kept <@ lease.span THEN
            PERFORM @extschema@.randflake_lease_broken(
                own, 'a release does not prolong a lease'::text);
        ELSIF last_used >= upper(kept) AND upper(kept) < upper(lease.span) THEN
            PERFORM @extschema@.randflake_lease_broken(
                own, 'a release keeps each second that was used'::text);
        END IF;
    END IF;
END $$;
COMMENT ON FUNCTION randflake_lease_release(bigint, uuid, bigint) IS
'coordinator: ends a lease after the last second that its holder used; null means that it used '
'none';

-- Does the work of randflake_lease_purge. The caller has locked the pool.
CREATE FUNCTION randflake_lease_forget(own randflake_lease_internal, keep interval) RETURNS bigint
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    now CONSTANT bigint := @extschema@.randflake_lease_clock(own);
    cutoff CONSTANT bigint := now - ceil(extract(epoch FROM keep))::bigint;
    purged bigint;
    newest bigint;
BEGIN
    WITH gone AS (
        DELETE FROM @extschema@.randflake_lease
        WHERE upper(span) <= cutoff RETURNING upper(span) AS ended
    )
    SELECT count(*), max(ended) INTO purged, newest FROM gone;
    IF newest > now THEN
        PERFORM @extschema@.randflake_lease_broken(
            own, 'no lease is forgotten before its end'::text);
    ELSIF purged > 0 THEN
        PERFORM @extschema@.randflake_lease_hold_off(own, 'purge'::text, newest - 1,
                                                     0::integer, 0::integer);
        UPDATE @extschema@.randflake_lease_pool SET high_water = newest
        WHERE newest > high_water;
    END IF;
    PERFORM @extschema@.randflake_lease_chunks(own, pool.nodes)
    FROM @extschema@.randflake_lease_pool AS pool;
    RETURN purged;
END $$;

CREATE FUNCTION randflake_lease_purge(keep interval DEFAULT '1 day') RETURNS bigint
LANGUAGE plpgsql VOLATILE STRICT SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    own CONSTANT @extschema@.randflake_lease_internal := NULL;
BEGIN
    IF keep < interval '0' OR NOT isfinite(keep) THEN
        RAISE invalid_parameter_value USING
            MESSAGE = 'interval to keep must be finite and not negative';
    END IF;
    PERFORM @extschema@.randflake_lease_lock_pool(own);
    RETURN @extschema@.randflake_lease_forget(own, keep);
END $$;
COMMENT ON FUNCTION randflake_lease_purge(interval) IS
'coordinator: deletes leases that ended this long ago, lets no lease start before their end, and '
'returns their number';
