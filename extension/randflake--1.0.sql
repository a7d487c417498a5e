\echo Use "CREATE EXTENSION randflake" to load this file. \quit

-- Other roles may own objects in the extension's schema. PostgreSQL uses such an object if it fits
-- a call's argument types better than the extension's object does. So this script qualifies every
-- name that could be overloaded, and no function has that schema in its search_path.

-- Making identifiers

CREATE FUNCTION randflake_copy_support(internal) RETURNS internal AS 'MODULE_PATHNAME' LANGUAGE C STRICT;
COMMENT ON FUNCTION randflake_copy_support(internal) IS 'planner support: lets COPY FROM insert many rows at once';

CREATE FUNCTION randflake_generate() RETURNS bigint
AS 'MODULE_PATHNAME' LANGUAGE C VOLATILE PARALLEL SAFE SUPPORT randflake_copy_support;
COMMENT ON FUNCTION randflake_generate() IS
'a new identifier, unique under the secrets of this server and unpredictable without them';

CREATE FUNCTION randflake_generate_in_copy(internal) RETURNS bigint
AS 'MODULE_PATHNAME' LANGUAGE C STABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION randflake_generate_in_copy(internal) IS
'not for users: stands for randflake_generate() in COPY FROM';

CREATE FUNCTION randflake_rows_support(internal) RETURNS internal AS 'MODULE_PATHNAME' LANGUAGE C STRICT;
COMMENT ON FUNCTION randflake_rows_support(internal) IS
'planner support: estimates as many rows as the first argument says';

CREATE FUNCTION randflake_generate(count integer) RETURNS SETOF bigint
AS 'MODULE_PATHNAME', 'randflake_generate_many' LANGUAGE C VOLATILE STRICT PARALLEL SAFE SUPPORT randflake_rows_support;
COMMENT ON FUNCTION randflake_generate(integer) IS 'new identifiers, as many as the argument says';

CREATE FUNCTION randflake_generate_text() RETURNS text
AS 'MODULE_PATHNAME' LANGUAGE C VOLATILE PARALLEL SAFE SUPPORT randflake_copy_support;
COMMENT ON FUNCTION randflake_generate_text() IS 'a new identifier in text form';

CREATE FUNCTION randflake_generate_text_in_copy(internal) RETURNS text
AS 'MODULE_PATHNAME' LANGUAGE C STABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION randflake_generate_text_in_copy(internal) IS
'not for users: stands for randflake_generate_text() in COPY FROM';

CREATE FUNCTION randflake53_generate() RETURNS bigint
AS 'MODULE_PATHNAME', 'randflake53_generate'
LANGUAGE C VOLATILE PARALLEL SAFE SUPPORT randflake_copy_support;
COMMENT ON FUNCTION randflake53_generate() IS
'a new identifier from 0 to 2^53 - 1, which a JavaScript number holds; needs node ids up to 255';

CREATE FUNCTION randflake53_generate_in_copy(internal) RETURNS bigint
AS 'MODULE_PATHNAME', 'randflake53_generate_in_copy' LANGUAGE C STABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION randflake53_generate_in_copy(internal) IS
'not for users: stands for randflake53_generate() in COPY FROM';

CREATE FUNCTION randflake53_generate(count integer) RETURNS SETOF bigint
AS 'MODULE_PATHNAME', 'randflake53_generate_many'
LANGUAGE C VOLATILE STRICT PARALLEL SAFE SUPPORT randflake_rows_support;
COMMENT ON FUNCTION randflake53_generate(integer) IS 'new 53-bit identifiers, as many as the argument says';

-- Decoding identifiers

CREATE FUNCTION randflake_decode(
    id bigint, OUT generated_at timestamptz, OUT node_id integer, OUT sequence integer)
AS 'MODULE_PATHNAME' LANGUAGE C STABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION randflake_decode(bigint) IS
'the second, node id and sequence number inside an identifier made under one of this server''s secrets; nulls if none made it';

CREATE FUNCTION randflake_generated_at(id bigint) RETURNS timestamptz
AS 'MODULE_PATHNAME' LANGUAGE C STABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION randflake_generated_at(bigint) IS
'the second in which an identifier was made under one of this server''s secrets; null if none made it';

CREATE FUNCTION randflake_encode(generated_at timestamptz, node_id integer, sequence integer)
RETURNS bigint AS 'MODULE_PATHNAME' LANGUAGE C STABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION randflake_encode(timestamptz, integer, integer) IS
'the identifier of a second (fractions dropped), node id and sequence number under the secret of that second: the inverse of randflake_decode, for tests and imports; an error for a number that is skipped';

