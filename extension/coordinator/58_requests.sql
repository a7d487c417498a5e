-- Checks what a grant and a renewal have in common.
CREATE FUNCTION randflake_lease_require_request(
    own randflake_lease_internal, duration integer, secrets text) RETURNS void
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF duration < 1 THEN
        RAISE invalid_parameter_value USING
            MESSAGE = format('duration of a lease must be at least 1 second, not %s', duration);
    END IF;
    PERFORM @extschema@.randflake_lease_require_fingerprints(own, secrets);
END $$;

-- Locks the pool for a grant. The first grant sets the secrets and creates the pool.
CREATE FUNCTION randflake_lease_open_pool(own randflake_lease_internal, secrets text)
RETURNS randflake_lease_pool LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    pool @extschema@.randflake_lease_pool;
BEGIN
    IF NOT EXISTS (SELECT FROM @extschema@.randflake_lease_pool p
                   WHERE p.secrets IS NOT NULL) THEN
        pool := @extschema@.randflake_lease_lock_pool(own);
        UPDATE @extschema@.randflake_lease_pool p
        SET secrets = randflake_lease_open_pool.secrets WHERE p.secrets IS NULL;
        pool.secrets := coalesce(pool.secrets, randflake_lease_open_pool.secrets);
    ELSE
        pool := @extschema@.randflake_lease_share_pool(own);
    END IF;
    IF pool.secrets IS NULL THEN
        RAISE serialization_failure USING
            MESSAGE = 'the secrets of this coordinator were just forgotten', HINT = 'Ask again.';
    END IF;
    PERFORM @extschema@.randflake_lease_require_open(own, pool);
    PERFORM @extschema@.randflake_lease_require_secrets(
        own, randflake_lease_open_pool.secrets, pool.secrets, 0::bigint,
        'object_not_in_prerequisite_state'::text);
    RETURN pool;
END $$;

-- Refuses a lease that begins now, if the coordinator cannot know who has which node ids now, or if
-- the holder lacks the present secret.
CREATE FUNCTION randflake_lease_require_time(
    own randflake_lease_internal, pool randflake_lease_pool, secrets text, now bigint) RETURNS void
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF now <= @extschema@.randflake_lease_epoch(own) THEN
        RAISE datetime_field_overflow USING
            MESSAGE = 'the coordinator''s clock is before the first second of an identifier';
    ELSIF now >= @extschema@.randflake_lease_limit(own) THEN
        RAISE datetime_field_overflow USING
            MESSAGE = 'the coordinator''s clock is after the last second of an identifier';
    END IF;
    PERFORM @extschema@.randflake_lease_require_secrets(
        own, secrets, pool.secrets, now, 'object_not_in_prerequisite_state'::text);

    IF now < pool.high_water THEN
        RAISE object_not_in_prerequisite_state USING
            MESSAGE = format('no lease may begin before %s', to_timestamp(pool.high_water)),
            DETAIL = 'Leases that this coordinator does not know of may last until then.',
            COLUMN = pool.high_water::text,
            HINT = CASE WHEN pool.high_water
                             <= now + pool.max_duration + 2 * pool.max_clock_skew + 1
                        THEN format('Ask again in %s seconds.', pool.high_water - now)
                        ELSE 'Set the coordinator''s clock if it is wrong. If it is right and was '
                             'ahead before, lower "high_water" in randflake_lease_pool as '
                             'documented.' END;
    END IF;
END $$;

-- Refuses node ids that exceed the role's share. Locks the role's row, so that the role's grants
-- commit one after another.
CREATE FUNCTION randflake_lease_require_share(
    own randflake_lease_internal, pool randflake_lease_pool, wanted integer, now bigint)
RETURNS void LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    had bigint;       -- node ids of this role's leases, and
    had_until bigint; -- the end of the first of these
    counted @extschema@.randflake_lease_role;
BEGIN
    LOOP
        SELECT * INTO counted FROM @extschema@.randflake_lease_role r
        WHERE r.role = SESSION_USER FOR UPDATE;
        EXIT WHEN FOUND;
        INSERT INTO @extschema@.randflake_lease_role VALUES (SESSION_USER, 0, 0)
        ON CONFLICT DO NOTHING;
    END LOOP;
    IF counted.minute <> now / 60 THEN
        counted.grants := 0;
    END IF;
    IF counted.grants >= pool.max_grants_per_role THEN
        RAISE configuration_limit_exceeded USING
            MESSAGE = format('role "%s" may be granted at most %s leases a minute', SESSION_USER,
                             pool.max_grants_per_role),
            COLUMN = ((now / 60 + 1) * 60)::text,
            HINT = 'Raise "max_grants_per_role" with randflake_lease_configure, or wait for the '
                   'next minute.';
    END IF;
    -- Under the default bounds, which refuse no grant, the call counts no grants and no node ids.
    IF pool.max_grants_per_role < 60000 THEN
        UPDATE @extschema@.randflake_lease_role r
        SET minute = now / 60, grants = counted.grants + 1 WHERE r.role = SESSION_USER;
    END IF;
    IF pool.max_nodes_per_role < 131072 THEN
        SELECT coalesce(sum(upper(l.nodes) - lower(l.nodes)), 0), coalesce(min(upper(l.span)), 0)
        INTO STRICT had, had_until
        FROM @extschema@.randflake_lease l
        WHERE l.role = SESSION_USER AND upper(l.span) > now AND lower(l.span) <= now;
        IF had + wanted > pool.max_nodes_per_role THEN
            RAISE configuration_limit_exceeded USING
                MESSAGE = format('role "%s" may have at most %s node ids', SESSION_USER,
                                 pool.max_nodes_per_role),
                DETAIL = format('It has %s, and asks for %s.', had, wanted),
                COLUMN = had_until::text,
                HINT = 'Raise "max_nodes_per_role" with randflake_lease_configure, or wait until '
                       'leases have ended.';
        END IF;
    END IF;
END $$;

-- Checks a lease that was just written, of whose node ids and seconds its holder is told. The lease
-- may not reach beyond the second `latest`.
CREATE FUNCTION randflake_lease_require_contracts(
    own randflake_lease_internal, pool randflake_lease_pool, lease randflake_lease, latest bigint,
    told_nodes int4range, told_span int8range) RETURNS void
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    used CONSTANT record := @extschema@.randflake_coordinator_static_nodes(own);
    broken CONSTANT text := CASE
        WHEN lease.nodes <> told_nodes OR lease.span <> told_span
            THEN 'a lease is stored as its holder is told'
        WHEN NOT lease.nodes <@ pool.nodes THEN 'a lease has node ids of the pool alone'
        WHEN used.first_node_id < upper(lease.nodes)
            AND used.first_node_id + used.node_count > lower(lease.nodes)
            THEN 'a lease has no node ids of the coordinator''s own server'
        WHEN upper(lease.span) > latest
            OR upper(lease.span) > @extschema@.randflake_lease_limit(own)
            THEN 'a lease is no longer than the longest one'
        WHEN lease.secrets <> pool.secrets
            AND upper(lease.span)
                > @extschema@.randflake_lease_stops_at(own, lease.secrets, pool.secrets)
            THEN 'a lease ends before secrets differ'
        END;
BEGIN
    IF broken IS NOT NULL THEN
        PERFORM @extschema@.randflake_lease_broken(own, broken);
    END IF;
END $$;
