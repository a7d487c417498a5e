-- Makes randflake's identifiers in SQL and PL/pgSQL, on servers of PostgreSQL 15 to 19 that cannot
-- load the library. The owner of a database installs this script. See docs/managed.md.
--
--   psql -X -1 -v ON_ERROR_STOP=1 -f managed/randflake.sql
--
-- How sessions get numbers
--
-- All state is in sequences, which a rollback does not change. Each node id has four sequences:
--
--   tickets, hops, leaps
--             logged. Sessions move them only by nextval. Their position is
--             tickets + hops / 64 * 32,768 + leaps / 64 * 16,777,216, with quotients rounded down:
--             a time since 2024-10-27 03:33:20 UTC in 64ths of a second. The session whose nextval
--             of `tickets` makes the position a full second holds that second and may open it.
--   numbers   unlogged. life << 47 | second << 17 | n: the last number in use. nextval returns the
--             next one; the holder of a second sets it to n = 0 of that second. A crash of the
--             server or of a session sets it back to 0, and so does promotion.
--
-- `life` is 16 bits of the server's start time. A number is usable if it has the life of this
-- start, and its second is the clock's second or one of the next 60. These invariants hold:
--
-- 1. Each second has one holder. The position never falls, and each nextval of `tickets` adds 1 to
--    the position. A session reads hops and leaps before and after its nextval. If both reads
--    agree, the session knows the position after its nextval, and no other nextval led to this
--    position.
-- 2. Sessions use each number of each second once. Only the holder of a second sets `numbers` to
--    the second's first number, n = 0. The holder sets it only once, even after a long pause. From
--    there on, each nextval adds one.
-- 3. A second's numbers never reach those of the next second. Before nextval, a session checks that
--    the last number is below 122,880. A session that pauses after this check may take one number
--    too many, or a run of at most 64 if it makes many. All runs together have at most 8,192, so
--    the numbers from 122,880 on are enough for all such sessions.
-- 4. After a crash, no session opens a used second again. A session opens a second only if the
--    position has reached the disk or the second is at most 2 seconds ahead of the clock. After
--    each start, the first second that a session opens is 4 seconds or more ahead of the clock, and
--    beyond the position on disk. From PostgreSQL 17 on, the session flushes the WAL. Before 17, it
--    checks with pg_current_wal_flush_lsn() whether the position has reached the disk. If the
--    position has not reached the disk, the session waits for the clock. After such a wait, a used
--    second can be opened again only if a crash loses its position and the clock steps back during
--    that crash.
-- 5. After a crash, `numbers` is 0 or has another life, so no session uses an earlier number.
-- 6. No session opens a second that is more than 60 seconds ahead of the clock. So a server that
--    takes over a node id with an unknown past begins at a second that is 64 seconds ahead of its
--    clock. It first waits 4 seconds, until that second is only 60 seconds ahead. This is safe if
--    the new server's clock is less than 4 seconds behind the former server's clock. The past is
--    unknown on a promoted standby. Even a synchronous standby may lack the last positions, because
--    only the session that moves the position waits for the standby. The past is also unknown if
--    randflake_configure() gets a node id, makes sequences, or finds that the server, database or
--    timeline has changed. If the secret is new, no node id has a past.
--
-- So uniqueness depends on clocks only in two cases: case 6, and case 4 after a wait for the clock.
-- Rollbacks, isolation levels and snapshots do not affect the values of sequences. If
-- randflake_configure() rolls back, its new sequences are gone. The next call makes new ones, which
-- begin 64 seconds ahead of the clock. To replace the row of randflake_state, the function waits
-- for all transactions that have read the row, and rewrites the table. Older snapshots then see no
-- row. Only this function calls setval for logged sequences.
--
-- How sessions notice that state went back
--
-- Tools may copy, restore, apply or refresh the row and the sequences. These rules show it:
--
-- 1. A second in `numbers`, of any life, is at most the position's. If the position went back and
--    `numbers` did not, randflake_refusal() returns an error.
-- 2. The row stores the transaction that wrote it, and `xmin` tells which one did. A row that a
--    restore wrote is not used.
-- 3. An insert by others gives `numbers` a new file, although the table keeps its row.
--    randflake_guard() skips the rows that a subscription brings.
--
-- No rule sees that the sequences and `numbers` go back together, or that a crash follows. Logical
-- decoding omits the rewrite of a table, so no publication sends the row. It sends an INSERT, which
-- inserts only a row without values.
--
-- PostgreSQL logs 32 values of a sequence in advance, and a crash may skip them. For tickets, 32
-- values are half a second. Hops and leaps bridge idle times. A session moves hops and leaps only
-- if the second that it holds has passed. A session moves hops and leaps only to multiples of 64,
-- so values that a crash skips add nothing to the position.
--
-- Later versions
--
-- One transaction installs a new version over an earlier one. The script replaces functions, which
-- keep their oids, and drops nothing. First it locks randflake_state. A call that waits for this
-- lock finishes the old body of its function, but this body calls new functions. After the old body
-- has read the row, it checks the number that randflake_format() returns. So a version that changes
-- the meaning of state or sequences must also change this number, and must rewrite the table.
--
-- Security
--
-- Functions for ordinary roles are SECURITY DEFINER. Each sets search_path = pg_catalog, pg_temp
-- and qualifies the script's objects, so it calls no function, operator or cast of another role.

