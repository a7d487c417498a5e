-- Raises an error while the pool is closed. The error does not count as a refusal, so the holder
-- does not ask for another lease. It keeps its lease, and asks this or another coordinator again.
CREATE FUNCTION randflake_lease_require_open(own randflake_lease_internal,
                                             pool randflake_lease_pool) RETURNS void
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF pool.closed THEN
        RAISE cannot_connect_now USING
            MESSAGE = 'the pool of node ids is closed',
            DETAIL = 'Leases end when they would have been renewed; none is granted.',
            HINT = 'Set "randflake.coordinator" to the coordinator that has taken the place of '
                   'this one, or open the pool with randflake_lease_configure(closed => false).';
    END IF;
END $$;

CREATE FUNCTION randflake_lease_require_fingerprints(own randflake_lease_internal, secrets text)
RETURNS void LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF secrets !~ '^[0-9a-f]{16}( [0-9a-f]{16}@[1-9][0-9]{9}){0,15}$' THEN
        RAISE invalid_parameter_value USING
            MESSAGE = 'key fingerprint must be 16 lower-case hexadecimal digits',
            DETAIL = 'Those of up to 15 further secrets may follow, each after a space, and with '
                     '"@" and the Unix second from which on the secret is in use.';
    END IF;
    IF length(secrets) = 16 THEN
        RETURN; -- one secret, without a time
    END IF;
    IF EXISTS (
        SELECT FROM (
            SELECT second, lag(second, 1, @extschema@.randflake_lease_epoch(own))
                           OVER (ORDER BY place) AS former
            FROM unnest(string_to_array(secrets, ' ')) WITH ORDINALITY AS e (entry, place),
                 LATERAL (SELECT nullif(split_part(entry, '@', 2), '')::bigint AS second)
                     AS of_entry
            WHERE place > 1) AS seconds
        WHERE second <= former OR second >= @extschema@.randflake_lease_limit(own)) THEN
        RAISE invalid_parameter_value USING
            MESSAGE = 'times of secrets must increase, in seconds that an identifier can hold',
            DETAIL = format('The fingerprints and times are: %s', secrets);
    END IF;
END $$;

-- Compares the secrets of a holder with those of the pool. Returns the Unix second of the first
-- entry that differs. From then on, two numbers could get the same identifier. Returns 0 if the
-- first secrets differ, or null if all entries are equal. Used by the view randflake_leases.
CREATE FUNCTION randflake_lease_stops_at(own randflake_lease_internal, holder text, pool text)
RETURNS bigint LANGUAGE sql IMMUTABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
    SELECT min(coalesce(nullif(split_part(entry, '@', 2), ''), '0')::bigint)
    FROM unnest(string_to_array(holder, ' '), string_to_array(pool, ' '))
             AS both_of (of_holder, of_pool),
         LATERAL (VALUES (of_holder), (of_pool)) AS either (entry)
    WHERE of_holder IS DISTINCT FROM of_pool AND entry IS NOT NULL AND pool IS NOT NULL
$$;

-- Finds the pool's first secret that the holder lacks, and returns its first Unix second. From this
-- second on, the holder may misread identifiers of other servers. Returns null if the holder has
-- all the pool's secrets, or if holder and pool begin with different secrets. Ignores secrets that
-- the pool lacks.
CREATE FUNCTION randflake_lease_lacks_from(own randflake_lease_internal, holder text, pool text)
RETURNS bigint LANGUAGE sql IMMUTABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
    SELECT nullif(split_part(of_pool, '@', 2), '')::bigint
    FROM unnest(string_to_array(holder, ' '), string_to_array(pool, ' '))
             WITH ORDINALITY AS e (of_holder, of_pool, place)
    WHERE of_holder IS DISTINCT FROM of_pool
    ORDER BY place LIMIT 1
$$;

-- Raises an error if the holder's and the pool's secrets for the time before a lease's end differ.
-- The error's constraint field identifies this error. If the holder lacks a secret, the column
-- field contains the second at which its first missing secret begins. A lease that ends before the
-- time of the first entry that differs raises no error.
CREATE FUNCTION randflake_lease_require_secrets(
    own randflake_lease_internal, holder text, pool text, second bigint, condition text)
RETURNS void LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    stops_at bigint;
    lacks_from bigint;
    entries record;  -- the first different ones
    missing boolean; -- the holder's entry is missing
BEGIN
    IF holder = pool THEN
        RETURN; -- the usual case
    END IF;
    stops_at := @extschema@.randflake_lease_stops_at(own, holder, pool);
    lacks_from := @extschema@.randflake_lease_lacks_from(own, holder, pool);
    IF second < stops_at OR stops_at IS NULL THEN
        RETURN;
    END IF;
    SELECT of_holder, of_pool INTO STRICT entries
    FROM unnest(string_to_array(holder, ' '), string_to_array(pool, ' '))
             WITH ORDINALITY AS e (of_holder, of_pool, place)
    WHERE of_holder IS DISTINCT FROM of_pool
    ORDER BY place LIMIT 1;
    IF stops_at = 0 THEN
        RAISE object_not_in_prerequisite_state USING
            MESSAGE = 'the holder has another secret than the other holders',
            DETAIL = format('Its fingerprint is %s, that of this coordinator''s leases %s.',
                            entries.of_holder, entries.of_pool),
            CONSTRAINT = 'secrets',
            HINT = 'Configure the same secret everywhere. To change it for all, see '
                   'randflake_lease_configure.';
    END IF;
    missing := coalesce(lacks_from = stops_at, false);
    RAISE EXCEPTION USING
        ERRCODE = condition,
        MESSAGE = format(CASE
                         WHEN missing THEN 'the holder lacks the secret that is in use from %s on'
                         ELSE 'the holder has a secret from %s on that the coordinator does '
                              'not know' END,
                         to_timestamp(stops_at)),
        DETAIL = format('The coordinator has %s there, the holder %s.',
                        coalesce(entries.of_pool, 'nothing'),
                        coalesce(entries.of_holder, 'nothing')),
        CONSTRAINT = 'secrets',
        COLUMN = coalesce(lacks_from::text, ''),
        HINT = CASE WHEN missing
                    THEN 'Add its line to "randflake.secret_file" of the holder and call '
                         'randflake_reload_secret() there.'
                    ELSE 'If all holders are to have it, add it with '
                         'randflake_lease_add_secret.' END;
END $$;
