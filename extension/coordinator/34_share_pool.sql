-- Locks the pool against changes until the transaction ends. Other sessions can hold this lock at
-- the same time. Returns the pool with its current mark, or null if there is no pool.
CREATE FUNCTION randflake_lease_share_pool(own randflake_lease_internal)
RETURNS randflake_lease_pool LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    pool @extschema@.randflake_lease_pool;
    identity CONSTANT text := @extschema@.randflake_lease_identity(own);
    noted bigint;
    called boolean;
    since bigint; -- leases that the table lacks may have been granted until this second
BEGIN
    IF current_setting('transaction_isolation') NOT IN ('read committed', 'read uncommitted') THEN
        RAISE invalid_transaction_state USING
            MESSAGE = 'node ids are leased under the isolation level READ COMMITTED alone',
            DETAIL = format('This transaction is %s, and sees the leases as they were when '
                            'it began.', upper(current_setting('transaction_isolation'))),
            HINT = 'Begin it with BEGIN ISOLATION LEVEL READ COMMITTED, or set '
                   '"default_transaction_isolation" in the connection.';
    END IF;
    -- A grant must survive a crash. If the wait for a synchronous standby is canceled, the holder
    -- must see the warning. So this code sets synchronous_commit and client_min_messages.
    IF current_setting('synchronous_commit') IN ('off', 'local') THEN
        PERFORM set_config('synchronous_commit', 'on', true);
    END IF;
    IF current_setting('client_min_messages') = 'error' THEN
        PERFORM set_config('client_min_messages', 'warning', true);
    END IF;
    -- If a change of the pool has waited for 20 seconds, this call waits for it, up to a second.
    FOR attempt IN 1 .. 100 LOOP
        EXIT WHEN (SELECT last_value - floor(1000 * extract(epoch FROM clock_timestamp()))::bigint
                          NOT BETWEEN 1 AND 2000
                   FROM @extschema@.randflake_lease_change);
        PERFORM pg_sleep(0.01);
    END LOOP;
    LOCK TABLE @extschema@.randflake_lease_pool IN ROW SHARE MODE;
    SELECT * INTO pool FROM @extschema@.randflake_lease_pool;
    IF NOT FOUND THEN
        RETURN pool;
    END IF;
    IF NOT @extschema@.randflake_lease_guarded(own) THEN
        RAISE LOG 'triggers of the coordinator''s tables were changed'
            USING DETAIL = 'Rows may have been lost meanwhile, so no lease is granted.',
                  HINT = 'Call randflake_lease_configure(), which restores them.';
        since := @extschema@.randflake_lease_clock(own);
    END IF;
    SELECT last_value, is_called INTO STRICT noted, called
    FROM @extschema@.randflake_lease_takeover;
    IF pool.coordinator <> identity
        OR NOT @extschema@.randflake_lease_noted_here(own, identity, noted)
        OR (CASE WHEN called THEN noted END) IS DISTINCT FROM pool.takeover THEN
        since := greatest(since, @extschema@.randflake_lease_taken_over(
            own, pool.coordinator, identity));
        pool.coordinator := identity;
    END IF;
    pool.high_water :=
        greatest(pool.high_water, since + pool.max_duration + 2 * pool.max_clock_skew + 1);
    RETURN pool;
END $$;

-- Because of this event, no lease begins before the returned Unix second; null while the pool is
-- closed.
CREATE FUNCTION randflake_lease_until(own randflake_lease_internal, hold randflake_lease_hold)
RETURNS bigint LANGUAGE sql IMMUTABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
    SELECT hold.since + hold.longest
        + CASE WHEN hold.longest > 0 THEN 2 ELSE 1 END * hold.widest + 1
$$;

-- Adds an event after which grants wait. Deletes events with the same cause that end no later.
CREATE FUNCTION randflake_lease_hold_off(
    own randflake_lease_internal, event text, second bigint, duration integer, skew integer)
RETURNS void LANGUAGE sql VOLATILE SET search_path = pg_catalog, pg_temp AS $$
    DELETE FROM @extschema@.randflake_lease_hold
    WHERE cause = event AND since <= second AND longest <= duration AND widest <= skew;
    INSERT INTO @extschema@.randflake_lease_hold
    SELECT 1 + coalesce(max(entry), 0), event, second, duration, skew
    FROM @extschema@.randflake_lease_hold;
$$;
