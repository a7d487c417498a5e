-- Creates the suites' objects. The variable :library is the path of the built functions.c.

CREATE EXTENSION randflake_type CASCADE;
SELECT format('CREATE EXTENSION %I', name)
  FROM pg_available_extensions
 WHERE name IN ('snowflake', 'pg_uuidv7', 'permuteseq', 'pgstattuple')
\gexec

CREATE FUNCTION bench_empty() RETURNS bigint
AS :'library', 'bench_empty' LANGUAGE C VOLATILE PARALLEL SAFE;
CREATE FUNCTION bench_empty(bigint) RETURNS bigint
AS :'library', 'bench_empty' LANGUAGE C VOLATILE STRICT PARALLEL SAFE;

CREATE FUNCTION bench_processor_clock() RETURNS double precision
AS :'library', 'bench_processor_clock' LANGUAGE C VOLATILE;

CREATE FUNCTION bench_seconds(query text) RETURNS double precision LANGUAGE plpgsql AS $$
DECLARE
    started timestamptz := clock_timestamp();
BEGIN
    EXECUTE query;
    RETURN extract(epoch FROM clock_timestamp() - started);
END
$$;

CREATE FUNCTION bench_processor_seconds(query text) RETURNS double precision LANGUAGE plpgsql AS $$
DECLARE
    started double precision := bench_processor_clock();
BEGIN
    EXECUTE query;
    RETURN bench_processor_clock() - started;
END
$$;

-- Returns true if a function has this signature (such as 'uuidv7()'), or the signature is empty.
CREATE FUNCTION bench_has(signature text) RETURNS boolean LANGUAGE sql AS
$$ SELECT signature = '' OR to_regprocedure(signature) IS NOT NULL $$;

CREATE SEQUENCE bench_sequence;
CREATE SEQUENCE bench_sequence_32 CACHE 32;
CREATE SEQUENCE bench_permuted;
