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

-- Returns the seconds that pass while a query runs, and those that the backend is on a processor.
CREATE FUNCTION bench_seconds(query text, OUT elapsed float8, OUT processor float8) LANGUAGE plpgsql AS $$
BEGIN
    processor := bench_processor_clock();
    elapsed := extract(epoch FROM clock_timestamp());
    EXECUTE query;
    elapsed := extract(epoch FROM clock_timestamp()) - elapsed;
    processor := bench_processor_clock() - processor;
END
$$;

-- Returns true if a function has this signature (such as 'uuidv7()'), or the signature is empty.
CREATE FUNCTION bench_has(signature text) RETURNS boolean LANGUAGE sql AS
$$ SELECT signature = '' OR to_regprocedure(signature) IS NOT NULL $$;

CREATE SEQUENCE bench_sequence;
CREATE SEQUENCE bench_sequence_32 CACHE 32;
CREATE SEQUENCE bench_permuted;