CREATE FUNCTION randflake53_decode(
    id bigint, OUT generated_at timestamptz, OUT node_id integer, OUT sequence integer)
AS 'MODULE_PATHNAME', 'randflake53_decode' LANGUAGE C STABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION randflake53_decode(bigint) IS
'the second, node id and sequence number inside a 53-bit identifier; nulls if none of this server''s secrets made it';

CREATE FUNCTION randflake53_encode(generated_at timestamptz, node_id integer, sequence integer)
RETURNS bigint AS 'MODULE_PATHNAME', 'randflake53_encode' LANGUAGE C STABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION randflake53_encode(timestamptz, integer, integer) IS
'the inverse of randflake53_decode, for tests and imports; an error for a number that is skipped';

-- Text form

CREATE FUNCTION randflake_to_text(id bigint) RETURNS text
AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION randflake_to_text(bigint) IS
'the text form of an identifier: base32hex of the unsigned number, lower case';

CREATE FUNCTION randflake_from_text(text) RETURNS bigint
AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION randflake_from_text(text) IS 'the identifier of a text form, in either case';

CREATE FUNCTION randflake_to_text(id bigint, prefix text) RETURNS text
AS 'MODULE_PATHNAME', 'randflake_to_prefixed_text' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION randflake_to_text(bigint, text) IS 'the text form of an identifier after a prefix and _';

CREATE FUNCTION randflake_from_text(text, prefix text) RETURNS bigint
AS 'MODULE_PATHNAME', 'randflake_from_prefixed_text' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION randflake_from_text(text, text) IS
'the identifier of a text form that has this prefix; an error for another one or none';

-- Masks

CREATE FUNCTION randflake_mask(id bigint, label text) RETURNS bigint
AS 'MODULE_PATHNAME', 'randflake_mask' LANGUAGE C STABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION randflake_mask(bigint, text) IS
'a number from 0 to 2^53 - 1 in place of another one, without its order; each label has its own permutation, under the first secret';

CREATE FUNCTION randflake_unmask(masked bigint, label text) RETURNS bigint
AS 'MODULE_PATHNAME', 'randflake_unmask' LANGUAGE C STABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION randflake_unmask(bigint, text) IS
'the number that a mask of this label stands for: the inverse of randflake_mask';

-- Sharding

CREATE FUNCTION randflake_shard(id bigint, shards integer) RETURNS integer
AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION randflake_shard(bigint, integer) IS
'the shard of an identifier, 0 to shards - 1: bigint cut into contiguous equal ranges';

CREATE FUNCTION randflake_shard_ranges(
    shards integer, OUT shard integer, OUT lower bigint, OUT upper bigint) RETURNS SETOF record
AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE SUPPORT randflake_rows_support;
COMMENT ON FUNCTION randflake_shard_ranges(integer) IS
'the smallest and the largest identifier of each shard, both inclusive';

-- Snowflake layouts

CREATE FUNCTION snowflake_generate() RETURNS bigint
AS 'MODULE_PATHNAME' LANGUAGE C VOLATILE PARALLEL SAFE SUPPORT randflake_copy_support;
COMMENT ON FUNCTION snowflake_generate() IS
'a new identifier of the layout randflake.snowflake_layout: positive, in the clear, in the order of time';

CREATE FUNCTION snowflake_generate_in_copy(internal) RETURNS bigint
AS 'MODULE_PATHNAME' LANGUAGE C STABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION snowflake_generate_in_copy(internal) IS
'not for users: stands for snowflake_generate() in COPY FROM';

CREATE FUNCTION snowflake_decode(
    id bigint, layout text, OUT generated_at timestamptz, OUT node_id integer, OUT sequence integer)
AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION snowflake_decode(bigint, text) IS
'the time, node id and sequence number inside an identifier of a layout, given by name or description';

CREATE FUNCTION snowflake_decode(
    id bigint, OUT generated_at timestamptz, OUT node_id integer, OUT sequence integer)
AS 'MODULE_PATHNAME' LANGUAGE C STABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION snowflake_decode(bigint) IS
'the time, node id and sequence number inside an identifier of this server''s layout';

CREATE FUNCTION snowflake_lower("time" timestamptz, layout text) RETURNS bigint
AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION snowflake_lower(timestamptz, text) IS
'the smallest identifier that a layout has for a time, which is rounded down to its unit';

