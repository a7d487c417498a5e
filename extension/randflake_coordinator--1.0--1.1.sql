\echo Use "ALTER EXTENSION randflake_coordinator UPDATE TO '1.1'" to load this file. \quit

-- Secrets that follow each other in time. Why it is so, is in randflake_coordinator--1.1.sql.

ALTER TABLE randflake_lease ADD COLUMN key_fingerprint text;
COMMENT ON COLUMN randflake_lease.key_fingerprint IS
'fingerprints of the secrets that the holder named last; null: it was leased before version 1.1, and the holder has the first of the pool';
COMMENT ON COLUMN randflake_lease_pool.key_fingerprint IS
'fingerprints of the secrets that every holder must have, oldest first, from the second on with "@" and the Unix second from which on it is in use';

-- The text that names secrets must be well-formed.
CREATE FUNCTION randflake_lease_require_fingerprints(own randflake_lease_internal, key_fingerprint text)
RETURNS void
LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    IF key_fingerprint !~ '^[0-9a-f]{16}( [0-9a-f]{16}@[1-9][0-9]{9}){0,15}$' THEN
        RAISE invalid_parameter_value USING
            MESSAGE = 'key fingerprint must be 16 lower-case hexadecimal digits',
            DETAIL = 'Those of up to 15 further secrets may follow, each after a space, and with "@" and the Unix second from which on the secret is in use.';
    END IF;
    IF EXISTS (SELECT FROM (SELECT second, lag(second, 1, @extschema@.randflake_lease_epoch(own)) OVER (ORDER BY place) AS former
                            FROM unnest(string_to_array(key_fingerprint, ' ')) WITH ORDINALITY AS e (entry, place),
                                 LATERAL (SELECT nullif(split_part(entry, '@', 2), '')::bigint AS second) AS of_entry
                            WHERE place > 1) AS seconds
               WHERE second <= former OR second >= @extschema@.randflake_lease_horizon(own)) THEN
        RAISE invalid_parameter_value USING
            MESSAGE = 'times of secrets must increase, in seconds that an identifier can hold',
            DETAIL = format('The fingerprints and times are: %s', key_fingerprint);
    END IF;
END
$$;
COMMENT ON FUNCTION randflake_lease_require_fingerprints(randflake_lease_internal, text) IS
'coordinator: an error unless this names secrets, oldest first';
REVOKE ALL ON FUNCTION randflake_lease_require_fingerprints(randflake_lease_internal, text) FROM PUBLIC;

-- The Unix second from which on a holder and the pool may give one identifier to two numbers: that of
-- the first entry that differs, and 0 if that is the first of all. Null: never. Everybody may call it,
-- because roles that may read the view randflake_leases run it, and it knows nothing but its arguments.
CREATE FUNCTION randflake_lease_stops_at(own randflake_lease_internal, holder text, pool text) RETURNS bigint
LANGUAGE sql IMMUTABLE PARALLEL SAFE
SET search_path = pg_catalog, pg_temp
AS $$
    SELECT min(coalesce(nullif(split_part(entry, '@', 2), ''), '0')::bigint)
    FROM unnest(string_to_array(holder, ' '), string_to_array(pool, ' ')) AS both_of (of_holder, of_pool),
         LATERAL (VALUES (of_holder), (of_pool)) AS either (entry)
    WHERE of_holder IS DISTINCT FROM of_pool AND entry IS NOT NULL AND pool IS NOT NULL
$$;
COMMENT ON FUNCTION randflake_lease_stops_at(randflake_lease_internal, text, text) IS
'coordinator: the Unix second from which on a holder of these secrets gets no lease, by the secrets of the pool; null for none';

-- The Unix second of the first secret of the pool that a holder lacks; null: none, or the first of all
-- differs. From then on the holder may read identifiers of others as something else. A secret that only
-- the holder has does not count: it may be right, where a coordinator has not been told.
CREATE FUNCTION randflake_lease_lacks_from(own randflake_lease_internal, holder text, pool text) RETURNS bigint
LANGUAGE sql IMMUTABLE PARALLEL SAFE
SET search_path = pg_catalog, pg_temp
AS $$
    SELECT nullif(split_part(of_pool, '@', 2), '')::bigint
    FROM unnest(string_to_array(holder, ' '), string_to_array(pool, ' ')) WITH ORDINALITY AS e (of_holder, of_pool, place)
    WHERE of_holder IS DISTINCT FROM of_pool
    ORDER BY place LIMIT 1
$$;
COMMENT ON FUNCTION randflake_lease_lacks_from(randflake_lease_internal, text, text) IS
'coordinator: the Unix second of the first secret of the pool that a holder of these secrets lacks; null for none';
REVOKE ALL ON FUNCTION randflake_lease_lacks_from(randflake_lease_internal, text, text) FROM PUBLIC;

