\echo Use "CREATE EXTENSION randflake_type" to load this file. \quit

-- This script qualifies every name that could be overloaded. randflake--1.0.sql gives the reason.
--
-- Another role could create a function of the same name with one more argument that has a default.
-- PostgreSQL would then refuse each call as ambiguous. So internal functions take an argument of a
-- type that other roles may not use.

CREATE TYPE randflake_key_internal AS ENUM ();
COMMENT ON TYPE randflake_key_internal IS
'not for users: the argument of a function that randflake_bind_secret() calls';
REVOKE ALL ON TYPE randflake_key_internal FROM PUBLIC;

-- Values store raw numbers and sort in the order of time. Input decrypts, and output encrypts.

CREATE TYPE randflake;

CREATE FUNCTION randflake_in(cstring) RETURNS randflake AS 'MODULE_PATHNAME' LANGUAGE C STABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION randflake_in(cstring) IS 'input of type randflake: text form of the identifier';

CREATE FUNCTION randflake_out(randflake) RETURNS cstring AS 'MODULE_PATHNAME' LANGUAGE C STABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION randflake_out(randflake) IS 'output of type randflake: text form of the identifier';

CREATE FUNCTION randflake_recv(internal) RETURNS randflake
AS 'MODULE_PATHNAME' LANGUAGE C STABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION randflake_recv(internal) IS 'binary input of type randflake: the identifier as bigint';

CREATE FUNCTION randflake_send(randflake) RETURNS bytea AS 'MODULE_PATHNAME' LANGUAGE C STABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION randflake_send(randflake) IS 'binary output of type randflake: the identifier as bigint';

CREATE TYPE randflake (
    INPUT = randflake_in,
    OUTPUT = randflake_out,
    RECEIVE = randflake_recv,
    SEND = randflake_send,
    LIKE = pg_catalog.int8
);
COMMENT ON TYPE randflake IS
'an identifier that is stored in time order and shown encrypted; USAGE is the privilege to make a value from an identifier or a time';
-- PostgreSQL 17 and later make the array type a member of the extension. Before, postgres_fdw ships
-- no expression with an array of the type, such as IN, unless this statement makes it a member.
DO $$
BEGIN
    IF pg_catalog.current_setting('server_version_num')::pg_catalog.int4 OPERATOR(pg_catalog.<) 170000 THEN
        ALTER EXTENSION randflake_type ADD TYPE @extschema@.randflake[];
    END IF;
END $$;

CREATE FUNCTION randflake_next_support(internal) RETURNS internal
AS 'MODULE_PATHNAME', 'randflake_copy_support' LANGUAGE C STRICT;
COMMENT ON FUNCTION randflake_next_support(internal) IS 'planner support: lets COPY FROM insert many rows at once';

CREATE FUNCTION randflake_next() RETURNS randflake
AS 'MODULE_PATHNAME' LANGUAGE C VOLATILE PARALLEL SAFE SUPPORT randflake_next_support;
COMMENT ON FUNCTION randflake_next() IS
'a new identifier, unique under the secrets of this server, that sorts after those of earlier seconds';

CREATE FUNCTION randflake_next_in_copy(internal) RETURNS randflake
AS 'MODULE_PATHNAME' LANGUAGE C STABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION randflake_next_in_copy(internal) IS 'not for users: stands for randflake_next() in COPY FROM';

CREATE FUNCTION randflake_cast_support(internal) RETURNS internal AS 'MODULE_PATHNAME' LANGUAGE C STRICT;
COMMENT ON FUNCTION randflake_cast_support(internal) IS
'planner support: the cast of a constant to type randflake is a constant';

-- PostgreSQL passes a cast's function the type modifier, and whether the cast is explicit.
CREATE FUNCTION randflake_from_bigint(id bigint, modifier integer DEFAULT -1, explicit boolean DEFAULT true)
RETURNS randflake
AS 'MODULE_PATHNAME' LANGUAGE C STABLE STRICT PARALLEL SAFE SUPPORT randflake_cast_support;
COMMENT ON FUNCTION randflake_from_bigint(bigint, integer, boolean) IS
'the same identifier, stored in the order of time; an assignment refuses numbers below 2^32';

