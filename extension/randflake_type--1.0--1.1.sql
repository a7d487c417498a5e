\echo Use "ALTER EXTENSION randflake_type UPDATE TO '1.1'" to load this file. \quit

COMMENT ON FUNCTION randflake_next() IS
'a new identifier, unique under the secrets of this server, that sorts after those of earlier seconds';
COMMENT ON TABLE randflake_key IS
'the secrets that values of type randflake belong to; the type can be used only where they are the first ones of the server';
COMMENT ON COLUMN randflake_key.fingerprint IS 'fingerprint of a secret, as in randflake_secrets; it may come several times';
COMMENT ON FUNCTION randflake_key_matches(text) IS
'true, or an error if this database or the data belongs to another secret than this server''s';
COMMENT ON TABLE randflake_key_check IS
'a second copy of the fingerprints: makes a restore under another secret end with an error';
COMMENT ON COLUMN randflake_key_check.fingerprint IS 'fingerprint of a secret, as in randflake_secrets';

CREATE FUNCTION randflake_key_fingerprints(randflake_key_internal) RETURNS text[]
AS 'MODULE_PATHNAME', 'randflake_key_fingerprints'
LANGUAGE C STABLE PARALLEL SAFE;
COMMENT ON FUNCTION randflake_key_fingerprints(randflake_key_internal) IS 'fingerprints of this server''s secrets that are in use, oldest first';
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
                            other, array_to_string(mine, ', '));
    END IF;
    INSERT INTO @extschema@.randflake_key SELECT unnest(mine);
    DELETE FROM @extschema@.randflake_key_check WHERE fingerprint <> ALL (mine);
    INSERT INTO @extschema@.randflake_key_check SELECT unnest(mine);
    RETURN mine[1];
END $$;
COMMENT ON FUNCTION randflake_bind_secret() IS
'binds the type randflake of this database to the server''s secrets and returns the fingerprint of the first; CREATE EXTENSION does this if the server has a secret, otherwise the first use by a role that may execute this function';
DROP FUNCTION randflake_key_fingerprint(randflake_key_internal);
