-- Locks the pool against all other leasing until the transaction ends. Creates the pool if
-- necessary, and writes its mark. Returns the pool, with the identity of the coordinator that last
-- changed the pool ('' if none has). To get the lock, the call ends other sessions that lock the
-- pool. In its first 20 seconds, the call ends only sessions whose transactions are older than 20
-- seconds. Once a second, the call leaves the lock's queue to let waiting sessions proceed. After
-- 20 seconds, the call ends every session that locks the pool, and lets no other session lock the
-- pool first. Otherwise sessions could take turns and delay the call forever.
CREATE FUNCTION randflake_lease_lock_pool(own randflake_lease_internal) RETURNS randflake_lease_pool
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp
SET lock_timeout = '1s'
AS $$
DECLARE
    former @extschema@.randflake_lease_pool;
    pool @extschema@.randflake_lease_pool;
    attempts integer := 0; -- of a second each
BEGIN
    LOOP
        attempts := attempts + 1;
        IF attempts > 20 THEN
            PERFORM setval('@extschema@.randflake_lease_change',
                           floor(1000 * extract(epoch FROM clock_timestamp()))::bigint + 2000);
        END IF;
        PERFORM pg_stat_clear_snapshot(); -- otherwise it misses new sessions
        PERFORM pg_terminate_backend(pid)
        FROM pg_locks JOIN pg_database ON pg_database.oid = database
            JOIN pg_stat_activity USING (pid)
        WHERE pg_database.datname = current_database()
          AND relation = '@extschema@.randflake_lease_pool'::regclass
          AND mode NOT IN ('AccessShareLock', 'ShareUpdateExclusiveLock') AND granted
          AND pid <> pg_backend_pid()
          --@ use may_end
          AND (attempts > 20 OR xact_start < clock_timestamp() - interval '20 seconds');
        BEGIN
            LOCK TABLE @extschema@.randflake_lease_pool IN EXCLUSIVE MODE;
            EXIT;
        EXCEPTION WHEN lock_not_available THEN
            NULL;
        END;
    END LOOP;
    IF attempts > 20 THEN
        PERFORM setval('@extschema@.randflake_lease_change', 0);
    END IF;
    INSERT INTO @extschema@.randflake_lease_pool AS p (coordinator) VALUES ('')
    ON CONFLICT DO NOTHING RETURNING p.* INTO former;
    IF FOUND THEN
        PERFORM @extschema@.randflake_lease_chunks(own, former.nodes);
    END IF;
    SELECT * INTO STRICT former FROM @extschema@.randflake_lease_pool;
    IF NOT @extschema@.randflake_lease_guarded(own) THEN
        PERFORM @extschema@.randflake_lease_guard(own),
                setval('@extschema@.randflake_lease_takeover',
                       @extschema@.randflake_lease_identity_hash(own,
                           @extschema@.randflake_lease_identity(own)) # 1);
    END IF;
    pool := @extschema@.randflake_lease_share_pool(own);
    IF EXISTS (SELECT FROM @extschema@.randflake_lease_pool p
               WHERE p.high_water > pool.high_water) THEN
        PERFORM @extschema@.randflake_lease_broken(
            own, 'a takeover does not lower the mark'::text);
    END IF;
    SELECT CASE WHEN is_called THEN last_value END INTO STRICT pool.takeover
    FROM @extschema@.randflake_lease_takeover;
    IF pool.coordinator <> former.coordinator OR pool.takeover IS DISTINCT FROM former.takeover THEN
        -- `nothing_lost` concerns only the last takeover.
        UPDATE @extschema@.randflake_lease_hold SET cause = 'takeover'
        WHERE cause = 'promotion';
        PERFORM @extschema@.randflake_lease_hold_off(own,
            CASE WHEN @extschema@.randflake_lease_promoted(
                          own, former.coordinator, pool.coordinator)
                 THEN 'promotion' ELSE 'takeover' END,
            last_value >> 31, pool.max_duration, pool.max_clock_skew)
        FROM @extschema@.randflake_lease_takeover;
        UPDATE @extschema@.randflake_lease_pool
        SET coordinator = pool.coordinator, takeover = pool.takeover, high_water = pool.high_water;
        pool.coordinator := former.coordinator;
    END IF;
    RETURN pool;
END $$;
