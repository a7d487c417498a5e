-- Refuses a renewal if other holders may have had node ids of the lease, or may get them. No lease
-- may end after the second `latest`.
CREATE FUNCTION randflake_lease_require_renewable(
    own randflake_lease_internal, pool randflake_lease_pool, lease randflake_lease,
    expected_end bigint, latest bigint, now bigint) RETURNS void
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF NOT lease.nodes <@ pool.nodes THEN
        RAISE object_not_in_prerequisite_state USING
            MESSAGE = format('the node ids of lease %s are no longer in the pool', lease.lease_id),
            HINT = 'Acquire a new lease.';
    END IF;
    IF lease.nodes && @extschema@.randflake_lease_static_nodes(own) THEN
        RAISE object_not_in_prerequisite_state USING
            MESSAGE = format('the node ids of lease %s are those of the coordinator''s own server',
                             lease.lease_id),
            HINT = 'Acquire a new lease.';
    END IF;
    -- If the holder expects an earlier end than the table has, the holder missed the answer to a
    -- renewal. If it expects a later end, a failover lost a renewal. No lease is granted beyond
    -- `latest`, so an end beyond `latest` shows that the clock stepped back, or that the holder
    -- invented the end.
    IF greatest(expected_end + 1, upper(lease.span)) > latest THEN
        RAISE object_not_in_prerequisite_state USING
            MESSAGE = format('lease %s ends later than this coordinator grants', lease.lease_id),
            DETAIL = format('It ends at %s; by this clock no lease ends after %s.',
                            to_timestamp(greatest(expected_end + 1, upper(lease.span))),
                            to_timestamp(latest)),
            HINT = 'Acquire a new lease.';
    END IF;
    -- A failover may have lost another holder's later lease of these node ids. If the former
    -- coordinator's clock was ahead, it granted that lease up to max_clock_skew early.
    IF expected_end < now + pool.max_clock_skew
        AND (expected_end < now OR expected_end < pool.high_water - 1) THEN
        RAISE object_not_in_prerequisite_state USING
            MESSAGE = format('lease %s has ended', lease.lease_id),
            DETAIL = format('It ended at %s.', to_timestamp(expected_end + 1)),
            HINT = 'Acquire a new lease.';
    END IF;
    -- If some of the node ids were leased again, this renewal fails, whatever the clock shows.
    IF EXISTS (SELECT FROM @extschema@.randflake_lease later
               WHERE later.nodes && lease.nodes AND later.lease_id > lease.lease_id) THEN
        RAISE object_not_in_prerequisite_state USING
            MESSAGE = format('the node ids of lease %s have another holder by now', lease.lease_id),
            HINT = 'Acquire a new lease.';
    END IF;
END $$;

CREATE FUNCTION randflake_lease_renew(
    lease_id bigint, incarnation uuid, expected_end bigint, duration integer, secrets text,
    OUT lease_end bigint, OUT clock_ms bigint, OUT differs_from bigint)
LANGUAGE plpgsql VOLATILE STRICT SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
DECLARE
    own CONSTANT @extschema@.randflake_lease_internal := NULL;
    pool @extschema@.randflake_lease_pool;
    lease @extschema@.randflake_lease;
    now bigint;
    latest bigint;    -- the latest end of any lease
    renewed @extschema@.randflake_lease;
BEGIN
    PERFORM @extschema@.randflake_lease_require_request(own, duration, secrets);
    IF expected_end < @extschema@.randflake_lease_epoch(own)
        OR expected_end >= @extschema@.randflake_lease_limit(own) THEN
        RAISE invalid_parameter_value USING
            MESSAGE = format('expected end of a lease must be a Unix second that an identifier '
                             'can hold, not %s', expected_end);
    END IF;
    pool := @extschema@.randflake_lease_share_pool(own);
    PERFORM @extschema@.randflake_lease_require_open(own, pool);
    now := @extschema@.randflake_lease_clock(own);
    latest := least(now + pool.max_duration + pool.max_clock_skew,
                    @extschema@.randflake_lease_limit(own));
    SELECT * INTO lease FROM @extschema@.randflake_lease l
    WHERE l.lease_id = randflake_lease_renew.lease_id
      AND l.incarnation = randflake_lease_renew.incarnation
      AND l.role = SESSION_USER AND l.released_at IS NULL
    FOR UPDATE NOWAIT;
    IF NOT FOUND THEN
        RAISE object_not_in_prerequisite_state USING
            MESSAGE = format('lease %s does not exist or is not this holder''s',
                             randflake_lease_renew.lease_id),
            HINT = 'Acquire a new lease.';
    END IF;
    PERFORM @extschema@.randflake_lease_require_secrets(
        own, secrets, pool.secrets, 0::bigint, 'object_not_in_prerequisite_state'::text);
    PERFORM @extschema@.randflake_lease_require_renewable(
        own, pool, lease, expected_end, latest, now);
    -- The lease goes on after this error. To renew its lease, the holder needs the missing secret.
    PERFORM @extschema@.randflake_lease_require_secrets(
        own, secrets, pool.secrets, upper(lease.span), 'cannot_connect_now'::text);
    lease_end := least(greatest(expected_end + 1, upper(lease.span),
                                now + least(duration, pool.max_duration)),
                       latest, @extschema@.randflake_lease_stops_at(
                           own, randflake_lease_renew.secrets, pool.secrets)) - 1;
    UPDATE @extschema@.randflake_lease l
    SET span = int8range(lower(l.span), lease_end + 1), renewed_at = clock_timestamp(),
        secrets = randflake_lease_renew.secrets, collected = false
    WHERE l.role = SESSION_USER AND l.lease_id = randflake_lease_renew.lease_id
    RETURNING * INTO STRICT renewed;
    IF renewed.incarnation <> randflake_lease_renew.incarnation OR renewed.role <> SESSION_USER
        OR renewed.released_at IS NOT NULL THEN
        PERFORM @extschema@.randflake_lease_broken(
            own, 'a lease is renewed for its holder, until it is released'::text);
    ELSIF NOT renewed.span @> lease.span THEN
        PERFORM @extschema@.randflake_lease_broken(
            own, 'a renewal does not move the end back'::text);
    END IF;
    PERFORM @extschema@.randflake_lease_require_contracts(
        own, pool, renewed, now + pool.max_duration + pool.max_clock_skew, lease.nodes,
        int8range(lower(lease.span), lease_end + 1));
    differs_from := @extschema@.randflake_lease_lacks_from(own, secrets, pool.secrets);
    clock_ms := floor(1000 * extract(epoch FROM clock_timestamp()));
EXCEPTION
WHEN lock_not_available THEN
    RAISE lock_not_available USING
        MESSAGE = format('lease %s is being renewed or replaced by another request',
                         randflake_lease_renew.lease_id),
        HINT = 'Ask again.';
WHEN exclusion_violation THEN
    RAISE object_not_in_prerequisite_state USING
        MESSAGE = format('the node ids of lease %s have another holder by now',
                         randflake_lease_renew.lease_id),
        HINT = 'Acquire a new lease.';
END $$;
COMMENT ON FUNCTION randflake_lease_renew(bigint, uuid, bigint, integer, text) IS
'coordinator: renews the caller''s lease if it has not ended; returns its new last second, the '
'coordinator''s clock in Unix milliseconds, and the second of the first secret that the holder '
'lacks, or null';