-- Programs know such an error by the field for the name of a constraint. What the holder lacks is in the
-- field for the name of a column, as an answer without an error has it in differs_from. Short of this
-- second, a holder may lease; but with another first secret it may not at all.
CREATE FUNCTION randflake_lease_require_secrets(
    own randflake_lease_internal, holder text, pool text, second bigint, condition text)
RETURNS void
LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    stops_at CONSTANT bigint := @extschema@.randflake_lease_stops_at(own, holder, pool);
    lacks_from CONSTANT bigint := @extschema@.randflake_lease_lacks_from(own, holder, pool);
    entries record;  -- that differ first
    missing boolean; -- the holder's is
BEGIN
    IF second < stops_at OR stops_at IS NULL THEN
        RETURN;
    END IF;
    SELECT of_holder, of_pool INTO STRICT entries
    FROM unnest(string_to_array(holder, ' '), string_to_array(pool, ' ')) WITH ORDINALITY AS e (of_holder, of_pool, place)
    WHERE of_holder IS DISTINCT FROM of_pool
    ORDER BY place LIMIT 1;
    IF stops_at = 0 THEN
        RAISE object_not_in_prerequisite_state USING
            MESSAGE = 'the holder has another secret than the other holders',
            DETAIL = format('Its fingerprint is %s, that of this coordinator''s leases %s.', entries.of_holder, entries.of_pool),
            CONSTRAINT = 'key_fingerprint',
            HINT = 'Configure the same secret everywhere. To change it for all, see randflake_lease_configure.';
    END IF;
    missing := coalesce(lacks_from = stops_at, false);
    RAISE EXCEPTION USING
        ERRCODE = condition,
        MESSAGE = format(CASE WHEN missing THEN 'the holder lacks the secret that is in use from %s on'
                              ELSE 'the holder has a secret from %s on that the coordinator does not know' END,
                         to_timestamp(stops_at)),
        DETAIL = format('The coordinator has %s there, the holder %s.',
                        coalesce(entries.of_pool, 'nothing'), coalesce(entries.of_holder, 'nothing')),
        CONSTRAINT = 'key_fingerprint',
        COLUMN = coalesce(lacks_from::text, ''),
        HINT = CASE WHEN missing
                    THEN 'Add its line to "randflake.secret_file" of the holder and call randflake_reload_secret() there.'
                    ELSE 'If all holders are to have it, add it with randflake_lease_add_secret.' END;
END
$$;
COMMENT ON FUNCTION randflake_lease_require_secrets(randflake_lease_internal, text, text, bigint, text) IS
'coordinator: an error of this condition if the secrets of a holder and of the pool differ by that second';
REVOKE ALL ON FUNCTION randflake_lease_require_secrets(randflake_lease_internal, text, text, bigint, text) FROM PUBLIC;

-- A further column of the answer, in place: a function that is dropped and made again loses its privileges.
UPDATE pg_catalog.pg_proc
SET proallargtypes = pg_catalog.array_append(proallargtypes, 'bigint'::pg_catalog.regtype::oid),
    proargmodes = pg_catalog.array_append(proargmodes, 'o'::"char"),
    proargnames = pg_catalog.array_append(proargnames, 'differs_from')
WHERE oid OPERATOR(pg_catalog.=) '@extschema@.randflake_lease_acquire(text, uuid, integer, integer, text)'::pg_catalog.regprocedure;

CREATE OR REPLACE FUNCTION randflake_lease_acquire(
    holder text,
    incarnation uuid,
    nodes integer,
    duration integer,
    key_fingerprint text,
    OUT lease_id bigint,
    OUT first_node_id integer,
    OUT node_count integer,
    OUT lease_start bigint,
    OUT lease_end bigint,
    OUT differs_from bigint)
LANGUAGE plpgsql VOLATILE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
#variable_conflict use_column
DECLARE
    own CONSTANT @extschema@.randflake_lease_internal := NULL;
    pool @extschema@.randflake_lease_pool;
    pool_nodes int4range;
    static_nodes CONSTANT int4range := @extschema@.randflake_lease_static_nodes(own);
    now bigint;
    secrets text;     -- the pool's
    free_at bigint;   -- the chosen node ids are free from then on
    had bigint;       -- node ids of this role's leases, the first of which ends
    had_until bigint; -- at that second