SET LOCAL search_path = pg_catalog, pg_temp;
SET LOCAL client_min_messages = warning;
LOCK TABLE pg_catalog.pg_namespace IN ACCESS SHARE MODE;  -- an error outside of a transaction

DO $do$
DECLARE
    owner constant oid := quote_ident(current_user)::regrole;
    installed integer;
BEGIN
    IF current_setting('server_version_num')::integer < 150000 THEN
        RAISE feature_not_supported USING MESSAGE = 'randflake needs PostgreSQL 15 or later',
            DETAIL = 'Earlier ones have no unlogged sequences, by which a crash is told.';
    END IF;
    IF to_regnamespace('randflake') IS NOT NULL THEN
        IF to_regprocedure('randflake.randflake_format()') IS NULL
            OR EXISTS (SELECT FROM pg_namespace AS n
                WHERE n.nspname = 'randflake' AND n.nspowner <> owner)
            OR EXISTS (SELECT FROM pg_class AS c
                WHERE c.relnamespace = 'randflake'::regnamespace AND c.relowner <> owner)
            OR EXISTS (SELECT FROM pg_proc AS p
                WHERE p.pronamespace = 'randflake'::regnamespace AND p.proowner <> owner)
        THEN
            RAISE duplicate_schema USING
                MESSAGE = 'schema "randflake" is not one that this script can change',
                DETAIL = 'Something else made it, or another role owns a part of it.',
                HINT = 'Run the script as the role that installed it, or rename the schema.';
        END IF;
        -- Waits for all transactions that have read the table.
        LOCK TABLE randflake.randflake_state IN ACCESS EXCLUSIVE MODE;
        EXECUTE 'SELECT randflake.randflake_format()' INTO installed;
        IF installed > 1 THEN
            RAISE object_not_in_prerequisite_state USING
                MESSAGE = 'a later version of this script is installed';
        END IF;
    END IF;
    -- Records the objects that an earlier version made, because the script keeps their grants.
    PERFORM set_config('randflake_managed.known', (
        SELECT coalesce(string_agg(d.classid::text || ' ' || d.objid, ','), '')
        FROM pg_depend AS d
        WHERE d.refclassid = 'pg_namespace'::regclass
            AND d.refobjid = to_regnamespace('randflake')), true);
END $do$;

CREATE SCHEMA IF NOT EXISTS randflake;

-- Returns the format of the state and the sequences. A version that changes the format adds 1.
CREATE OR REPLACE FUNCTION randflake.randflake_format() RETURNS integer
LANGUAGE sql IMMUTABLE RETURN 1;