CREATE FUNCTION randflake_from_integer(id integer) RETURNS randflake
AS 'MODULE_PATHNAME' LANGUAGE C STABLE STRICT PARALLEL SAFE SUPPORT randflake_cast_support;
COMMENT ON FUNCTION randflake_from_integer(integer) IS 'the identifier with this number';

CREATE FUNCTION randflake_to_bigint(id randflake) RETURNS bigint
AS 'MODULE_PATHNAME' LANGUAGE C STABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION randflake_to_bigint(randflake) IS 'the same identifier as bigint, in no order';

CREATE FUNCTION randflake_to_text(id randflake) RETURNS text
AS 'MODULE_PATHNAME', 'randflake_type_to_text' LANGUAGE C STABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION randflake_to_text(randflake) IS 'the text form of an identifier, as that of the same bigint';

CREATE FUNCTION randflake_to_text(id randflake, prefix text) RETURNS text
AS 'MODULE_PATHNAME', 'randflake_type_to_prefixed_text' LANGUAGE C STABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION randflake_to_text(randflake, text) IS 'the text form of an identifier after a prefix and _';

CREATE CAST (bigint AS randflake) WITH FUNCTION randflake_from_bigint(bigint, integer, boolean) AS ASSIGNMENT;
COMMENT ON CAST (bigint AS randflake) IS
'the same identifier, stored in the order of time; an assignment refuses numbers below 2^32';
CREATE CAST (integer AS randflake) WITH FUNCTION randflake_from_integer(integer);
COMMENT ON CAST (integer AS randflake) IS 'the identifier with this number';
CREATE CAST (randflake AS bigint) WITH FUNCTION randflake_to_bigint(randflake) AS ASSIGNMENT;
COMMENT ON CAST (randflake AS bigint) IS 'the same identifier as bigint, in no order';

CREATE FUNCTION randflake_negate(randflake) RETURNS randflake
AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION randflake_negate(randflake) IS 'implementation of - operator';
CREATE OPERATOR - (FUNCTION = randflake_negate, RIGHTARG = randflake);
COMMENT ON OPERATOR - (NONE, randflake) IS 'an error that tells how to cast a negative number';

-- These functions read the time and the node id from the stored number.

CREATE FUNCTION randflake_timestamp(id randflake) RETURNS timestamptz
AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION randflake_timestamp(randflake) IS 'the second in which an identifier was made';

CREATE FUNCTION randflake_node_id(id randflake) RETURNS integer
AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION randflake_node_id(randflake) IS 'the node id under which an identifier was made';

CREATE FUNCTION randflake_lower(second timestamptz) RETURNS randflake
AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION randflake_lower(timestamptz) IS
'the smallest possible identifier of a second (fractions dropped), for searches and partitions by time';

-- These objects record which secrets encrypt the type's values.
--
-- The table is a user catalog table, because logical decoding reads it under a historic snapshot.
-- It has a replica identity, so that a role can delete rows even if a publication of all tables
-- includes the table. It has no key, because rows may repeat.

CREATE TABLE randflake_key (fingerprint text NOT NULL) WITH (user_catalog_table = true);
ALTER TABLE randflake_key REPLICA IDENTITY FULL;
COMMENT ON TABLE randflake_key IS
'the secrets of values of type randflake; values are readable up to the time at which these secrets differ from the server''s';
COMMENT ON COLUMN randflake_key.fingerprint IS
'fingerprint of a secret, as in randflake_secrets; the second and later secrets have "@" and the Unix second at which they begin; rows may repeat';
GRANT SELECT ON randflake_key TO PUBLIC;
-- For restores
GRANT INSERT ON randflake_key TO pg_database_owner;
SELECT pg_catalog.pg_extension_config_dump('randflake_key', '');

CREATE FUNCTION randflake_key_guard() RETURNS trigger
AS 'MODULE_PATHNAME', 'randflake_key_guard' LANGUAGE C;
COMMENT ON FUNCTION randflake_key_guard() IS
'skips a fingerprint that the table has; keeps any other, and copies those of this server to randflake_key_check; makes all sessions check again';

CREATE TRIGGER randflake_key_guard BEFORE INSERT OR UPDATE OR DELETE ON randflake_key
    FOR EACH ROW EXECUTE FUNCTION randflake_key_guard();