BEGIN
    IF randflake_lease_acquire.holder IS NULL OR randflake_lease_acquire.incarnation IS NULL
        OR randflake_lease_acquire.nodes IS NULL OR duration IS NULL
        OR randflake_lease_acquire.key_fingerprint IS NULL THEN
        RAISE null_value_not_allowed USING MESSAGE = 'arguments of a lease must not be null';
    END IF;
    IF randflake_lease_acquire.nodes NOT BETWEEN 1 AND 131072 THEN
        RAISE invalid_parameter_value USING
            MESSAGE = format('number of node ids must be from 1 to 131072, not %s', randflake_lease_acquire.nodes);
    END IF;
    IF duration < 1 THEN
        RAISE invalid_parameter_value USING
            MESSAGE = format('duration of a lease must be at least 1 second, not %s', duration);
    END IF;
    IF octet_length(randflake_lease_acquire.holder) > 256 THEN
        RAISE invalid_parameter_value USING
            MESSAGE = format('name of a holder must be at most 256 bytes, not %s', octet_length(randflake_lease_acquire.holder));
    END IF;
    PERFORM @extschema@.randflake_lease_require_fingerprints(own, randflake_lease_acquire.key_fingerprint);

    pool := @extschema@.randflake_lease_lock_pool(own);
    PERFORM @extschema@.randflake_lease_require_open(own, pool);
    secrets := pool.key_fingerprint;
    IF secrets IS NULL THEN
        secrets := randflake_lease_acquire.key_fingerprint;
        UPDATE @extschema@.randflake_lease_pool SET key_fingerprint = secrets;
    END IF;
    PERFORM @extschema@.randflake_lease_require_secrets(
        own, randflake_lease_acquire.key_fingerprint, secrets, 0, 'object_not_in_prerequisite_state');

    now := @extschema@.randflake_lease_clock(own);
    IF now <= @extschema@.randflake_lease_epoch(own) THEN
        RAISE datetime_field_overflow USING
            MESSAGE = 'the coordinator''s clock is before the first second of an identifier';
    ELSIF now >= @extschema@.randflake_lease_horizon(own) THEN
        RAISE datetime_field_overflow USING
            MESSAGE = 'the coordinator''s clock is after the last second of an identifier';
    END IF;
    PERFORM @extschema@.randflake_lease_require_secrets(
        own, randflake_lease_acquire.key_fingerprint, secrets, now, 'object_not_in_prerequisite_state');

    -- The node ids unused for longest, the first of such, and not this server's own. They begin with
    -- the pool or after a known lease or the server's range: any others could begin one node id
    -- earlier and would be unused as long.
    pool_nodes := pool.nodes;
    SELECT candidate.first, coalesce(max(upper(lease.span)), 0)
    INTO first_node_id, free_at
    FROM (SELECT lower(pool_nodes) AS first
          UNION SELECT upper(l.nodes) FROM @extschema@.randflake_lease l
          UNION SELECT upper(static_nodes)) candidate
    LEFT JOIN @extschema@.randflake_lease lease
        ON lease.nodes && int4range(candidate.first, candidate.first + randflake_lease_acquire.nodes)
    WHERE candidate.first BETWEEN lower(pool_nodes)
                              AND upper(pool_nodes) - randflake_lease_acquire.nodes
      AND NOT static_nodes && int4range(candidate.first, candidate.first + randflake_lease_acquire.nodes)
    GROUP BY candidate.first
    ORDER BY 2, 1
    LIMIT 1;
    IF first_node_id IS NULL THEN
        RAISE configuration_limit_exceeded USING
            MESSAGE = format('the pool has fewer than %s node ids', randflake_lease_acquire.nodes),
            DETAIL = format('It has node ids %s to %s%s.', lower(pool_nodes), upper(pool_nodes) - 1,
                            CASE WHEN static_nodes && pool_nodes
                                 THEN format(', without %s to %s, which this server uses itself',
                                             lower(static_nodes), upper(static_nodes) - 1) ELSE '' END),
            HINT = 'Widen it with randflake_lease_configure, or ask for fewer.';
    ELSIF free_at > now THEN
        RAISE configuration_limit_exceeded USING
            MESSAGE = CASE WHEN randflake_lease_acquire.nodes = 1 THEN 'no node id is free'
                           ELSE format('no %s consecutive node ids are free', randflake_lease_acquire.nodes) END,
            DETAIL = format('Node ids become free at %s.', to_timestamp(free_at)),
            COLUMN = free_at::text,
            HINT = 'Widen the pool with randflake_lease_configure, or wait.';
    END IF;

    SELECT coalesce(sum(upper(l.nodes) - lower(l.nodes)), 0), coalesce(min(upper(l.span)), 0)
    INTO STRICT had, had_until
    FROM @extschema@.randflake_lease l
    WHERE l.role = SESSION_USER AND l.span @> now;
    IF had + randflake_lease_acquire.nodes > pool.max_nodes_per_role THEN
        RAISE configuration_limit_exceeded USING
            MESSAGE = format('role "%s" may have at most %s node ids', SESSION_USER, pool.max_nodes_per_role),
            DETAIL = format('It has %s, and asks for %s.', had, randflake_lease_acquire.nodes),
            COLUMN = had_until::text,
            HINT = 'Raise "max_nodes_per_role" with randflake_lease_configure, or wait until leases have ended.';
    END IF;

    node_count := randflake_lease_acquire.nodes;
    IF now < pool.high_water THEN
        RAISE object_not_in_prerequisite_state USING
            MESSAGE = format('no lease may begin before %s', to_timestamp(pool.high_water)),
            DETAIL = 'Leases that this coordinator does not know of may last until then.',
            COLUMN = pool.high_water::text,
            HINT = CASE WHEN pool.high_water <= now + pool.max_duration + 2 * pool.max_clock_skew + 1
                        THEN format('Ask again in %s seconds.', pool.high_water - now)
                        ELSE 'Set the coordinator''s clock if it is wrong. If it is right and was ahead before, lower "high_water" in randflake_lease_pool as documented.' END;
    END IF;
    lease_start := now;
    lease_end := least(now + least(duration, pool.max_duration), @extschema@.randflake_lease_horizon(own),
                       @extschema@.randflake_lease_stops_at(own, randflake_lease_acquire.key_fingerprint, secrets)) - 1;
    INSERT INTO @extschema@.randflake_lease AS granted (holder, incarnation, nodes, span, key_fingerprint)
    VALUES (randflake_lease_acquire.holder, randflake_lease_acquire.incarnation,
            int4range(first_node_id, first_node_id + node_count), int8range(lease_start, lease_end + 1),
            randflake_lease_acquire.key_fingerprint)
    RETURNING granted.lease_id INTO STRICT lease_id;
    differs_from := @extschema@.randflake_lease_lacks_from(own, randflake_lease_acquire.key_fingerprint, secrets);
    PERFORM @extschema@.randflake_lease_forget(own, interval '1 day');