CREATE FUNCTION snowflake_lower("time" timestamptz) RETURNS bigint
AS 'MODULE_PATHNAME' LANGUAGE C STABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION snowflake_lower(timestamptz) IS
'the smallest identifier that this server''s layout has for a time, which is rounded down to its unit';

CREATE FUNCTION snowflake_layouts(
    OUT name text, OUT description text, OUT epoch timestamptz, OUT unit interval,
    OUT time_bits integer, OUT node_bits integer, OUT sequence_bits integer,
    OUT ids_per_second bigint, OUT nodes bigint, OUT last_time timestamptz, OUT in_use boolean)
RETURNS SETOF record AS 'MODULE_PATHNAME' LANGUAGE C STABLE PARALLEL SAFE ROWS 6;
COMMENT ON FUNCTION snowflake_layouts() IS
'the named layouts and this server''s layout, with their limits; ids_per_second is per node id';

-- Monitoring

CREATE FUNCTION randflake_status(
    OUT mode text, OUT problem text, OUT first_node_id integer, OUT node_count integer,
    OUT ids_per_second bigint, OUT window_start timestamptz, OUT window_end timestamptz,
    OUT key_fingerprint text, OUT ids_issued bigint, OUT waits bigint, OUT wait_ms bigint,
    OUT slots_exhausted bigint, OUT clock_steps_back bigint, OUT window_extensions bigint,
    OUT stats_reset timestamptz, OUT lease_id bigint, OUT lease_granted interval,
    OUT lease_error text, OUT lease_error_at timestamptz, OUT copy_found_at timestamptz,
    OUT vector_path text, OUT node_range integer, OUT spare_ranges_left integer)
AS 'MODULE_PATHNAME' LANGUAGE C VOLATILE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION randflake_status() IS 'the row of the view randflake_status';

CREATE VIEW randflake_status AS SELECT * FROM randflake_status();
COMMENT ON VIEW randflake_status IS 'this server''s generator: node ids, window, counters, lease';
COMMENT ON COLUMN randflake_status.mode IS 'static: node ids set by randflake.node_id; leased: node ids from the coordinator';
COMMENT ON COLUMN randflake_status.problem IS
    'the error that stops identifiers now or soon, or what may repeat them; null without either';
COMMENT ON COLUMN randflake_status.first_node_id IS 'first node id, null when there is none';
COMMENT ON COLUMN randflake_status.node_count IS
'number of node ids; each has 131072 identifiers a second, node id 0 one less, 32768 of 53 bits, and Snowflake ones by snowflake_layouts()';
COMMENT ON COLUMN randflake_status.ids_per_second IS
'Randflake identifiers a second for all node ids, less those that former secrets claim';
COMMENT ON COLUMN randflake_status.window_start IS
'first second of the window, from which identifiers are issued; null while the window is closed';
COMMENT ON COLUMN randflake_status.window_end IS
'identifiers are issued before this second, until the window is extended or, with leased node ids, the lease renewed';
COMMENT ON COLUMN randflake_status.key_fingerprint IS
'fingerprint of the secret in use: differs between secrets and reveals none; randflake_secrets has all';
COMMENT ON COLUMN randflake_status.ids_issued IS
'numbers reserved since stats_reset, for identifiers of all kinds; includes unused numbers of prefetched runs';
COMMENT ON COLUMN randflake_status.waits IS 'calls that waited';
COMMENT ON COLUMN randflake_status.wait_ms IS 'milliseconds that calls have waited, in sum';
COMMENT ON COLUMN randflake_status.slots_exhausted IS
'how often a node id used up all its numbers of a second, or of a Snowflake layout''s unit of time, for any kind of identifier';
COMMENT ON COLUMN randflake_status.clock_steps_back IS 'observed steps of the clock back';
COMMENT ON COLUMN randflake_status.window_extensions IS 'times the window was opened or extended: writes to disk, or grants of the coordinator';
COMMENT ON COLUMN randflake_status.stats_reset IS 'time at which the counters were last set to zero';
COMMENT ON COLUMN randflake_status.lease_id IS 'the lease held, null when there is none';
COMMENT ON COLUMN randflake_status.lease_granted IS 'length of the lease in use when it was last granted or renewed';
COMMENT ON COLUMN randflake_status.lease_error IS 'last error of the lease worker, null when its last attempt succeeded';
COMMENT ON COLUMN randflake_status.lease_error_at IS 'time of lease_error';
COMMENT ON COLUMN randflake_status.copy_found_at IS
'when this server found that its data directory is a copy, or was promoted or restored in place since the start; null if it did not, or if the copy is acknowledged';
COMMENT ON COLUMN randflake_status.vector_path IS 'vector instructions that encrypt identifiers';
COMMENT ON COLUMN randflake_status.node_range IS
'range of node ids in use: 0 is the first range, the spare ranges follow; null where node ids are leased';
COMMENT ON COLUMN randflake_status.spare_ranges_left IS
'other ranges of node ids that the server could go on under now; null where node ids are leased';

