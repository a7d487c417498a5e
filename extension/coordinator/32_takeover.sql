-- Reports a violated contract of uniqueness. Does not use ASSERT, as any role can turn ASSERT off.
CREATE FUNCTION randflake_lease_broken(own randflake_lease_internal, contract text) RETURNS void
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    RAISE data_corrupted USING
        MESSAGE = 'the coordinator broke a contract by which no identifier comes twice',
        DETAIL = format('The contract is: %s. Nothing of the transaction stays.', contract),
        HINT = 'Undo what was changed by hand in the coordinator''s tables. If nothing was, '
               'report this.';
END $$;

-- Returns the time at which this coordinator took over from the former one. This is the time of the
-- first call that saw another identity in the pool, or of the table's last grant, whichever is
-- later. Without a pool, returns the time of the extension's creation in this database, if the
-- server has not started since. From then on, a copy of the database may have granted leases that
-- this database lacks.
CREATE FUNCTION randflake_lease_taken_over(own randflake_lease_internal, former text, identity text)
RETURNS bigint LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    hash CONSTANT bigint := @extschema@.randflake_lease_identity_hash(own, identity);
    noted bigint;
    called boolean;
BEGIN
    SELECT last_value, is_called INTO STRICT noted, called
    FROM @extschema@.randflake_lease_takeover;
    IF @extschema@.randflake_lease_noted_here(own, identity, noted)
        AND (called OR former = '') THEN
        RETURN noted >> 31;
    END IF;
    SELECT least(greatest(@extschema@.randflake_lease_clock(own),
                          @extschema@.randflake_lease_started(own),
                          extract(epoch FROM max(greatest(granted_at, renewed_at)))::bigint),
                 @extschema@.randflake_lease_limit(own)) << 31 | hash
    INTO STRICT noted FROM @extschema@.randflake_lease;
    PERFORM setval('@extschema@.randflake_lease_takeover', noted);
    RAISE LOG 'node ids were leased by another coordinator before'
        USING DETAIL = 'No lease starts until the last one that it may have granted has ended.';
    RETURN noted >> 31;
END $$;

-- A restore or an operator may delete rows of leases in force, or replace the pool by an older one.
-- Triggers note this as a takeover, in the sequence that no dump contains. They also fire while
-- session_replication_role is `replica`. DISABLE TRIGGER ALL changes them, and so shows itself.
CREATE FUNCTION randflake_lease_lost() RETURNS trigger
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    own CONSTANT @extschema@.randflake_lease_internal := NULL;
BEGIN
    PERFORM setval('@extschema@.randflake_lease_takeover',
                   @extschema@.randflake_lease_identity_hash(own,
                       @extschema@.randflake_lease_identity(own)) # 1);
    RETURN NULL;
END $$;
COMMENT ON FUNCTION randflake_lease_lost() IS
'not for users: a trigger that notes that rows were lost';

-- Ignores rows of another server, which an apply or synchronization worker brings.
CREATE FUNCTION randflake_lease_own_rows() RETURNS trigger
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF EXISTS (SELECT FROM pg_stat_get_subscription(NULL) WHERE pid = pg_backend_pid()) THEN
        RETURN NULL;
    ELSIF TG_OP = 'DELETE' THEN
        RETURN OLD;
    END IF;
    RETURN NEW;
END $$;
COMMENT ON FUNCTION randflake_lease_own_rows() IS
'not for users: a trigger that ignores rows of a subscription';

-- Returns true while all triggers fire, whatever session_replication_role says.
CREATE FUNCTION randflake_lease_guarded(own randflake_lease_internal) RETURNS boolean
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
    SELECT count(*) = 12 FROM pg_trigger
    WHERE tgrelid IN ('@extschema@.randflake_lease'::regclass,
                      '@extschema@.randflake_lease_pool'::regclass,
                      '@extschema@.randflake_lease_hold'::regclass,
                      '@extschema@.randflake_lease_role'::regclass,
                      '@extschema@.randflake_lease_chunk'::regclass,
                      '@extschema@.randflake_lease_announcement'::regclass)
      AND tgname LIKE 'randflake\_lease\_%' AND tgenabled = 'A'
$$;

-- Makes all triggers fire always.
CREATE FUNCTION randflake_lease_guard(own randflake_lease_internal) RETURNS void
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    command text;
BEGIN
    FOR command IN
        SELECT format('ALTER TABLE %s ENABLE ALWAYS TRIGGER %I', tgrelid::regclass, tgname)
        FROM pg_trigger JOIN pg_class ON pg_class.oid = tgrelid
        WHERE relnamespace = (SELECT relnamespace FROM pg_class
                              WHERE oid = '@extschema@.randflake_lease'::regclass)
          AND relname LIKE 'randflake\_lease%' AND tgname LIKE 'randflake\_lease\_%'
          AND tgenabled <> 'A'
    LOOP
        EXECUTE command;
    END LOOP;
END $$;

CREATE TRIGGER randflake_lease_deleted AFTER DELETE ON randflake_lease FOR EACH ROW
    WHEN (pg_catalog.upper(OLD.span)::numeric
          OPERATOR(pg_catalog.>) EXTRACT(epoch FROM pg_catalog.clock_timestamp()))
    EXECUTE FUNCTION randflake_lease_lost();
CREATE TRIGGER randflake_lease_truncated AFTER TRUNCATE ON randflake_lease
    EXECUTE FUNCTION randflake_lease_lost();
CREATE TRIGGER randflake_lease_replaced AFTER INSERT ON randflake_lease_pool FOR EACH ROW
    WHEN (NEW.coordinator OPERATOR(pg_catalog.<>) '') EXECUTE FUNCTION randflake_lease_lost();
CREATE TRIGGER randflake_lease_deleted AFTER DELETE ON randflake_lease_pool FOR EACH ROW
    EXECUTE FUNCTION randflake_lease_lost();
CREATE TRIGGER randflake_lease_truncated AFTER TRUNCATE ON randflake_lease_pool
    EXECUTE FUNCTION randflake_lease_lost();
CREATE TRIGGER randflake_lease_truncated AFTER TRUNCATE ON randflake_lease_hold
    EXECUTE FUNCTION randflake_lease_lost();
DO $$
DECLARE
    of_table text;
BEGIN
    FOREACH of_table IN ARRAY ARRAY['', '_pool', '_hold', '_role', '_chunk', '_announcement'] LOOP
        EXECUTE pg_catalog.format(
            'CREATE TRIGGER randflake_lease_own_rows
            BEFORE INSERT OR UPDATE OR DELETE ON @extschema@.randflake_lease%s
            FOR EACH ROW WHEN (pg_catalog.current_setting(''session_replication_role'')
                               OPERATOR(pg_catalog.=) ''replica'')
            EXECUTE FUNCTION @extschema@.randflake_lease_own_rows()', of_table);
    END LOOP;
END $$;
SELECT @extschema@.randflake_lease_guard(NULL);