END
$$;
COMMENT ON FUNCTION randflake_lease_acquire(text, uuid, integer, integer, text) IS
'coordinator: leases that many consecutive node ids for at most that many seconds; start and end are Unix seconds, both inclusive; differs_from is the second of the first secret that the holder lacks, null for none';

-- Renews a lease for a holder that names these secrets, or null: those that it named last.
CREATE FUNCTION randflake_lease_extend(
    own randflake_lease_internal,
    lease_id bigint,
    incarnation uuid,
    expected_end bigint,
    duration integer,
    key_fingerprint text)
RETURNS bigint
LANGUAGE plpgsql VOLATILE
SET search_path = pg_catalog, pg_temp
AS $$
#variable_conflict use_column
DECLARE
    pool @extschema@.randflake_lease_pool;
    lease @extschema@.randflake_lease;
    now bigint;
    latest bigint;    -- no lease ends later
    secrets text;     -- the holder's
    lease_end bigint;
BEGIN
    IF duration < 1 THEN
        RAISE invalid_parameter_value USING
            MESSAGE = format('duration of a lease must be at least 1 second, not %s', duration);
    END IF;
    PERFORM @extschema@.randflake_lease_require_fingerprints(own, randflake_lease_extend.key_fingerprint);
    pool := @extschema@.randflake_lease_lock_pool(own);
    PERFORM @extschema@.randflake_lease_require_open(own, pool);
    now := @extschema@.randflake_lease_clock(own);
    latest := least(now + pool.max_duration + pool.max_clock_skew, @extschema@.randflake_lease_horizon(own));
    SELECT * INTO lease FROM @extschema@.randflake_lease l
    WHERE l.lease_id = randflake_lease_extend.lease_id
      AND l.incarnation = randflake_lease_extend.incarnation
      AND l.role = SESSION_USER
      AND l.released_at IS NULL;
    IF NOT FOUND THEN
        RAISE object_not_in_prerequisite_state USING
            MESSAGE = format('lease %s does not exist or is not this holder''s', randflake_lease_extend.lease_id),
            HINT = 'Acquire a new lease.';
    END IF;
    secrets := coalesce(randflake_lease_extend.key_fingerprint, lease.key_fingerprint, split_part(pool.key_fingerprint, ' ', 1));
    PERFORM @extschema@.randflake_lease_require_secrets(
        own, secrets, pool.key_fingerprint, 0, 'object_not_in_prerequisite_state');
    IF NOT lease.nodes <@ pool.nodes THEN
        RAISE object_not_in_prerequisite_state USING
            MESSAGE = format('the node ids of lease %s are no longer in the pool', randflake_lease_extend.lease_id),
            HINT = 'Acquire a new lease.';
    END IF;
    IF lease.nodes && @extschema@.randflake_lease_static_nodes(own) THEN
        RAISE object_not_in_prerequisite_state USING
            MESSAGE = format('the node ids of lease %s are those of the coordinator''s own server', randflake_lease_extend.lease_id),
            HINT = 'Acquire a new lease.';
    END IF;
    -- A holder that knows of an earlier end missed the answer to a renewal. One that knows of a
    -- later end was renewed by a coordinator whose last commits were lost in a failover. Either end
    -- was at most `latest` when it was given, so the clock has stepped back since, or the holder
    -- makes it up.
    IF greatest(expected_end + 1, upper(lease.span)) > latest THEN
        RAISE object_not_in_prerequisite_state USING
            MESSAGE = format('lease %s ends later than this coordinator grants', randflake_lease_extend.lease_id),
            DETAIL = format('It ends at %s; by this clock no lease ends after %s.',
                            to_timestamp(greatest(expected_end + 1, upper(lease.span))), to_timestamp(latest)),
            HINT = 'Acquire a new lease.';
    END IF;
    -- Past its end, the node ids may be somebody else's, and after a failover this coordinator may
    -- not know; the margin covers the clock of the one before.
    IF expected_end < now + pool.max_clock_skew AND (expected_end < now OR expected_end < pool.high_water - 1) THEN
        RAISE object_not_in_prerequisite_state USING
            MESSAGE = format('lease %s has ended', randflake_lease_extend.lease_id),
            DETAIL = format('It ended at %s.', to_timestamp(expected_end + 1)),
            HINT = 'Acquire a new lease.';
    END IF;
    -- Not a refusal: the holder keeps what it has, and may go on when it has the secret.
    PERFORM @extschema@.randflake_lease_require_secrets(
        own, secrets, pool.key_fingerprint, upper(lease.span), 'cannot_connect_now');

    lease_end := least(greatest(expected_end + 1, upper(lease.span), now + least(duration, pool.max_duration)),
                       latest, @extschema@.randflake_lease_stops_at(own, secrets, pool.key_fingerprint)) - 1;
    UPDATE @extschema@.randflake_lease l
    SET span = int8range(lower(l.span), lease_end + 1), renewed_at = clock_timestamp(), key_fingerprint = secrets
    WHERE l.lease_id = randflake_lease_extend.lease_id;
    RETURN lease_end;