CREATE FUNCTION randflake_slots(
    OUT node_id integer, OUT last_second timestamptz, OUT sequence integer, OUT ids_issued bigint)
RETURNS SETOF record AS 'MODULE_PATHNAME' LANGUAGE C VOLATILE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION randflake_slots() IS 'the rows of the view randflake_slots';

CREATE VIEW randflake_slots AS SELECT * FROM randflake_slots();
COMMENT ON VIEW randflake_slots IS
'this server''s node ids with the number last reserved under each for Randflake identifiers; empty while the window is closed';
COMMENT ON COLUMN randflake_slots.node_id IS 'node id';
COMMENT ON COLUMN randflake_slots.last_second IS 'second of the last number reserved, null when none was';
COMMENT ON COLUMN randflake_slots.sequence IS 'sequence number of the last number reserved, 0 to 131071';
COMMENT ON COLUMN randflake_slots.ids_issued IS 'numbers reserved since stats_reset';

CREATE FUNCTION randflake_status_reset() RETURNS void AS 'MODULE_PATHNAME' LANGUAGE C VOLATILE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION randflake_status_reset() IS 'sets the counters of randflake_status and randflake_slots to zero';

CREATE FUNCTION randflake_acknowledge_copy() RETURNS void AS 'MODULE_PATHNAME' LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE;
COMMENT ON FUNCTION randflake_acknowledge_copy() IS
'declares that no other server runs with the node ids of this server, which is a copy; then the column problem of randflake_status no longer reports the copy';

-- The secrets

CREATE FUNCTION randflake_secrets(
    OUT generation integer, OUT fingerprint text, OUT valid_from timestamptz, OUT state text)
RETURNS SETOF record AS 'MODULE_PATHNAME' LANGUAGE C VOLATILE STRICT PARALLEL SAFE ROWS 2;
COMMENT ON FUNCTION randflake_secrets() IS 'the rows of the view randflake_secrets';

CREATE VIEW randflake_secrets AS SELECT * FROM randflake_secrets();
COMMENT ON VIEW randflake_secrets IS 'this server''s secrets, oldest first, without the secrets themselves';
COMMENT ON COLUMN randflake_secrets.generation IS 'number of the secret, 1 for the first';
COMMENT ON COLUMN randflake_secrets.fingerprint IS
'distinguishes secrets; servers with the same second or later fingerprint agree about all secrets and times up to this one';
COMMENT ON COLUMN randflake_secrets.valid_from IS 'identifiers of this time and later are made under it; null for the first secret';
COMMENT ON COLUMN randflake_secrets.state IS 'past, current or future, by this server''s clock';

CREATE FUNCTION randflake_reload_secret() RETURNS integer
AS 'MODULE_PATHNAME' LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE;
COMMENT ON FUNCTION randflake_reload_secret() IS
'reads randflake.secret_file again for further secrets and returns how many there are now';

-- Privileges. Other roles may execute all other functions.

REVOKE ALL ON FUNCTION
    randflake_copy_support(internal), randflake_rows_support(internal),
    randflake_decode(bigint), randflake_generated_at(bigint),
    randflake_encode(timestamptz, integer, integer), randflake53_decode(bigint),
    randflake53_encode(timestamptz, integer, integer), randflake_mask(bigint, text),
    randflake_unmask(bigint, text), randflake_status(), randflake_slots(),
    randflake_status_reset(), randflake_acknowledge_copy(), randflake_secrets(),
    randflake_reload_secret() FROM PUBLIC;
REVOKE ALL ON randflake_status, randflake_slots, randflake_secrets FROM PUBLIC;
GRANT EXECUTE ON FUNCTION randflake_status(), randflake_slots(), randflake_secrets() TO pg_monitor;
GRANT SELECT ON randflake_status, randflake_slots, randflake_secrets TO pg_monitor;