ALTER TABLE randflake_key ENABLE ALWAYS TRIGGER randflake_key_guard;
COMMENT ON TRIGGER randflake_key_guard ON randflake_key IS
'skips a fingerprint that the table has; keeps any other, and copies those of this server to randflake_key_check; makes all sessions check again';

CREATE FUNCTION randflake_key_matches(fingerprint text) RETURNS boolean
AS 'MODULE_PATHNAME' LANGUAGE C STABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION randflake_key_matches(text) IS
'true, or an error if the server lacks the secret of this database or of this fingerprint';

-- A dump contains the fingerprint a second time, in this table. On a server with another secret, a
-- restore puts the fingerprint into randflake_key, so the server refuses to read values. The server
-- also refuses the row of this table, so the restore reports an error.
CREATE TABLE randflake_key_check (
    fingerprint text NOT NULL CONSTRAINT randflake_key_matches CHECK (randflake_key_matches(fingerprint))
);
ALTER TABLE randflake_key_check REPLICA IDENTITY FULL;
COMMENT ON TABLE randflake_key_check IS
'a second copy of the fingerprints: makes a restore under another secret end with an error';
COMMENT ON COLUMN randflake_key_check.fingerprint IS 'as in randflake_key';
COMMENT ON CONSTRAINT randflake_key_matches ON randflake_key_check IS
'raises an error if the database is bound to another secret';
GRANT SELECT ON randflake_key_check TO PUBLIC;
GRANT INSERT ON randflake_key_check TO pg_database_owner;
SELECT pg_catalog.pg_extension_config_dump('randflake_key_check', '');

CREATE TRIGGER randflake_key_guard BEFORE INSERT ON randflake_key_check
    FOR EACH ROW EXECUTE FUNCTION randflake_key_guard();
ALTER TABLE randflake_key_check ENABLE ALWAYS TRIGGER randflake_key_guard;
COMMENT ON TRIGGER randflake_key_guard ON randflake_key_check IS 'skips a fingerprint that the table has';

CREATE FUNCTION randflake_key_fingerprints(randflake_key_internal) RETURNS text[]
AS 'MODULE_PATHNAME' LANGUAGE C STABLE PARALLEL SAFE;
COMMENT ON FUNCTION randflake_key_fingerprints(randflake_key_internal) IS
'entries for randflake_key of this server''s secrets in use, oldest first';

CREATE FUNCTION randflake_bind_secret() RETURNS text
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    mine CONSTANT text[] := @extschema@.randflake_key_fingerprints(NULL::@extschema@.randflake_key_internal);
    other text;
BEGIN
    -- Without the lock, the query would miss a row that another transaction inserts at this time.
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
'binds the type randflake of this database to the server''s secrets and returns the fingerprint of the first secret. CREATE EXTENSION does this if the server has a secret; otherwise the first value of a role that may execute this function does it. Each later secret is added with its first value';

-- Binds the type now if the server has a secret, and otherwise raises a notice.
CREATE FUNCTION randflake_type_created() RETURNS void
AS 'MODULE_PATHNAME', 'randflake_type_created' LANGUAGE C;
SELECT @extschema@.randflake_type_created();
DROP FUNCTION randflake_type_created();

-- Comparison: stored values compare as bigint
--
-- The operators are in pg_catalog. pg_dump prints IS DISTINCT FROM, NULLIF, CASE, USING and NATURAL
-- JOIN without the operator's schema, and a restore has an empty search_path. With operators in any
-- other schema, a restore would lose views, indexes and even tables.

CREATE FUNCTION randflake_rangesel(internal, oid, internal, integer) RETURNS double precision
AS 'MODULE_PATHNAME' LANGUAGE C STABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION randflake_rangesel(internal, oid, internal, integer) IS
'restriction selectivity of <, <=, > and >= on type randflake';

DO $$
DECLARE
    o record;
