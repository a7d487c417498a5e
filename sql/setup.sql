-- What the extension consists of, and where it can be installed.

-- Every function, marked as designed
SELECT p.proname AS function,
       oidvectortypes(p.proargtypes) AS arguments,
       pg_get_function_result(p.oid) AS result,
       CASE p.provolatile WHEN 'i' THEN 'immutable' WHEN 's' THEN 'stable' ELSE 'volatile' END
           AS volatility,
       CASE p.proparallel WHEN 's' THEN 'safe' WHEN 'r' THEN 'restricted' ELSE 'unsafe' END
           AS parallel,
       p.proisstrict AS strict,
       has_function_privilege('public', p.oid, 'EXECUTE') AS public
FROM pg_extension e
JOIN pg_depend d ON d.refclassid = 'pg_extension'::regclass AND d.refobjid = e.oid
                AND d.deptype = 'e' AND d.classid = 'pg_proc'::regclass
JOIN pg_proc p ON p.oid = d.objid
WHERE e.extname = 'randflake'
ORDER BY p.proname COLLATE "C", p.pronargs;

-- Objects without a comment: none. Row and array types, which come with their table, are members too
-- since PostgreSQL 17.
SELECT pg_describe_object(d.classid, d.objid, 0) AS object
FROM pg_extension e
JOIN pg_depend d ON d.refclassid = 'pg_extension'::regclass AND d.refobjid = e.oid
                AND d.deptype = 'e'
WHERE e.extname = 'randflake'
  AND NOT EXISTS (SELECT FROM pg_depend i
                  WHERE i.classid = d.classid AND i.objid = d.objid AND i.deptype = 'i')
  AND obj_description(d.objid, (SELECT relname FROM pg_class WHERE oid = d.classid)) IS NULL;
SELECT obj_description(oid, 'pg_extension') AS extension_comment
FROM pg_extension WHERE extname = 'randflake';

-- A column default keeps the extension from being dropped
CREATE TABLE holds_default (id bigint PRIMARY KEY DEFAULT randflake_generate());
\set VERBOSITY sqlstate
DROP EXTENSION randflake;
\set VERBOSITY default
DROP TABLE holds_default;
DROP EXTENSION randflake;

-- In another schema
CREATE SCHEMA randflake_test;
CREATE EXTENSION randflake SCHEMA randflake_test;
SELECT to_regproc('randflake_generate') IS NULL AS not_in_search_path;
SELECT randflake_test.randflake_generate() IS NOT NULL AS generated;
CREATE TABLE elsewhere (id bigint PRIMARY KEY DEFAULT randflake_test.randflake_generate());
INSERT INTO elsewhere DEFAULT VALUES;

-- It stays there: the coordinator's functions name its schema
ALTER EXTENSION randflake SET SCHEMA public;

DROP TABLE elsewhere;
DROP EXTENSION randflake;
DROP SCHEMA randflake_test;
CREATE EXTENSION randflake;
