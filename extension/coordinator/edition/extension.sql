\echo Use "CREATE EXTENSION randflake_coordinator" to load this file. \quit

--@ define max_duration
max_duration integer NOT NULL DEFAULT 60 CHECK (max_duration BETWEEN 1 AND 86400),
--@ end
--@ define max_clock_skew
max_clock_skew integer NOT NULL DEFAULT 2 CHECK (max_clock_skew BETWEEN 0 AND 3600),
--@ end
--@ define dumped
SELECT pg_catalog.pg_extension_config_dump('randflake_lease_pool', '');
SELECT pg_catalog.pg_extension_config_dump('randflake_lease_hold', '');
SELECT pg_catalog.pg_extension_config_dump('randflake_lease', '');
SELECT pg_catalog.pg_extension_config_dump('randflake_lease_chunk', '');
SELECT pg_catalog.pg_extension_config_dump('randflake_lease_lease_id_seq', '');
--@ end
--@ define server
-- Returns the identity: system identifier / timeline / data directory @ start of the server /
-- database. A copy, a promotion and a start change it.
CREATE FUNCTION randflake_coordinator_identity(own randflake_lease_internal) RETURNS text
AS 'MODULE_PATHNAME', 'randflake_coordinator_identity' LANGUAGE C VOLATILE PARALLEL UNSAFE;

-- Returns the static node ids of this server, or nulls if it has none.
CREATE FUNCTION randflake_coordinator_static_nodes(
    own randflake_lease_internal, OUT first_node_id integer, OUT node_count integer)
AS 'MODULE_PATHNAME', 'randflake_coordinator_static_nodes' LANGUAGE C STABLE PARALLEL SAFE;
--@ end
--@ define may_end
--@ end
--@ define limits
IF duration NOT BETWEEN 1 AND 86400 THEN
    RAISE invalid_parameter_value USING
        MESSAGE = 'longest lease must be from 1 to 86400 seconds';
END IF;
IF skew NOT BETWEEN 0 AND 3600 THEN
    RAISE invalid_parameter_value USING MESSAGE = 'clock skew must be from 0 to 3600 seconds';
END IF;
--@ end
--@ define defaults
longest CONSTANT integer := 60;
widest CONSTANT integer := 2;
--@ end
--@ define default_privileges
--@ end
--@ define end_of_file
--@ end
