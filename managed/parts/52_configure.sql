-- Locks the table. Waits for all transactions that have read it, and names those that are prepared.
CREATE OR REPLACE FUNCTION randflake.randflake_lock() RETURNS void
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    prepared text;
BEGIN
    SELECT string_agg(DISTINCT quote_literal(p.gid), ', ') INTO prepared
    FROM pg_prepared_xacts AS p JOIN pg_locks AS own ON own.transactionid = p.transaction
        JOIN pg_locks AS l USING (virtualtransaction)
    WHERE l.pid IS NULL AND l.relation = 'randflake.randflake_state'::regclass
        AND p.database = current_database();
    IF prepared IS NOT NULL THEN
        RAISE WARNING USING
            MESSAGE = 'randflake_configure() waits for prepared transactions: ' || prepared,
            DETAIL = 'They have generated identifiers.',
            HINT = 'End each of them with COMMIT PREPARED or ROLLBACK PREPARED.';
    END IF;
    LOCK TABLE randflake.randflake_state IN ACCESS EXCLUSIVE MODE;
END $$;

-- Refuses a change of the secrets that sessions may have used.
CREATE OR REPLACE FUNCTION randflake.randflake_keep_secrets(
    before randflake.randflake_state, after randflake.randflake_state, now bigint) RETURNS void
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    -- The last second that may have been used, under any node id.
    latest constant bigint := greatest(now + 63, (
        SELECT max(randflake.randflake_position(c.oid,
            to_regclass(replace(c.oid::regclass::text, 'tickets', 'hops')),
            to_regclass(replace(c.oid::regclass::text, 'tickets', 'leaps'))) >> 6)
        FROM pg_class AS c WHERE c.relnamespace = 'randflake'::regnamespace
            AND c.relname LIKE 'randflake\_tickets\_%'));
BEGIN
    IF (SELECT array_agg(f ORDER BY o) FROM unnest(before.fingerprints, before.valid_from)
            WITH ORDINALITY AS u (f, s, o) WHERE s <= latest)
        IS DISTINCT FROM
        (SELECT array_agg(f ORDER BY o) FROM unnest(after.fingerprints, after.valid_from)
            WITH ORDINALITY AS u (f, s, o) WHERE s <= latest)
    THEN
        RAISE object_not_in_prerequisite_state USING
            MESSAGE = 'these secrets are not those that identifiers were made under',
            DETAIL = format('Identifiers up to %s may have been made.',
                to_timestamp(1730000000 + latest)),
            HINT = 'Keep every line that was in use, and let a new one begin later.';
    END IF;
END $$;

-- Creates the sequences of a node id that are missing. Returns whether the past use is unknown.
CREATE OR REPLACE FUNCTION randflake.randflake_make_sequences(node_id integer) RETURNS boolean
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    sequence record;
    made boolean := false;
BEGIN
    FOR sequence IN
        SELECT format('randflake.randflake_%s_%s', s.kind, node_id) AS name, s.persistence
        FROM (VALUES ('tickets', ''), ('hops', ''), ('leaps', ''), ('numbers', 'UNLOGGED'))
            AS s (kind, persistence)
    LOOP
        IF to_regclass(sequence.name) IS NULL THEN
            EXECUTE format('CREATE %s SEQUENCE %s MINVALUE 0 START 0',
                sequence.persistence, sequence.name);
            PERFORM randflake.randflake_keep_private();
            made := true;
        END IF;
        IF pg_sequence_last_value(sequence.name) IS NULL THEN  -- it is new, or was restarted
            PERFORM setval(sequence.name, 0);
            made := made OR sequence.persistence = '';
        END IF;
    END LOOP;
    RETURN made;
END $$;

