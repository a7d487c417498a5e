-- Moves a database from serial and identity keys to identifiers. See docs/migrating.md.
--
--   psql -X -1 -v ON_ERROR_STOP=1 -f migrate/randflake_migrate.sql
--
-- plan() lists what moves and what depends on it, and changes nothing. transaction() prints one
-- transaction that moves a group of tables. start() plans the steps of a move during which programs
-- can use the group. todo() prints the remaining steps, and undo() replaces them by steps that
-- reverse the move. The operator runs the printed statements. After all moves the operator runs
-- DROP SCHEMA randflake_migrate CASCADE, which removes this script's objects.
--
-- How the script finds columns and objects
--
-- moving() returns the columns that move: generated keys, and columns that refer to them by foreign
-- keys. A group consists of tables that are connected by foreign keys. A group has the name of its
-- first table. hanging() finds what depends on the columns that move, even through views and
-- functions. "kept" means that PostgreSQL keeps an object through ALTER COLUMN TYPE. "made again"
-- means that the move drops an object and creates it with the SQL that PostgreSQL prints for it.
-- Any other object is a blocker.
--
-- How start() exchanges columns while programs write
--
-- Each column gets a shadow column (new_…). A trigger sets the shadow in every row that a program
-- writes, and fill() sets it in all other rows. Step 7 gives the column's name to the shadow, and
-- renames the column (old_…). After step 7, triggers set the old column in new rows, so undo() can
-- swap the columns back. Before step 7, undo() drops what the steps made.
--
-- A shadow belongs to a number, not to a row, because references to a number remain when another
-- row takes the number. So when an UPDATE or DELETE removes a number from a row, a table of the
-- move keeps the number's shadow for the next row with this number.
--
-- The move makes columns, triggers and checks on a partitioned table, so that later partitions get
-- them. It makes indexes and foreign keys on each partition, because PostgreSQL can make them there
-- while programs write. Later the move builds the partitioned table's indexes and keys from those
-- of the partitions. A check refuses rows without a shadow, even if a program attaches a partition
-- or disables a trigger.
--
-- The names of a move's objects contain the number of the move: randflake_1_… and zzz_randflake_1_…
-- in the schemas of the tables, m1_… in this schema. Only the names of columns lack the number. The
-- steps record the oid of each object that they make, and drop no other objects.
--
-- Security: %I quotes names in SQL, and %L quotes values. Functions and generated SQL set
-- search_path = pg_catalog, pg_temp, and generated SQL qualifies the names of objects in all other
-- schemas. A table's owner can attach code to the table, or replace it by a view. So as_owner()
-- runs, as the owner, all statements that may run such code or parse the owner's text. A move's
-- functions run as the owner too.
--
-- The functions that an operator calls set jit = off, also for what they call: to compile one of
-- these queries takes longer than to run it.

SET LOCAL search_path = pg_catalog, pg_temp;

CREATE SCHEMA randflake_migrate;
COMMENT ON SCHEMA randflake_migrate IS
    'moves a database to identifiers of randflake; see docs/migrating.md';
