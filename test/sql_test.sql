-- What the tests in sql begin with: \i :source/test/sql_test.sql, where `source` is PG_ABS_SRCDIR.
\pset format unaligned
\pset tuples_only on
SET datestyle = ISO;
SET timezone = 'UTC';

-- Returns the SQLSTATE, message, detail and hint of a statement's error.
CREATE FUNCTION pg_temp.error_of(statement text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    detail text;
    hint text;
BEGIN
    EXECUTE statement;
    RETURN 'none';
EXCEPTION WHEN others THEN
    GET STACKED DIAGNOSTICS detail = PG_EXCEPTION_DETAIL, hint = PG_EXCEPTION_HINT;
    RETURN concat_ws(' | ', SQLSTATE, SQLERRM, nullif(detail, ''), nullif(hint, ''));
END $$;
