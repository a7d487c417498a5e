-- The state machine

-- Returns texts that identify the server, the database and the timeline. In a clone, branch or
-- restored dump, the texts differ from the original's if SQL can tell the copy from the original.
CREATE OR REPLACE FUNCTION randflake.randflake_identity(OUT identity text, OUT timeline text)
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    identity := (SELECT oid FROM pg_database WHERE datname = current_database()) || ' '
        || coalesce(current_setting('neon.timeline_id', true), '');
    BEGIN
        identity := identity || ' ' || (SELECT system_identifier FROM pg_control_system());
    EXCEPTION WHEN OTHERS THEN NULL;  -- a service may not allow this
    END;
    BEGIN
        timeline := left(pg_walfile_name(pg_current_wal_insert_lsn()), 8);
    EXCEPTION WHEN OTHERS THEN NULL;
    END;
END $$;

-- Returns the part of the position that comes from hops and leaps.
CREATE OR REPLACE FUNCTION randflake.randflake_leapt(hops regclass, leaps regclass) RETURNS bigint
LANGUAGE sql VOLATILE
RETURN ((pg_sequence_last_value(hops) >> 6) << 15) + ((pg_sequence_last_value(leaps) >> 6) << 24);

CREATE OR REPLACE FUNCTION randflake.randflake_position(
    tickets regclass, hops regclass, leaps regclass) RETURNS bigint
LANGUAGE sql VOLATILE
RETURN pg_sequence_last_value(tickets) + randflake.randflake_leapt(hops, leaps);

-- Reports a violation of the uniqueness contract. Does not use ASSERT, which any role can turn off.
CREATE OR REPLACE FUNCTION randflake.randflake_broken(node_id integer, contract text) RETURNS void
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    RAISE data_corrupted USING
        MESSAGE = format('the sequences of node id %s broke a contract by which no identifier '
            'comes twice', node_id),
        DETAIL = format('The contract is: %s.', contract),
        HINT = format('If a sequence was set by hand, run SELECT '
            'randflake.randflake_configure(NULL, %s). If none was, report this.', node_id);
END $$;

-- Returns an error if the clock, the server's settings, or the seconds of `numbers` (`used`) and of
-- the position (`last`) do not allow identifiers. It takes no row of randflake_state, because
-- auto_explain would log the row's secret.
CREATE OR REPLACE FUNCTION randflake.randflake_wrong(
    node_id integer, used bigint, last bigint,
    OUT state text, OUT message text, OUT detail text, OUT hint text)
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    now constant bigint := floor(date_part('epoch', clock_timestamp()))::bigint - 1730000000;
    sessions constant bigint := (SELECT sum(setting::bigint) FROM pg_settings
        WHERE name IN ('max_connections', 'max_worker_processes', 'autovacuum_max_workers',
            'max_wal_senders'));
BEGIN
    state := '55000';
    IF sessions > 8000 THEN
        message := format('there can be too many sessions, %s', sessions);
        detail := 'At most 8000 sessions and background processes may take numbers of one second.';
        hint := 'Lower "max_connections", "max_worker_processes", "autovacuum_max_workers" or '
            '"max_wal_senders".';
    ELSIF now NOT BETWEEN 0 AND 1073741823 - 100 THEN
        state := '22008';
        message := 'timestamp out of range';
        detail := 'Identifiers hold times from 2024-10-27 to 2058-11-05.';
        hint := 'Check the server''s clock.';
    ELSIF last IS NULL OR used > last THEN  -- NULL after ALTER SEQUENCE … RESTART
        message := format('the sequences of node id %s were set back', node_id);
        detail := format('They stand at %s, but identifiers have been made for times up to %s.',
            to_timestamp(1730000000 + coalesce(last, 0)),
            to_timestamp(1730000000 + coalesce(used, 0)));
        hint := format('Run SELECT randflake.randflake_configure(NULL, %s).', node_id);
    ELSIF last > now + 80 THEN  -- no call waits that long
        message := 'identifiers have been made for times far ahead of the server''s clock';
        detail := format('They go up to %s.', to_timestamp(1730000000 + last));
        hint := 'Wait for that time, set the clock right, or run SELECT '
            'randflake.randflake_configure(NULL, 2), with a node id that no database used.';
    ELSE
        state := NULL;
    END IF;
END $$;

-- Returns the error if this database cannot make identifiers. Otherwise, state is NULL.
CREATE OR REPLACE FUNCTION randflake.randflake_refusal(
    OUT state text, OUT message text, OUT detail text, OUT hint text)
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    c randflake.randflake_state;
    here record;
    used bigint;
    last bigint;
BEGIN
    IF pg_is_in_recovery() THEN
        state := '25006';
        message := 'cannot generate identifiers during recovery';
        detail := 'A standby has the node id and the secret of its primary.';
        hint := 'Generate them on the primary.';
        RETURN;
    END IF;
    SELECT * INTO c FROM randflake.randflake_state;
    state := '55000';
    IF NOT FOUND THEN
        message := 'randflake is not configured in this database';
        detail := 'Or it was configured after this transaction''s snapshot was taken.';
        hint := 'Run SELECT randflake.randflake_configure(NULL, 1), with a node id that no other '
            'database uses. NULL makes a new secret: if identifiers exist, pass theirs.';
        RETURN;
    END IF;
    SELECT * INTO here FROM randflake.randflake_identity();
    hint := 'Run SELECT randflake.randflake_configure(NULL, 2), with a node id that no other '
        'database uses, or with the former one if the former server has stopped for good. A '
        'server with the library that takes its place starts 64 seconds after the last identifier.';
    IF c.identity <> here.identity OR (pg_relation_filepath(c.numbers) LIKE c.file) IS NOT TRUE
        OR NOT EXISTS (SELECT FROM randflake.randflake_state AS s WHERE s.xmin = s.writer)
        OR (SELECT count(*) FROM pg_class AS q WHERE q.oid IN (c.tickets, c.hops, c.leaps)) < 3
    THEN
        message :=
            'this database is a copy of the one that was configured, or was upgraded or restored';
        detail := 'Two databases with the same node id would make the same identifiers.';
        RETURN;
    END IF;
    IF c.timeline <> here.timeline AND NOT c.failover THEN
        message := 'this server was promoted or restored since randflake was configured';
        detail := 'If the former server still runs, both would make the same identifiers.';
        RETURN;
    END IF;
    used := (pg_sequence_last_value(c.numbers) >> 17) & 1073741823;  -- before the position
    last := randflake.randflake_position(c.tickets, c.hops, c.leaps) >> 6;
    SELECT w.* INTO state, message, detail, hint
    FROM randflake.randflake_wrong(c.node_id, used, last) AS w;
END $$;