EXCEPTION WHEN exclusion_violation THEN
    RAISE object_not_in_prerequisite_state USING
        MESSAGE = format('the node ids of lease %s have another holder by now', randflake_lease_extend.lease_id),
        HINT = 'Acquire a new lease.';
END
$$;
COMMENT ON FUNCTION randflake_lease_extend(randflake_lease_internal, bigint, uuid, bigint, integer, text) IS
'coordinator: extends a lease that has not ended, for its holder alone; gives its new last second';
REVOKE ALL ON FUNCTION randflake_lease_extend(randflake_lease_internal, bigint, uuid, bigint, integer, text) FROM PUBLIC;

CREATE OR REPLACE FUNCTION randflake_lease_renew(
    lease_id bigint,
    incarnation uuid,
    expected_end bigint,
    duration integer,
    OUT lease_end bigint)
LANGUAGE plpgsql VOLATILE STRICT SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    own CONSTANT @extschema@.randflake_lease_internal := NULL;
BEGIN
    lease_end := @extschema@.randflake_lease_extend(own, lease_id, incarnation, expected_end, duration, NULL);
END
$$;

-- Whoever may renew a lease may name its secrets: the privilege is that of the function above. A grant
-- of version 1.0 is enough, also after a dump and a restore, of which an update could not take care:
-- grants that an extension's script makes are not dumped.
CREATE FUNCTION randflake_lease_renew(
    lease_id bigint,
    incarnation uuid,
    expected_end bigint,
    duration integer,
    key_fingerprint text,
    OUT lease_end bigint,
    OUT differs_from bigint)
LANGUAGE plpgsql VOLATILE STRICT SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    own CONSTANT @extschema@.randflake_lease_internal := NULL;
    caller CONSTANT name := coalesce(nullif(current_setting('role'), 'none'), SESSION_USER);
BEGIN
    IF NOT has_function_privilege(caller, '@extschema@.randflake_lease_renew(bigint, uuid, bigint, integer)'::regprocedure, 'EXECUTE') THEN
        RAISE insufficient_privilege USING MESSAGE = 'permission denied for function randflake_lease_renew';
    END IF;
    lease_end := @extschema@.randflake_lease_extend(own, lease_id, incarnation, expected_end, duration, key_fingerprint);
    differs_from := @extschema@.randflake_lease_lacks_from(
        own, key_fingerprint, (SELECT p.key_fingerprint FROM @extschema@.randflake_lease_pool AS p));
