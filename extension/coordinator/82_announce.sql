CREATE FUNCTION randflake_lease_announce(
    holder text, server uuid, origin text, first_node_id integer, node_count integer,
    fingerprint text, starts boolean, OUT servers bigint, OUT leases bigint)
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
DECLARE
    announced int4range;
BEGIN
    IF num_nulls(holder, server, origin, first_node_id, node_count, fingerprint, starts) > 0 THEN
        RAISE null_value_not_allowed USING
            MESSAGE = 'arguments of an announcement must not be null';
    ELSIF first_node_id < 0 OR node_count < 1 OR first_node_id > 131072 - node_count THEN
        RAISE invalid_parameter_value USING
            MESSAGE = format('node ids from %s on, %s of them, are not within 0 to 131071',
                             first_node_id, node_count);
    END IF;
    announced := int4range(first_node_id, first_node_id + node_count);
    -- Deletes only rows of the calling role, and unlocked rows of roles that are gone, so the call
    -- never waits for another role's lock.
    DELETE FROM @extschema@.randflake_lease_announcement a
    WHERE a.ctid = ANY (ARRAY(SELECT gone.ctid
                              FROM @extschema@.randflake_lease_announcement gone
                              WHERE NOT EXISTS (SELECT FROM pg_roles WHERE rolname = gone.role)
                              FOR UPDATE SKIP LOCKED));
    DELETE FROM @extschema@.randflake_lease_announcement a
    WHERE a.role = SESSION_USER
      AND (a.announced_at < clock_timestamp() - interval '1 hour'
           OR randflake_lease_announce.starts AND a.origin = randflake_lease_announce.origin);
    IF (SELECT count(*) FROM @extschema@.randflake_lease_announcement a
        WHERE a.role = SESSION_USER) >= 10000 THEN
        RAISE configuration_limit_exceeded USING
            MESSAGE = 'role has announced 10000 servers within an hour',
            HINT = 'Let each server announce itself by a role of its own.';
    END IF;
    INSERT INTO @extschema@.randflake_lease_announcement AS a
        (server, holder, origin, nodes, fingerprint, announced_at)
    VALUES (randflake_lease_announce.server, randflake_lease_announce.holder,
            randflake_lease_announce.origin, announced,
            randflake_lease_announce.fingerprint, clock_timestamp())
    ON CONFLICT ON CONSTRAINT randflake_lease_announcement_pkey DO UPDATE
    SET holder = excluded.holder, nodes = excluded.nodes, announced_at = excluded.announced_at;
    SELECT count(*) INTO servers
    FROM @extschema@.randflake_lease_announcement a
    WHERE (a.role, a.server) IS DISTINCT FROM (SESSION_USER, randflake_lease_announce.server)
      AND a.fingerprint = randflake_lease_announce.fingerprint AND a.nodes && announced
      AND a.announced_at > clock_timestamp() - interval '90 s';
    SELECT count(*) INTO leases
    FROM @extschema@.randflake_lease l
    WHERE l.nodes && announced AND upper(l.span) > extract(epoch FROM clock_timestamp())
      AND split_part(l.secrets, ' ', 1) = randflake_lease_announce.fingerprint;
END $$;
COMMENT ON FUNCTION randflake_lease_announce(text, uuid, text, integer, integer, text, boolean) IS
'coordinator: announces a server with static node ids, and returns how many other servers and '
'leases have some of them';
