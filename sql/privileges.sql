-- What an ordinary role may do.
\pset format unaligned
\pset footer off
CREATE ROLE regress_randflake_user;
GRANT CREATE ON SCHEMA public TO regress_randflake_user;
CREATE TABLE made (id bigint PRIMARY KEY DEFAULT randflake_generate());
GRANT INSERT, SELECT ON made TO regress_randflake_user;

SET ROLE regress_randflake_user;

-- Make identifiers, and compute with them
SELECT randflake_generate() IS NOT NULL AS generated;
SELECT count(*) FROM randflake_generate(3);
SELECT randflake_generate_text() IS NOT NULL AS generated;
INSERT INTO made DEFAULT VALUES;
SELECT count(*) FROM made WHERE randflake_from_text(randflake_to_text(id)) = id;
SELECT count(*) FROM made WHERE randflake_shard(id, 1) = 0;
SELECT count(*) FROM randflake_shard_ranges(2);

CREATE TABLE ordered (id randflake PRIMARY KEY DEFAULT randflake_next());
INSERT INTO ordered DEFAULT VALUES;
INSERT INTO ordered SELECT randflake_generate();
SELECT count(*) FROM ordered WHERE id::text::randflake = id::bigint::randflake;
SELECT count(*) FROM ordered WHERE id >= randflake_lower('2026-01-01') AND id >= (SELECT min(id) FROM ordered);
SELECT count(*) FROM randflake_key;

-- Not look into them
SELECT randflake_decode(1);
SELECT * FROM randflake_decode(1);
SELECT randflake_generated_at(1);
\echo :LAST_ERROR_SQLSTATE
SELECT randflake_encode('2030-01-01', 1, 1);
SELECT randflake_timestamp(id) FROM ordered;
SELECT randflake_node_id(id) FROM ordered;

-- Nor touch the secret that the type is bound to
SELECT randflake_bind_secret();
SELECT randflake_key_fingerprints(NULL);
INSERT INTO randflake_key VALUES ('0123456789abcdef');
UPDATE randflake_key SET fingerprint = '0123456789abcdef';
DELETE FROM randflake_key;
TRUNCATE randflake_key;
INSERT INTO randflake_key_check VALUES ('0123456789abcdef');
DELETE FROM randflake_key_check;
CREATE TRIGGER mine BEFORE INSERT ON randflake_key FOR EACH ROW EXECUTE FUNCTION randflake_key_guard();

-- Nor read or change what the server keeps to itself; the wording differs between versions
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

-- Their own wait is theirs to set, within its range
SET randflake.max_wait = '10s';
SHOW randflake.max_wait;
SET randflake.max_wait = -1;
SET randflake.no_such_setting = 1;
\set VERBOSITY default

-- Through a grant, or a function of someone who may
RESET ROLE;
CREATE FUNCTION age_of(id bigint) RETURNS interval
    LANGUAGE sql STABLE SECURITY DEFINER
    RETURN statement_timestamp() - randflake_generated_at(id);
GRANT EXECUTE ON FUNCTION randflake_decode(bigint) TO regress_randflake_user;
SET ROLE regress_randflake_user;
SELECT generated_at IS NOT NULL AS decoded FROM made, randflake_decode(id);
SELECT age_of(id) < interval '1 hour' AS young FROM made;
SELECT randflake_generated_at(1);
\echo :LAST_ERROR_SQLSTATE

RESET ROLE;
REVOKE EXECUTE ON FUNCTION randflake_decode(bigint) FROM regress_randflake_user;
DROP FUNCTION age_of(bigint);
DROP TABLE made, ordered;
REVOKE CREATE ON SCHEMA public FROM regress_randflake_user;
DROP ROLE regress_randflake_user;