END
$$;
COMMENT ON FUNCTION randflake_lease_renew(bigint, uuid, bigint, integer, text) IS
'coordinator: the same for a holder that names its secrets: fingerprints, oldest first, from the second on with "@" and the Unix second from which on it is in use; for roles that may call the function without them. Also gives the second of the first secret that the holder lacks, null for none';

CREATE OR REPLACE FUNCTION randflake_lease_configure(
    first_node_id integer DEFAULT NULL,
    node_count integer DEFAULT NULL,
    max_duration integer DEFAULT NULL,
    max_clock_skew integer DEFAULT NULL,
    closed boolean DEFAULT NULL,
    never_leased boolean DEFAULT false,
    forget_key boolean DEFAULT false,
    max_nodes_per_role integer DEFAULT NULL,
    key_fingerprint text DEFAULT NULL)
RETURNS timestamptz
LANGUAGE plpgsql VOLATILE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
#variable_conflict use_column
DECLARE
    own CONSTANT @extschema@.randflake_lease_internal := NULL;
    pool @extschema@.randflake_lease_pool := @extschema@.randflake_lease_lock_pool(own);
    now CONSTANT bigint := @extschema@.randflake_lease_clock(own);
    first CONSTANT integer := coalesce(first_node_id, lower(pool.nodes));
    count CONSTANT integer := coalesce(node_count, upper(pool.nodes) - first);
    duration CONSTANT integer := coalesce(randflake_lease_configure.max_duration, pool.max_duration);
    skew CONSTANT integer := coalesce(randflake_lease_configure.max_clock_skew, pool.max_clock_skew);
    most CONSTANT integer := coalesce(randflake_lease_configure.max_nodes_per_role, pool.max_nodes_per_role);
    shut CONSTANT boolean := coalesce(randflake_lease_configure.closed, pool.closed);
    mark bigint := pool.high_water;
    free_at bigint;
BEGIN
    IF first NOT BETWEEN 0 AND 131071 OR count NOT BETWEEN 1 AND 131072 - first THEN
        RAISE invalid_parameter_value USING
            MESSAGE = format('node ids %s to %s are out of range', first, first::bigint + count - 1),
            DETAIL = 'Node ids are from 0 to 131071.';
    END IF;
    IF duration NOT BETWEEN 1 AND 86400 THEN
        RAISE invalid_parameter_value USING MESSAGE = 'longest lease must be from 1 to 86400 seconds';
    END IF;
    IF skew NOT BETWEEN 0 AND 3600 THEN
        RAISE invalid_parameter_value USING MESSAGE = 'clock skew must be from 0 to 3600 seconds';
    END IF;
    IF most NOT BETWEEN 1 AND 131072 THEN
        RAISE invalid_parameter_value USING MESSAGE = 'node ids per role must be from 1 to 131072';
    END IF;
    PERFORM @extschema@.randflake_lease_require_fingerprints(own, randflake_lease_configure.key_fingerprint);
    IF forget_key AND randflake_lease_configure.key_fingerprint IS NOT NULL THEN
        RAISE invalid_parameter_value USING
            MESSAGE = 'a key fingerprint cannot be both set and forgotten';
    END IF;
    -- Also those that were purged since: the mark that they left must stay.
    IF never_leased AND (SELECT is_called FROM @extschema@.randflake_lease_lease_id_seq) THEN
        RAISE object_not_in_prerequisite_state USING
            MESSAGE = 'this coordinator has leased node ids';
    END IF;

    -- A longer lease or a greater difference of clocks than was known at a takeover prolongs what is
    -- left of its hold-off.
    IF mark > now THEN
        mark := mark + greatest(duration - pool.max_duration, 0) + 2 * greatest(skew - pool.max_clock_skew, 0);
    END IF;
    -- Servers may have used node ids by their configuration until the extension was made.
    IF never_leased THEN
        SELECT least(mark, least(last_value >> 31, now) + skew + 1) INTO STRICT mark
        FROM @extschema@.randflake_lease_takeover;
    END IF;
    -- The same holds for node ids that come into the pool now.
    IF NOT int4range(first, first + count) <@ pool.nodes THEN
        mark := greatest(mark, now + skew + 1);
    END IF;
    -- While the pool was closed, another coordinator may have leased.
    IF pool.closed AND NOT shut THEN
        mark := greatest(mark, now + duration + 2 * skew + 1);
    END IF;
    UPDATE @extschema@.randflake_lease_pool SET
        high_water = mark,
        nodes = int4range(first, first + count),
        max_duration = duration,
        max_clock_skew = skew,
        closed = shut,
        max_nodes_per_role = most,
        key_fingerprint = CASE WHEN NOT forget_key
                               THEN coalesce(randflake_lease_configure.key_fingerprint, pool.key_fingerprint) END;

    -- Of what is not leased any more, from when nobody uses it.
    IF shut OR NOT int4range(0, 131072) <@ int4range(first, first + count) THEN
        SELECT greatest(max(upper(span)), CASE WHEN NOT never_leased THEN pool.high_water END) INTO free_at
        FROM @extschema@.randflake_lease
        WHERE shut OR NOT nodes <@ int4range(first, first + count);
    END IF;
    RETURN CASE WHEN free_at > now THEN to_timestamp(free_at) END;
