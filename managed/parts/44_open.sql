-- Moves the position to a second from `wanted` on, from the position `seen`. Returns the second if
-- this session holds it, or NULL.
CREATE OR REPLACE FUNCTION randflake.randflake_climb(
    node_id integer, tickets regclass, hops regclass, leaps regclass, wanted bigint, seen bigint)
RETURNS bigint LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    far constant boolean := wanted - (seen >> 6) > 512;
    goal constant bigint := CASE WHEN far THEN (seen >> 6) + 1 ELSE wanted END << 6;
    leapt constant bigint := randflake.randflake_leapt(hops, leaps);
    p bigint;
BEGIN
    WHILE randflake.randflake_position(tickets, hops, leaps) < goal LOOP
        p := nextval(tickets) + leapt;
    END LOOP;
    IF p IS NULL OR p & 63 <> 0 OR leapt <> randflake.randflake_leapt(hops, leaps) THEN
        RETURN NULL;
    END IF;
    IF p <= seen THEN
        PERFORM randflake.randflake_broken(node_id, 'the position never falls');
    END IF;
    -- The position belongs to a second that no other session holds.
    IF p >> 6 >= wanted THEN
        RETURN p >> 6;
    END IF;
    p := nextval(tickets);
    WHILE randflake.randflake_position(tickets, hops, leaps) + 16777216 <= wanted << 6 LOOP
        p := nextval(leaps);
    END LOOP;
    WHILE randflake.randflake_position(tickets, hops, leaps) + 32768 <= wanted << 6 LOOP
        p := nextval(hops);
    END LOOP;
    RETURN NULL;
END $$;

-- Waits until the position of second t has reached the disk, or the clock is close to t. Returns
-- after 20 seconds since `began` at the latest.
CREATE OR REPLACE FUNCTION randflake.randflake_flush(t bigint, began timestamptz) RETURNS void
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    flushes constant boolean := current_setting('server_version_num')::integer >= 170000;
    now bigint := floor(date_part('epoch', clock_timestamp()))::bigint - 1730000000;
    written pg_lsn;  -- the position's WAL records end before
BEGIN
    BEGIN
        written := pg_current_wal_insert_lsn();
        IF flushes THEN
            PERFORM pg_logical_emit_message(false, 'randflake', '', true);
        ELSIF t > now + 2 THEN
            -- Without a commit, PostgreSQL flushes only full WAL pages. This call fills pages.
            PERFORM pg_logical_emit_message(false, 'randflake', repeat('x', 16384));
        END IF;
    EXCEPTION WHEN OTHERS THEN
        written := NULL;  -- a service may not allow this
    END;
    LOOP
        now := floor(date_part('epoch', clock_timestamp()))::bigint - 1730000000;
        EXIT WHEN (flushes AND written IS NOT NULL) OR t <= now + 2
            OR clock_timestamp() - began > interval '20 s';
        EXIT WHEN written IS NOT NULL AND pg_current_wal_flush_lsn() >= written;
        PERFORM pg_sleep(0.01);
    END LOOP;
END $$;

-- Sleeps before the next look at the sequences. Fails after 20 seconds since `began`.
CREATE OR REPLACE FUNCTION randflake.randflake_pause(began timestamptz, ahead bigint) RETURNS void
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF clock_timestamp() - began > interval '20 s' THEN
        RAISE configuration_limit_exceeded USING MESSAGE = 'no number has become free',
            DETAIL = format('Identifiers have been made for times up to %s seconds ahead of the '
                'clock.', ahead),
            HINT = 'Wait, and make fewer identifiers at once.';
    END IF;
    PERFORM pg_sleep(0.002);
END $$;

--@ define clock_is_right
IF @now@ - @last@ > 100000000 THEN
    RAISE object_not_in_prerequisite_state USING
        MESSAGE = 'the server''s clock is years ahead of the last identifiers',
        HINT = 'Check the clock. If it is right, run SELECT '
            'randflake.randflake_configure(NULL, 2), with a node id that no database used.';