-- Writes the row by a rewrite of the table, which no publication sends. The caller holds its lock.
CREATE OR REPLACE FUNCTION randflake.randflake_replace(after randflake.randflake_state)
RETURNS void LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF NOT EXISTS (SELECT FROM randflake.randflake_state) THEN
        INSERT INTO randflake.randflake_state
        VALUES (0, '', '{}', '{}', '{}', '{}', 0, 0, 0, 0, '', '', NULL, false, '0');
    END IF;
    -- SQL shows the number of a subtransaction only as xmin of what it wrote.
    ALTER TABLE randflake.randflake_state ALTER COLUMN keys SET STORAGE PLAIN;
    SELECT a.xmin INTO after.writer FROM pg_attribute AS a
    WHERE a.attrelid = 'randflake.randflake_state'::regclass AND a.attname = 'keys';
    PERFORM set_config('randflake_managed.row', after::text, true);
    EXECUTE (
        SELECT 'ALTER TABLE randflake.randflake_state '
            || string_agg(format('ALTER COLUMN %I TYPE %s USING (current_setting('
                '''randflake_managed.row'')::randflake.randflake_state).%1$I',
                a.attname, format_type(a.atttypid, a.atttypmod)), ', ')
            || ', ALTER COLUMN keys SET STORAGE PLAIN, ENABLE ALWAYS TRIGGER randflake_guard'
        FROM pg_attribute AS a WHERE a.attrelid = 'randflake.randflake_state'::regclass
            AND a.attnum > 0 AND NOT a.attisdropped);
    PERFORM set_config('randflake_managed.row', '', true);
END $$;

-- secret    has the lines of a file of secrets. NULL keeps the present lines, or makes a secret.
-- failover  lets a promoted standby resume by itself. It is false at first. NULL keeps the setting.
CREATE OR REPLACE FUNCTION randflake.randflake_configure(
    secret text, node_id integer, failover boolean DEFAULT NULL) RETURNS void
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp
SET plan_cache_mode = force_generic_plan  -- a custom plan would show the secret to auto_explain
AS $$
DECLARE
    before randflake.randflake_state;
    after randflake.randflake_state;
    here record;
    now bigint;
    takes_over boolean;  -- the past use of this node id is unknown
    latest bigint;       -- the last second that may have been used
    reached bigint;      -- the position
BEGIN
    IF current_setting('transaction_isolation') <> 'read committed' THEN
        RAISE feature_not_supported USING
            MESSAGE = 'randflake is configured under READ COMMITTED only';
    END IF;
    PERFORM randflake.randflake_lock();
    now := floor(date_part('epoch', clock_timestamp()))::bigint - 1730000000;
    SELECT * INTO before FROM randflake.randflake_state;
    after.node_id := coalesce(randflake_configure.node_id, before.node_id);
    after.failover := coalesce(randflake_configure.failover, before.failover, false);
    after.secret := coalesce(randflake_configure.secret, before.secret, left(encode(sha256(
        uuid_send(gen_random_uuid()) || uuid_send(gen_random_uuid())), 'hex'), 32));
    IF after.node_id IS NULL OR after.node_id NOT BETWEEN 0 AND 131071 THEN
        RAISE invalid_parameter_value USING
            MESSAGE = coalesce(format('node id %s is out of range', after.node_id),
                'a node id is missing'),
            DETAIL = 'It must be from 0 to 131071.',
            HINT = 'Give each database and server with this secret a node id of its own.';
    END IF;
    SELECT p.* INTO after.valid_from, after.keys, after.keys53, after.fingerprints
    FROM randflake.randflake_parse_secrets(after.secret) AS p;
    IF before.secret IS NOT NULL THEN
        PERFORM randflake.randflake_keep_secrets(before, after, now);
    END IF;

    SELECT * INTO here FROM randflake.randflake_identity();
    takes_over := randflake.randflake_make_sequences(after.node_id)
        OR randflake_configure.node_id IS NOT NULL
        OR (before.identity, before.timeline) IS DISTINCT FROM (here.identity, here.timeline)
        OR (pg_relation_filepath(before.numbers) LIKE before.file) IS NOT TRUE;
    after.tickets := format('randflake.randflake_tickets_%s', after.node_id)::regclass;
    after.hops := format('randflake.randflake_hops_%s', after.node_id)::regclass;
    after.leaps := format('randflake.randflake_leaps_%s', after.node_id)::regclass;
    after.numbers := format('randflake.randflake_numbers_%s', after.node_id)::regclass;
    reached := randflake.randflake_position(after.tickets, after.hops, after.leaps);
    IF takes_over THEN
        -- If the secret is new, no identifier has used any second yet. Otherwise, sessions may
        -- already have used seconds up to `latest`.
        latest := now + CASE WHEN coalesce(randflake_configure.secret, before.secret) IS NULL
            THEN 0 ELSE 63 END;
        --@ use clock_is_right last=coalesce(nullif(reached,0)>>6,latest) now=latest
        PERFORM setval(after.tickets, pg_sequence_last_value(after.tickets)
            + greatest(((latest << 6) | 63) - reached, 0));
        reached := greatest(reached, (latest << 6) | 63);
    END IF;
    IF (randflake.randflake_position(after.tickets, after.hops, after.leaps) >= reached) IS NOT TRUE
    THEN
        PERFORM randflake.randflake_broken(after.node_id,
            'the position goes beyond each second that may have been used');
    END IF;
    PERFORM setval(after.numbers, 0);  -- as after a start
    after.file := '%/' || substring(pg_relation_filepath(after.numbers) FROM '[^/]*/[^/]*$');
    after.identity := here.identity;
    after.timeline := here.timeline;
    PERFORM randflake.randflake_replace(after);
END $$;