END
$$;
COMMENT ON FUNCTION randflake_lease_configure(integer, integer, integer, integer, boolean, boolean, boolean, integer, text) IS
'coordinator: sets which node ids it leases and for how long; null keeps a value; closed stops grants and renewals; never_leased says that nobody leased under this secret before; forget_key accepts new secrets from the next holder, key_fingerprint those alone; max_nodes_per_role bounds what one role leases. Gives the time at which the node ids that are leased no more become free, null if they are';

-- The first Unix second that no lease may have reached, known or not, and whoever granted it; a new
-- secret begins no earlier, and one that is withdrawn was to begin no earlier.
CREATE FUNCTION randflake_lease_untouched(own randflake_lease_internal, pool randflake_lease_pool) RETURNS bigint
LANGUAGE sql VOLATILE
SET search_path = pg_catalog, pg_temp
AS $$
    SELECT greatest(max(upper(span)), pool.high_water,
                    @extschema@.randflake_lease_clock(own) + pool.max_duration + 2 * pool.max_clock_skew + 1)
    FROM @extschema@.randflake_lease
$$;
COMMENT ON FUNCTION randflake_lease_untouched(randflake_lease_internal, randflake_lease_pool) IS
'coordinator: the first Unix second that no lease may have reached';
REVOKE ALL ON FUNCTION randflake_lease_untouched(randflake_lease_internal, randflake_lease_pool) FROM PUBLIC;

CREATE FUNCTION randflake_lease_add_secret(fingerprint text, valid_from timestamptz) RETURNS void
LANGUAGE plpgsql VOLATILE STRICT SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    own CONSTANT @extschema@.randflake_lease_internal := NULL;
    pool @extschema@.randflake_lease_pool;
    second bigint;
    secrets text[];
    same text;
    earliest bigint;
BEGIN
    IF fingerprint !~ '^[0-9a-f]{16}$' THEN
        RAISE invalid_parameter_value USING MESSAGE = 'key fingerprint must be 16 lower-case hexadecimal digits';
    END IF;
    IF NOT isfinite(valid_from) OR extract(epoch FROM valid_from) <> floor(extract(epoch FROM valid_from)) THEN
        RAISE invalid_parameter_value USING MESSAGE = 'a secret must begin on a full second';
    END IF;
    second := extract(epoch FROM valid_from)::bigint;
    IF second <= @extschema@.randflake_lease_epoch(own) OR second >= @extschema@.randflake_lease_horizon(own) THEN
        RAISE invalid_parameter_value USING MESSAGE = 'a secret must begin in a second that an identifier can hold';
    END IF;
    pool := @extschema@.randflake_lease_lock_pool(own);
    secrets := string_to_array(pool.key_fingerprint, ' ');
    IF secrets IS NULL THEN
        RAISE object_not_in_prerequisite_state USING
            MESSAGE = 'the coordinator knows no secret yet',
            HINT = 'Set the first one with randflake_lease_configure, or let a holder name it.';
    END IF;
    SELECT entry INTO same FROM unnest(secrets) AS entry WHERE split_part(entry, '@', 1) = fingerprint;
    IF same = format('%s@%s', fingerprint, second) THEN
        RETURN;
    ELSIF same IS NOT NULL THEN
        RAISE object_not_in_prerequisite_state USING
            MESSAGE = 'the coordinator has this secret with another time',
            DETAIL = format('Its secrets are: %s', pool.key_fingerprint),
            HINT = 'Withdraw the last one with randflake_lease_remove_secret.';
    END IF;
    IF cardinality(secrets) >= 16 THEN
        RAISE object_not_in_prerequisite_state USING MESSAGE = 'there are 16 secrets already';
    END IF;
    IF second <= nullif(split_part(secrets[cardinality(secrets)], '@', 2), '')::bigint THEN
        RAISE object_not_in_prerequisite_state USING
            MESSAGE = 'a secret must begin after the one before',
            DETAIL = format('The last one begins at %s.', to_timestamp(split_part(secrets[cardinality(secrets)], '@', 2)::bigint));
    END IF;
    earliest := @extschema@.randflake_lease_untouched(own, pool);
    IF second < earliest THEN
        RAISE object_not_in_prerequisite_state USING
            MESSAGE = 'the secret begins too early',
            DETAIL = format('Leases may reach beyond its time; the earliest possible time is %s.', to_timestamp(earliest)),
            HINT = 'Let it begin later, on every server. If its time has come and no lease was granted beyond it, see randflake_lease_configure.';
    END IF;
    UPDATE @extschema@.randflake_lease_pool
    SET key_fingerprint = format('%s %s@%s', pool.key_fingerprint, fingerprint, second);