BEGIN
    FOR o IN SELECT * FROM (VALUES
        ('eq', '=', '=', '<>', 'eqsel', 'eqjoinsel, HASHES, MERGES', 'equal'),
        ('ne', '<>', '<>', '=', 'neqsel', 'neqjoinsel', 'not equal'),
        ('lt', '<', '>', '>=', NULL, 'scalarltjoinsel', 'less than, in the order of time'),
        ('le', '<=', '>=', '>', NULL, 'scalarlejoinsel',
         'less than or equal, in the order of time'),
        ('gt', '>', '<', '<=', NULL, 'scalargtjoinsel', 'greater than, in the order of time'),
        ('ge', '>=', '<=', '<', NULL, 'scalargejoinsel',
         'greater than or equal, in the order of time'))
        AS v (name, symbol, commutator, negator, restriction, joins, meaning)
    LOOP
        EXECUTE pg_catalog.format($f$
            CREATE FUNCTION @extschema@.randflake_%1$s(@extschema@.randflake, @extschema@.randflake)
            RETURNS boolean
            AS 'int8%1$s' LANGUAGE internal IMMUTABLE STRICT LEAKPROOF PARALLEL SAFE;
            COMMENT ON FUNCTION @extschema@.randflake_%1$s IS 'implementation of %2$s operator';
            CREATE OPERATOR pg_catalog.%2$s (FUNCTION = @extschema@.randflake_%1$s,
                LEFTARG = @extschema@.randflake, RIGHTARG = @extschema@.randflake,
                COMMUTATOR = OPERATOR(pg_catalog.%3$s), NEGATOR = OPERATOR(pg_catalog.%4$s),
                RESTRICT = %5$s, JOIN = %6$s);
            COMMENT ON OPERATOR pg_catalog.%2$s (@extschema@.randflake, @extschema@.randflake)
            IS %7$L$f$, o.name, o.symbol, o.commutator, o.negator,
            COALESCE(o.restriction, '@extschema@.randflake_rangesel'), o.joins, o.meaning);
    END LOOP;
END $$;

CREATE FUNCTION randflake_cmp(randflake, randflake) RETURNS integer
AS 'btint8cmp' LANGUAGE internal IMMUTABLE STRICT LEAKPROOF PARALLEL SAFE;
COMMENT ON FUNCTION randflake_cmp(randflake, randflake) IS 'less-equal-greater comparison';

CREATE FUNCTION randflake_sortsupport(internal) RETURNS void
AS 'MODULE_PATHNAME' LANGUAGE C STABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION randflake_sortsupport(internal) IS
'sort support; refuses to sort values that belong to another secret';

CREATE FUNCTION randflake_equalimage(oid) RETURNS boolean AS 'MODULE_PATHNAME' LANGUAGE C STABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION randflake_equalimage(oid) IS
'equal values are the same bytes; refuses to build an index over values that belong to another secret';

CREATE OPERATOR CLASS randflake_ops DEFAULT FOR TYPE randflake USING btree AS
    OPERATOR 1 pg_catalog.<, OPERATOR 2 pg_catalog.<=, OPERATOR 3 pg_catalog.=, OPERATOR 4 pg_catalog.>=, OPERATOR 5 pg_catalog.>,
    FUNCTION 1 randflake_cmp(randflake, randflake), FUNCTION 2 randflake_sortsupport(internal),
    FUNCTION 4 randflake_equalimage(oid);
COMMENT ON OPERATOR FAMILY randflake_ops USING btree IS 'order of time of type randflake';
COMMENT ON OPERATOR CLASS randflake_ops USING btree IS 'order of time of type randflake';

CREATE FUNCTION randflake_hash(randflake) RETURNS integer
AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION randflake_hash(randflake) IS 'hash';

CREATE FUNCTION randflake_hash_extended(randflake, bigint) RETURNS bigint
AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION randflake_hash_extended(randflake, bigint) IS 'hash with a seed';

CREATE OPERATOR CLASS randflake_ops DEFAULT FOR TYPE randflake USING hash AS
    OPERATOR 1 pg_catalog.=, FUNCTION 1 randflake_hash(randflake),
    FUNCTION 2 randflake_hash_extended(randflake, bigint);
COMMENT ON OPERATOR FAMILY randflake_ops USING hash IS 'equality of type randflake';
COMMENT ON OPERATOR CLASS randflake_ops USING hash IS 'equality of type randflake';

CREATE OPERATOR CLASS randflake_minmax_ops DEFAULT FOR TYPE randflake USING brin AS
    OPERATOR 1 pg_catalog.<, OPERATOR 2 pg_catalog.<=, OPERATOR 3 pg_catalog.=, OPERATOR 4 pg_catalog.>=, OPERATOR 5 pg_catalog.>,
    FUNCTION 1 pg_catalog.brin_minmax_opcinfo(internal),
    FUNCTION 2 pg_catalog.brin_minmax_add_value(internal, internal, internal, internal),
    FUNCTION 3 pg_catalog.brin_minmax_consistent(internal, internal, internal),
    FUNCTION 4 pg_catalog.brin_minmax_union(internal, internal, internal);