END IF;
--@ end
-- Waits until `numbers` may have a free number less than `below`. Opens the next second if this
-- session holds it. Otherwise, waits for the session that holds it.
CREATE OR REPLACE FUNCTION randflake.randflake_open(below integer DEFAULT 122880) RETURNS void
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    c randflake.randflake_state;
    no record;
    life constant bigint := date_part('microseconds', pg_postmaster_start_time())::bigint & 65535;
    began constant timestamptz := clock_timestamp();
    since timestamptz := began;  -- when `numbers` or the position last changed
    now bigint := floor(date_part('epoch', began))::bigint - 1730000000;
    first bigint;   -- the first second after a start
    seen_v bigint;
    seen_p bigint;
    v bigint;       -- last value of `numbers`
    second bigint;  -- its second; NULL with another life
    p bigint;       -- the position
    t bigint;       -- its second
    wanted bigint;
    patient boolean;
BEGIN
    SELECT * INTO no FROM randflake.randflake_refusal();
    IF no.state IS NOT NULL THEN
        RAISE EXCEPTION USING ERRCODE = no.state, MESSAGE = no.message, DETAIL = no.detail,
            HINT = no.hint;
    END IF;
    SELECT * INTO c FROM randflake.randflake_state;
    first := now + CASE WHEN c.timeline
        = (SELECT i.timeline FROM randflake.randflake_identity() AS i) THEN 4 ELSE 64 END;
    LOOP
        now := floor(date_part('epoch', clock_timestamp()))::bigint - 1730000000;
        v := coalesce(pg_sequence_last_value(c.numbers), 0);
        p := randflake.randflake_position(c.tickets, c.hops, c.leaps);
        t := p >> 6;
        second := CASE WHEN v >> 47 = life AND v & 140737488224256 <> 0
            THEN (v >> 17) & 1073741823 END;
        EXIT WHEN second BETWEEN now AND now + 60 AND (v & 131071) < below;
        IF (v, p) IS DISTINCT FROM (seen_v, seen_p) THEN
            since := clock_timestamp();
            seen_v := v;
            seen_p := p;
        END IF;
        -- If nothing changes for 0.1 s, this session assumes that the second's holder has ended.
        patient := clock_timestamp() - since <= interval '0.1 s';

        wanted := greatest(CASE WHEN second IS NULL THEN first ELSE second + 1 END, now);
        IF t >= wanted AND NOT patient THEN
            wanted := t + 1;
        END IF;
        -- If a position is far behind, only the session that holds its second moves the position.
        IF t >= wanted OR wanted > now + 60 OR (wanted - t > 512 AND p & 63 <> 0 AND patient) THEN
            PERFORM randflake.randflake_pause(began, greatest(second - now, t - now, 0));
            CONTINUE;
        END IF;
        --@ use clock_is_right last=t now=wanted
        t := randflake.randflake_climb(c.node_id, c.tickets, c.hops, c.leaps, wanted, p);
        CONTINUE WHEN t IS NULL;
        PERFORM randflake.randflake_flush(t, began);
        CONTINUE WHEN clock_timestamp() - began > interval '20 s';
        v := pg_sequence_last_value(c.numbers);
        IF v >> 47 = life AND (v >> 17) & 1073741823 = t THEN
            PERFORM randflake.randflake_broken(c.node_id, 'a second is opened by its holder, once');
        ELSIF v >> 47 = life AND v >= ((life << 47) | (t << 17)) THEN
            CONTINUE;
        ELSIF t < first AND second IS NULL THEN
            PERFORM randflake.randflake_broken(c.node_id,
                'after a start, no second is opened before the first that is unused for certain');
        END IF;
        PERFORM setval(c.numbers, (life << 47) | (t << 17));
    END LOOP;
END $$;
