\set ECHO none
-- What an ordinary role may do; for function calls see test/t/340_roles.pl.
\pset format unaligned
\pset footer off
CREATE ROLE regress_randflake_user;
GRANT CREATE ON SCHEMA public TO regress_randflake_user;
CREATE TABLE made (id bigint PRIMARY KEY DEFAULT randflake_generate());
GRANT INSERT, SELECT ON made TO regress_randflake_user;

SET ROLE regress_randflake_user;

\echo '-- Make identifiers and values, and read which secret they belong to'
INSERT INTO made DEFAULT VALUES;
CREATE TABLE ordered (id randflake PRIMARY KEY DEFAULT randflake_next());
INSERT INTO ordered DEFAULT VALUES;
INSERT INTO ordered SELECT randflake_generate();
SELECT count(*) FROM ordered WHERE id::text::randflake = id::bigint::randflake;
SELECT count(*) FROM ordered WHERE id >= randflake_lower('2026-01-01') AND id >= (SELECT min(id) FROM ordered);
SELECT count(*) FROM randflake_key;

\echo '-- Not change the secret that the type is bound to'
SELECT randflake_bind_secret();
SELECT randflake_key_fingerprints(NULL);
INSERT INTO randflake_key VALUES ('0123456789abcdef');
UPDATE randflake_key SET fingerprint = '0123456789abcdef';
DELETE FROM randflake_key;
TRUNCATE randflake_key;
INSERT INTO randflake_key_check VALUES ('0123456789abcdef');
DELETE FROM randflake_key_check;
CREATE TRIGGER mine BEFORE INSERT ON randflake_key FOR EACH ROW EXECUTE FUNCTION randflake_key_guard();

\echo '-- Nor read or change internal objects; the wording differs between versions'
\set VERBOSITY sqlstate
SHOW randflake.secret;
SELECT current_setting('randflake.secret_file');
SET randflake.secret = 'x';
SET randflake.secret_file = 'x';
SET randflake.node_id = 1;
SET randflake.node_count = 2;
SET randflake.vector_path = 'plain';
SET randflake.max_clock_skew = 0;
SELECT count(*) FROM pg_settings WHERE name LIKE 'randflake.secret%';

\echo '-- A session may set its own wait, within the range'
SET randflake.max_wait = '10s';
SHOW randflake.max_wait;
SET randflake.max_wait = -1;
SET randflake.no_such_setting = 1;
\set VERBOSITY default

RESET ROLE;
DROP TABLE made, ordered;
REVOKE CREATE ON SCHEMA public FROM regress_randflake_user;
DROP ROLE regress_randflake_user;
