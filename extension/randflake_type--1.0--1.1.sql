\echo Use "ALTER EXTENSION randflake_type UPDATE TO '1.1'" to load this file. \quit

COMMENT ON FUNCTION randflake_next() IS
'a new identifier, unique under the secrets of this server, that sorts after those of earlier seconds';
COMMENT ON TABLE randflake_key IS
'the secrets that values of type randflake may have; values can be read up to the time from which on they are not this server''s';
COMMENT ON COLUMN randflake_key.fingerprint IS
'fingerprint of a secret, as in randflake_secrets, from the second on with "@" and the Unix second from which on it is in use; it may come several times';
COMMENT ON FUNCTION randflake_key_matches(text) IS
'true, or an error if this database or the data belongs to another secret than this server''s';
COMMENT ON TABLE randflake_key_check IS
'a second copy of the fingerprints: makes a restore under another secret end with an error';
COMMENT ON COLUMN randflake_key_check.fingerprint IS 'as in randflake_key';

CREATE FUNCTION randflake_key_fingerprints(randflake_key_internal) RETURNS text[]
AS 'MODULE_PATHNAME', 'randflake_key_fingerprints'
LANGUAGE C STABLE PARALLEL SAFE;
COMMENT ON FUNCTION randflake_key_fingerprints(randflake_key_internal) IS 'entries for randflake_key of this server''s secrets that are in use, oldest first';
REVOKE ALL ON FUNCTION randflake_key_fingerprints(randflake_key_internal) FROM PUBLIC;

CREATE OR REPLACE FUNCTION randflake_bind_secret() RETURNS text
LANGUAGE plpgsql VOLATILE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    mine CONSTANT text[] := @extschema@.randflake_key_fingerprints(NULL::@extschema@.randflake_key_internal);
    other text;
BEGIN
    -- Without the lock, a row that another transaction inserts meanwhile would not be seen here.
    LOCK TABLE @extschema@.randflake_key, @extschema@.randflake_key_check IN SHARE ROW EXCLUSIVE MODE;
    SELECT min(fingerprint) INTO other FROM @extschema@.randflake_key WHERE fingerprint <> ALL (mine);
    IF other IS NOT NULL THEN
        RAISE EXCEPTION USING
            ERRCODE = 'object_not_in_prerequisite_state',
            MESSAGE = 'the type randflake is bound to another secret in this database',
            DETAIL = format('The database has key fingerprint %s, this server has %s.',
                            split_part(other, '@', 1), regexp_replace(array_to_string(mine, ', '), '@\d+', '', 'g'));
    END IF;
    INSERT INTO @extschema@.randflake_key SELECT unnest(mine);
    DELETE FROM @extschema@.randflake_key_check WHERE fingerprint <> ALL (mine);
    INSERT INTO @extschema@.randflake_key_check SELECT unnest(mine);
    RETURN mine[1];
END $$;
COMMENT ON FUNCTION randflake_bind_secret() IS
'binds the type randflake of this database to the server''s secrets and returns the fingerprint of the first; CREATE EXTENSION binds it to the first one if the server has a secret, otherwise the first value that a role makes or reads in that may execute this function; further ones follow with their first value';
DROP FUNCTION randflake_key_fingerprint(randflake_key_internal);
COMMENT ON FUNCTION randflake_key_guard() IS
'skips a fingerprint that the table has already; keeps a different one, and takes one of this server''s to randflake_key_check; makes all sessions check again';
COMMENT ON TRIGGER randflake_key_guard ON randflake_key IS
'skips a fingerprint that the table has already; keeps a different one, and takes one of this server''s to randflake_key_check; makes all sessions check again';

CREATE FUNCTION randflake_equalimage(oid) RETURNS boolean
AS 'MODULE_PATHNAME', 'randflake_equalimage'
LANGUAGE C STABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION randflake_equalimage(oid) IS
'equal values are the same bytes; refuses to build an index over values that belong to another secret';
REVOKE ALL ON FUNCTION randflake_equalimage(oid) FROM PUBLIC;
ALTER OPERATOR FAMILY randflake_ops USING btree DROP FUNCTION 4 (randflake, randflake);
ALTER OPERATOR FAMILY randflake_ops USING btree ADD FUNCTION 4 (randflake, randflake) randflake_equalimage(oid);