COMMENT ON OPERATOR FAMILY randflake_minmax_ops USING brin IS 'smallest and largest of type randflake';
COMMENT ON OPERATOR CLASS randflake_minmax_ops USING brin IS 'smallest and largest of type randflake';

CREATE OPERATOR CLASS randflake_minmax_multi_ops FOR TYPE randflake USING brin AS
    OPERATOR 1 pg_catalog.<, OPERATOR 2 pg_catalog.<=, OPERATOR 3 pg_catalog.=, OPERATOR 4 pg_catalog.>=, OPERATOR 5 pg_catalog.>,
    FUNCTION 1 pg_catalog.brin_minmax_multi_opcinfo(internal),
    FUNCTION 2 pg_catalog.brin_minmax_multi_add_value(internal, internal, internal, internal),
    FUNCTION 3 pg_catalog.brin_minmax_multi_consistent(internal, internal, internal, integer),
    FUNCTION 4 pg_catalog.brin_minmax_multi_union(internal, internal, internal),
    FUNCTION 5 pg_catalog.brin_minmax_multi_options(internal),
    FUNCTION 11 (randflake, randflake) pg_catalog.brin_minmax_multi_distance_int8(internal, internal);
COMMENT ON OPERATOR FAMILY randflake_minmax_multi_ops USING brin IS 'ranges of type randflake';
COMMENT ON OPERATOR CLASS randflake_minmax_multi_ops USING brin IS 'ranges of type randflake';

CREATE OPERATOR CLASS randflake_bloom_ops FOR TYPE randflake USING brin AS
    OPERATOR 1 pg_catalog.=, FUNCTION 1 pg_catalog.brin_bloom_opcinfo(internal),
    FUNCTION 2 pg_catalog.brin_bloom_add_value(internal, internal, internal, internal),
    FUNCTION 3 pg_catalog.brin_bloom_consistent(internal, internal, internal, integer),
    FUNCTION 4 pg_catalog.brin_bloom_union(internal, internal, internal),
    FUNCTION 5 pg_catalog.brin_bloom_options(internal),
    FUNCTION 11 (randflake, randflake) randflake_hash(randflake);
COMMENT ON OPERATOR FAMILY randflake_bloom_ops USING brin IS 'Bloom filter of type randflake';
COMMENT ON OPERATOR CLASS randflake_bloom_ops USING brin IS 'Bloom filter of type randflake';

CREATE FUNCTION randflake_larger(randflake, randflake) RETURNS randflake
AS 'int8larger' LANGUAGE internal IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION randflake_larger(randflake, randflake) IS 'the later of two';

CREATE FUNCTION randflake_smaller(randflake, randflake) RETURNS randflake
AS 'int8smaller' LANGUAGE internal IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION randflake_smaller(randflake, randflake) IS 'the earlier of two';

CREATE AGGREGATE max(randflake) (
    SFUNC = randflake_larger, STYPE = randflake, COMBINEFUNC = randflake_larger,
    SORTOP = OPERATOR(pg_catalog.>), PARALLEL = SAFE
);
COMMENT ON AGGREGATE max(randflake) IS 'largest identifier, in the order of time';

CREATE AGGREGATE min(randflake) (
    SFUNC = randflake_smaller, STYPE = randflake, COMBINEFUNC = randflake_smaller,
    SORTOP = OPERATOR(pg_catalog.<), PARALLEL = SAFE
);
COMMENT ON AGGREGATE min(randflake) IS 'smallest identifier, in the order of time';

-- Other roles may execute all other functions.
REVOKE ALL ON FUNCTION
    randflake_next_support(internal), randflake_cast_support(internal),
    randflake_timestamp(randflake), randflake_node_id(randflake), randflake_key_guard(),
    randflake_key_fingerprints(randflake_key_internal), randflake_bind_secret(),
    randflake_rangesel(internal, oid, internal, integer), randflake_sortsupport(internal),
    randflake_equalimage(oid) FROM PUBLIC;
