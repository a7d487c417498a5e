\echo Use "ALTER EXTENSION randflake UPDATE TO '1.1'" to load this file. \quit

COMMENT ON FUNCTION randflake_generate() IS
'a new identifier, unique under the secrets of this server and unpredictable without them';
COMMENT ON FUNCTION randflake_decode(bigint) IS
'the second, node id and sequence number inside an identifier made under one of this server''s secrets; nulls if none made it';
COMMENT ON FUNCTION randflake_generated_at(bigint) IS
'the second in which an identifier was made under one of this server''s secrets; null if none made it';
COMMENT ON FUNCTION randflake_encode(timestamptz, integer, integer) IS
'the identifier of a second (fractions dropped), node id and sequence number under the secret of that second: the inverse of randflake_decode, for tests and imports; an error for a number that is skipped';
COMMENT ON COLUMN randflake_status.key_fingerprint IS
'fingerprint of the secret in use: differs between secrets and reveals none; randflake_secrets has all';

CREATE FUNCTION randflake_secrets(
    OUT generation integer,
    OUT fingerprint text,
    OUT valid_from timestamptz,
    OUT state text)
RETURNS SETOF record
AS 'MODULE_PATHNAME', 'randflake_secrets'
LANGUAGE C VOLATILE STRICT PARALLEL SAFE ROWS 2;
COMMENT ON FUNCTION randflake_secrets() IS 'the rows of the view randflake_secrets';
REVOKE ALL ON FUNCTION randflake_secrets() FROM PUBLIC;
GRANT EXECUTE ON FUNCTION randflake_secrets() TO pg_monitor;

CREATE VIEW randflake_secrets AS SELECT * FROM randflake_secrets();
COMMENT ON VIEW randflake_secrets IS 'this server''s secrets, oldest first, without the secrets themselves';
COMMENT ON COLUMN randflake_secrets.generation IS 'number of the secret, 1 for the first';
COMMENT ON COLUMN randflake_secrets.fingerprint IS
'tells one secret from another; from the second on, servers with the same one agree about all secrets and times up to it';
COMMENT ON COLUMN randflake_secrets.valid_from IS 'identifiers of this time and later are made under it; null for the first secret';
COMMENT ON COLUMN randflake_secrets.state IS 'past, current or future, by this server''s clock';
REVOKE ALL ON randflake_secrets FROM PUBLIC;
GRANT SELECT ON randflake_secrets TO pg_monitor;

CREATE FUNCTION randflake_reload_secret() RETURNS integer
AS 'MODULE_PATHNAME', 'randflake_reload_secret'
LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE;
COMMENT ON FUNCTION randflake_reload_secret() IS
'reads randflake.secret_file again for further secrets and returns how many there are now';
REVOKE ALL ON FUNCTION randflake_reload_secret() FROM PUBLIC;
