\echo Use "CREATE EXTENSION randflake" to load this file. \quit

-- Making identifiers

CREATE FUNCTION randflake_generate() RETURNS bigint
AS 'MODULE_PATHNAME', 'randflake_generate'
LANGUAGE C VOLATILE PARALLEL SAFE;
COMMENT ON FUNCTION randflake_generate() IS
'a new identifier, unique under the secret of this server and unpredictable without it';

CREATE FUNCTION randflake_rows_support(internal) RETURNS internal
AS 'MODULE_PATHNAME', 'randflake_rows_support'
LANGUAGE C STRICT;
COMMENT ON FUNCTION randflake_rows_support(internal) IS
'planner support: row estimate of functions that return as many rows as their first argument says';
REVOKE ALL ON FUNCTION randflake_rows_support(internal) FROM PUBLIC;

CREATE FUNCTION randflake_generate(count integer) RETURNS SETOF bigint
AS 'MODULE_PATHNAME', 'randflake_generate_many'
LANGUAGE C VOLATILE STRICT PARALLEL SAFE SUPPORT randflake_rows_support;
COMMENT ON FUNCTION randflake_generate(integer) IS
'that many new identifiers';

CREATE FUNCTION randflake_generate_text() RETURNS text
AS 'MODULE_PATHNAME', 'randflake_generate_text'
LANGUAGE C VOLATILE PARALLEL SAFE;
COMMENT ON FUNCTION randflake_generate_text() IS
'a new identifier in text form';

-- Looking into identifiers

CREATE FUNCTION randflake_decode(
    id bigint,
    OUT generated_at timestamptz,
    OUT node_id integer,
    OUT sequence integer)
AS 'MODULE_PATHNAME', 'randflake_decode'
LANGUAGE C STABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION randflake_decode(bigint) IS
'the second, node id and sequence number inside an identifier made under this server''s secret';
REVOKE ALL ON FUNCTION randflake_decode(bigint) FROM PUBLIC;

CREATE FUNCTION randflake_generated_at(id bigint) RETURNS timestamptz
AS 'MODULE_PATHNAME', 'randflake_generated_at'
LANGUAGE C STABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION randflake_generated_at(bigint) IS
'the second in which an identifier was made under this server''s secret';
REVOKE ALL ON FUNCTION randflake_generated_at(bigint) FROM PUBLIC;

CREATE FUNCTION randflake_encode(generated_at timestamptz, node_id integer, sequence integer)
RETURNS bigint
AS 'MODULE_PATHNAME', 'randflake_encode'
LANGUAGE C STABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION randflake_encode(timestamptz, integer, integer) IS
'the identifier of a second (fractions dropped), node id and sequence number: the inverse of randflake_decode, for tests and imports';
REVOKE ALL ON FUNCTION randflake_encode(timestamptz, integer, integer) FROM PUBLIC;

-- Text form

CREATE FUNCTION randflake_to_text(id bigint) RETURNS text
AS 'MODULE_PATHNAME', 'randflake_to_text'
LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION randflake_to_text(bigint) IS
'the text form of an identifier: base32hex of the unsigned number, lower case';

CREATE FUNCTION randflake_from_text(text) RETURNS bigint
AS 'MODULE_PATHNAME', 'randflake_from_text'
LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION randflake_from_text(text) IS
'the identifier of a text form, in either case';

-- Sharding

CREATE FUNCTION randflake_shard(id bigint, shards integer) RETURNS integer
AS 'MODULE_PATHNAME', 'randflake_shard'
LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION randflake_shard(bigint, integer) IS
'the shard of an identifier, 0 to shards - 1: bigint cut into contiguous equal ranges';

CREATE FUNCTION randflake_shard_ranges(
    shards integer,
    OUT shard integer,
    OUT lower bigint,
    OUT upper bigint)
RETURNS SETOF record
AS 'MODULE_PATHNAME', 'randflake_shard_ranges'
LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE SUPPORT randflake_rows_support;
COMMENT ON FUNCTION randflake_shard_ranges(integer) IS
'the smallest and the largest identifier of each shard, both inclusive';
