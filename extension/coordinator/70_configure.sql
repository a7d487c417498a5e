CREATE FUNCTION randflake_lease_require_settings(
    own randflake_lease_internal, first integer, count integer, duration integer, skew integer,
    most integer, grants integer) RETURNS void
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF first NOT BETWEEN 0 AND 131071 OR count NOT BETWEEN 1 AND 131072 - greatest(first, 0) THEN
        RAISE invalid_parameter_value USING
            MESSAGE = format('node ids %s to %s are out of range', first,
                             first::bigint + count - 1),
            DETAIL = 'Node ids are from 0 to 131071.';
    END IF;
    --@ use limits
    IF most NOT BETWEEN 1 AND 131072 THEN
        RAISE invalid_parameter_value USING MESSAGE = 'node ids per role must be from 1 to 131072';
    END IF;
    IF grants NOT BETWEEN 1 AND 60000 THEN
        RAISE invalid_parameter_value USING
            MESSAGE = 'leases of a role per minute must be from 1 to 60000';
    END IF;
END $$;

-- Refuses what the operator states if the tables show that it is wrong.
CREATE FUNCTION randflake_lease_require_statements(
    own randflake_lease_internal, never_leased boolean, nothing_lost boolean) RETURNS void
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    -- is_called stays true when a purge deletes all leases.
    IF never_leased
        AND (SELECT is_called FROM @extschema@.randflake_lease_lease_id_seq) THEN
        RAISE object_not_in_prerequisite_state USING
            MESSAGE = 'this coordinator has leased node ids';
    END IF;
    IF nothing_lost AND NOT EXISTS (SELECT FROM @extschema@.randflake_lease_hold
                                    WHERE cause = 'promotion') THEN
        RAISE object_not_in_prerequisite_state USING
            MESSAGE = 'this coordinator did not take over by a start or a promotion of its server',
            DETAIL = 'Only the server that changed the pool last, and a standby of it that was '
                     'promoted once since, can have all of its leases.',
            HINT = 'Wait until "grants_from" in randflake_pool.';
    END IF;
END $$;

CREATE FUNCTION randflake_lease_configure(
    first_node_id integer DEFAULT NULL, node_count integer DEFAULT NULL,
    max_duration integer DEFAULT NULL, max_clock_skew integer DEFAULT NULL,
    closed boolean DEFAULT NULL, never_leased boolean DEFAULT false,
    forget_key boolean DEFAULT false, max_nodes_per_role integer DEFAULT NULL,
    secrets text DEFAULT NULL, max_grants_per_role integer DEFAULT NULL,
    nothing_lost boolean DEFAULT false) RETURNS timestamptz
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
DECLARE
    own CONSTANT @extschema@.randflake_lease_internal := NULL;
    pool @extschema@.randflake_lease_pool :=
        @extschema@.randflake_lease_lock_pool(own);
    now CONSTANT bigint := @extschema@.randflake_lease_clock(own);
    first CONSTANT integer := coalesce(first_node_id, lower(pool.nodes));
    count CONSTANT integer := coalesce(node_count, upper(pool.nodes) - greatest(first, -1));
    duration CONSTANT integer := coalesce(max_duration, pool.max_duration);
    skew CONSTANT integer := coalesce(max_clock_skew, pool.max_clock_skew);
    most CONSTANT integer := coalesce(max_nodes_per_role, pool.max_nodes_per_role);
    grants CONSTANT integer := coalesce(max_grants_per_role, pool.max_grants_per_role);
    shut CONSTANT boolean := coalesce(randflake_lease_configure.closed, pool.closed);
    free_at bigint;
BEGIN
    PERFORM @extschema@.randflake_lease_require_settings(
        own, first, count, duration, skew, most, grants);
    PERFORM @extschema@.randflake_lease_require_fingerprints(own, secrets);
    IF forget_key AND randflake_lease_configure.secrets IS NOT NULL THEN
        RAISE invalid_parameter_value USING
            MESSAGE = 'a key fingerprint cannot be both set and forgotten';
    END IF;
    PERFORM @extschema@.randflake_lease_require_statements(
        own, never_leased, nothing_lost);
    IF shut AND NOT pool.closed THEN
        PERFORM @extschema@.randflake_lease_hold_off(
            own, 'reopened'::text, NULL::bigint, pool.max_duration, pool.max_clock_skew);
    ELSIF pool.closed AND NOT shut THEN
        UPDATE @extschema@.randflake_lease_hold SET since = now WHERE since IS NULL;
    END IF;
    IF NOT int4range(first, first + count) <@ pool.nodes THEN
        PERFORM @extschema@.randflake_lease_hold_off(own, 'added'::text, now, 0::integer,
                                                     pool.max_clock_skew);
    END IF;
    -- A larger value extends current waits, because other servers may already have had it then.
    UPDATE @extschema@.randflake_lease_hold h
    SET longest = CASE WHEN longest > 0 THEN greatest(longest, duration) ELSE 0 END,
        widest = greatest(widest, skew)
    WHERE cause <> 'purge'
      AND (@extschema@.randflake_lease_until(own, h) > now OR since IS NULL);
    -- With this call, the operator states that the table has all leases. Servers may have used
    -- static node ids until now. If this call creates the pool, only the new clock skew is used.
    UPDATE @extschema@.randflake_lease_hold
    SET longest = 0, since = least(since, now),
        widest = CASE WHEN pool.coordinator = '' THEN skew ELSE widest END
    WHERE longest > 0 AND since IS NOT NULL
      AND (never_leased OR nothing_lost AND cause = 'promotion');
    UPDATE @extschema@.randflake_lease_pool SET
        -- Only never_leased and nothing_lost lower the mark.
        high_water = greatest((SELECT max(@extschema@.randflake_lease_until(own, h))
                               FROM @extschema@.randflake_lease_hold h),
                              CASE WHEN never_leased OR nothing_lost THEN 0 ELSE high_water END),
        nodes = int4range(first, first + count),
        max_duration = duration, max_clock_skew = skew, closed = shut,
        max_nodes_per_role = most, max_grants_per_role = grants,
        secrets = CASE WHEN NOT forget_key
                       THEN coalesce(randflake_lease_configure.secrets, pool.secrets) END;
    PERFORM @extschema@.randflake_lease_chunks(own, int4range(first, first + count));
    -- Finds the end of the last lease of node ids that leave the pool.
    IF shut OR NOT int4range(0, 131072) <@ int4range(first, first + count) THEN
        SELECT greatest(max(upper(span)),
                        (SELECT max(@extschema@.randflake_lease_until(own, h))
                         FROM @extschema@.randflake_lease_hold h WHERE longest > 0))
        INTO free_at FROM @extschema@.randflake_lease
        WHERE shut OR NOT nodes <@ int4range(first, first + count);
    END IF;
    RETURN CASE WHEN free_at > now THEN to_timestamp(free_at) END;
END $$;
COMMENT ON FUNCTION randflake_lease_configure(integer, integer, integer, integer, boolean, boolean,
                                              boolean, integer, text, integer, boolean) IS
'coordinator: sets the pool''s node ids and limits; null keeps a value; closed stops grants and '
'renewals; never_leased states that no server has leased under this secret before; nothing_lost '
'states, after a start or a promotion, that this server has all leases; forget_key accepts the '
'secrets of the next holder, secrets sets them; max_nodes_per_role limits the node ids that a role '
'leases, max_grants_per_role its leases in a minute. Returns when the node ids that leave the pool '
'become free, or null if they are free';
