\set ECHO none
-- Tests what the extensions contain, and in which schemas they can be installed.
\pset format unaligned
\pset tuples_only on

-- Strict functions return NULL for NULL.
\echo '-- Every function, with its properties'
SELECT e.extname AS extension,
       CASE p.provolatile WHEN 'i' THEN 'immutable' WHEN 's' THEN 'stable' ELSE 'volatile' END
           AS volatility,
       CASE p.proparallel WHEN 's' THEN 'safe' WHEN 'r' THEN 'restricted' ELSE 'unsafe' END
           AS parallel,
       p.proisstrict AS strict,
       has_function_privilege('public', p.oid, 'EXECUTE') AS public,
       string_agg(format('%s(%s) %s', p.proname, oidvectortypes(p.proargtypes), pg_get_function_result(p.oid)), '; '
                  ORDER BY p.proname COLLATE "C", p.pronargs) AS functions
FROM pg_extension e
JOIN pg_depend d ON d.refclassid = 'pg_extension'::regclass AND d.refobjid = e.oid
                AND d.deptype = 'e' AND d.classid = 'pg_proc'::regclass
JOIN pg_proc p ON p.oid = d.objid
WHERE e.extname LIKE 'randflake%'
GROUP BY 1, 2, 3, 4, 5 ORDER BY e.extname COLLATE "C", 2, 3, 4, 5;

\echo '-- Every other object. Row and array types come with their table or type.'
CREATE VIEW objects AS
SELECT e.extname AS extension, d.classid, d.objid, (pg_identify_object(d.classid, d.objid, 0)).*
FROM pg_extension e
JOIN pg_depend d ON d.refclassid = 'pg_extension'::regclass AND d.refobjid = e.oid
                AND d.deptype = 'e'
WHERE e.extname LIKE 'randflake%'
  AND NOT EXISTS (SELECT FROM pg_depend i
                  WHERE i.classid = d.classid AND i.objid = d.objid AND i.deptype = 'i');
SELECT extension, type, string_agg(identity, '; ' ORDER BY identity COLLATE "C") AS objects FROM objects
WHERE type NOT IN ('function', 'aggregate')
GROUP BY 1, 2 ORDER BY extension COLLATE "C", type COLLATE "C";

\echo '-- Every object and column has a comment, but internal functions and columns of tables of the coordinator'
SELECT extension, type, identity FROM objects
WHERE obj_description(objid, (SELECT relname FROM pg_class WHERE oid = classid)) IS NULL
  AND identity NOT LIKE '%(%randflake_lease_internal%)'
UNION ALL
SELECT extension, 'column', format('%s.%I', identity, attname)
FROM objects JOIN pg_attribute ON attrelid = objid
WHERE classid = 'pg_class'::regclass AND type <> 'sequence' AND attnum > 0
  AND NOT (extension = 'randflake_coordinator' AND type = 'table') AND col_description(objid, attnum) IS NULL;
DROP VIEW objects;
SELECT extname, obj_description(oid, 'pg_extension') AS comment
FROM pg_extension WHERE extname LIKE 'randflake%' ORDER BY extname COLLATE "C";

\echo '-- Dependencies'
DROP EXTENSION randflake;
DROP EXTENSION randflake_coordinator;
DROP EXTENSION randflake_type;

\echo '-- A column default prevents dropping the extension'
CREATE TABLE holds_default (id bigint PRIMARY KEY DEFAULT randflake_generate());
\set VERBOSITY sqlstate
DROP EXTENSION randflake;
\set VERBOSITY default
DROP TABLE holds_default;
DROP EXTENSION randflake;

\echo '-- In separate schemas'
CREATE SCHEMA randflake_test;
CREATE SCHEMA randflake_test_type;
CREATE SCHEMA randflake_test_coordinator;
CREATE EXTENSION randflake SCHEMA randflake_test;
CREATE EXTENSION randflake_type SCHEMA randflake_test_type;
CREATE EXTENSION randflake_coordinator SCHEMA randflake_test_coordinator;
SELECT to_regproc('randflake_generate') IS NULL AND to_regtype('randflake') IS NULL AS not_in_search_path;
SELECT randflake_test.randflake_generate() IS NOT NULL AS generated;
CREATE TABLE elsewhere (
    id bigint PRIMARY KEY DEFAULT randflake_test.randflake_generate(),
    ordered randflake_test_type.randflake UNIQUE DEFAULT randflake_test_type.randflake_next()
);
INSERT INTO elsewhere DEFAULT VALUES;
SELECT ordered::text IS NOT NULL AS shown FROM elsewhere;
SELECT count(*) FROM randflake_test_type.randflake_key;
SELECT randflake_test_coordinator.randflake_lease_configure();

\echo '-- They cannot move: functions name the schema'
ALTER EXTENSION randflake SET SCHEMA public;
ALTER EXTENSION randflake_type SET SCHEMA public;
ALTER EXTENSION randflake_coordinator SET SCHEMA public;

DROP TABLE elsewhere;
DROP EXTENSION randflake_coordinator, randflake_type, randflake;
DROP SCHEMA randflake_test, randflake_test_type, randflake_test_coordinator;
CREATE EXTENSION randflake_type CASCADE;
CREATE EXTENSION randflake_coordinator;