END
$$;
COMMENT ON FUNCTION randflake_lease_add_secret(text, timestamptz) IS
'coordinator: a further secret, by its fingerprint in randflake_secrets, that every holder must have from then on; who does not name it gets no lease beyond that time';
REVOKE ALL ON FUNCTION randflake_lease_add_secret(text, timestamptz) FROM PUBLIC;

CREATE FUNCTION randflake_lease_remove_secret(fingerprint text) RETURNS void
LANGUAGE plpgsql VOLATILE STRICT SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    own CONSTANT @extschema@.randflake_lease_internal := NULL;
    pool CONSTANT @extschema@.randflake_lease_pool := @extschema@.randflake_lease_lock_pool(own);
    secrets CONSTANT text[] := string_to_array(pool.key_fingerprint, ' ');
    last CONSTANT text := secrets[cardinality(secrets)];
    earliest bigint;
BEGIN
    IF split_part(last, '@', 1) IS DISTINCT FROM fingerprint OR cardinality(secrets) = 1 THEN
        RAISE object_not_in_prerequisite_state USING
            MESSAGE = 'only the last of several secrets can be withdrawn',
            DETAIL = format('The coordinator''s secrets are: %s', coalesce(pool.key_fingerprint, 'none'));
    END IF;
    earliest := @extschema@.randflake_lease_untouched(own, pool);
    IF split_part(last, '@', 2)::bigint < earliest THEN
        RAISE object_not_in_prerequisite_state USING
            MESSAGE = 'it is too late to withdraw the secret',
            DETAIL = format('It begins at %s, and leases may reach to %s.',
                            to_timestamp(split_part(last, '@', 2)::bigint), to_timestamp(earliest));
    END IF;
    UPDATE @extschema@.randflake_lease_pool
    SET key_fingerprint = array_to_string(secrets[:cardinality(secrets) - 1], ' ');
END
$$;
COMMENT ON FUNCTION randflake_lease_remove_secret(text) IS
'coordinator: withdraws the last secret that was added, before any lease reaches its time';
REVOKE ALL ON FUNCTION randflake_lease_remove_secret(text) FROM PUBLIC;

COMMENT ON COLUMN randflake_pool.key_fingerprint IS
'fingerprints of the secrets that every holder must have, oldest first, from the second on with "@" and the Unix second from which on it is in use; null before the first is set or leased under';

CREATE OR REPLACE VIEW randflake_leases AS
SELECT lease_id, role, holder, first_node_id, after - first_node_id AS node_count, starts_at, ends_at,
       CASE WHEN released_at IS NOT NULL THEN 'released'
            WHEN ends_at <= pg_catalog.clock_timestamp() THEN 'ended'
            WHEN starts_at > pg_catalog.clock_timestamp() THEN 'granted'
            ELSE 'active' END AS state,
       (SELECT lease.nodes OPERATOR(pg_catalog.<@) pool.nodes AND NOT pool.closed FROM randflake_lease_pool AS pool) AS in_pool,
       granted_at, renewed_at, released_at,
       pg_catalog.split_part(pg_catalog.split_part(secrets, ' ', -1), '@', 1) AS key_fingerprint,
       CASE stop WHEN 0 THEN '-infinity' ELSE pg_catalog.to_timestamp(stop) END AS stops_at
FROM randflake_lease AS lease,
     LATERAL (SELECT coalesce(lease.key_fingerprint, pg_catalog.split_part(pool, ' ', 1)) AS secrets, pool
              FROM (SELECT (SELECT key_fingerprint FROM randflake_lease_pool) AS pool) AS one) AS named,
     LATERAL (SELECT randflake_lease_stops_at(NULL::randflake_lease_internal, secrets, pool) AS stop) AS stops,
     LATERAL (SELECT pg_catalog.lower(nodes) AS first_node_id, pg_catalog.upper(nodes) AS after,
                     pg_catalog.to_timestamp(pg_catalog.lower(span)) AS starts_at,
                     pg_catalog.to_timestamp(pg_catalog.upper(span)) AS ends_at) AS bounds;
COMMENT ON COLUMN randflake_leases.key_fingerprint IS
'fingerprint of the last secret that the holder has, one to come included; it covers those before';
COMMENT ON COLUMN randflake_leases.stops_at IS
'when the holder gets no lease any more, because it lacks a secret of the pool, or has one that the pool lacks; null when they agree, -infinity when the first one differs';
