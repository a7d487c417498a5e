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
-- 3. A second's numbers never reach those of the next second. Before each nextval, a session checks
--    that the last number is below 122,880. A session that pauses after this check may take one
--    number too many. The 8,192 numbers from 122,880 on are enough for all such sessions.
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
END
$do$;

CREATE SCHEMA IF NOT EXISTS randflake;

-- Returns the format of the state and the sequences. A version that changes the format adds 1.
CREATE OR REPLACE FUNCTION randflake.randflake_format() RETURNS integer
LANGUAGE sql IMMUTABLE RETURN 1;

-- The only row contains the arguments of randflake_configure(), including the secret.
CREATE TABLE IF NOT EXISTS randflake.randflake_state (
    node_id      integer NOT NULL CHECK (node_id BETWEEN 0 AND 131071),
    secret       text NOT NULL,      -- lines as in a file of secrets
    valid_from   bigint[] NOT NULL,  -- first second of each secret; 0 for the first
    keys         bigint[] NOT NULL,  -- 25 of each secret, see randflake_key_schedule
    keys53       bigint[] NOT NULL,  -- 2 of each secret, see randflake_permutation_key
    fingerprints text[] NOT NULL,
    tickets      oid NOT NULL,       -- regclass would need the sequence where a row is applied
    hops         oid NOT NULL,
    leaps        oid NOT NULL,
    numbers      oid NOT NULL,
    file         text NOT NULL,      -- path of `numbers` below its tablespace; a copy has another
    identity     text NOT NULL,      -- see randflake_identity
    timeline     text,
    failover     boolean NOT NULL,
    writer       xid NOT NULL        -- the row's xmin, if randflake_configure() wrote the row
);
ALTER TABLE randflake.randflake_state ALTER COLUMN keys SET STORAGE PLAIN;
CREATE UNIQUE INDEX IF NOT EXISTS randflake_state_row ON randflake.randflake_state ((true));

-- Keeps the row from the workers of subscriptions. If others insert a row, as a restore of data
-- does, `numbers` gets a new file. So the script takes this database for a copy, even if the
-- restore then sets back all sequences.
CREATE OR REPLACE FUNCTION randflake.randflake_guard() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    here integer := (SELECT s.node_id FROM randflake.randflake_state AS s);
    numbers regclass;
BEGIN
    IF EXISTS (SELECT FROM pg_stat_subscription AS s WHERE s.pid = pg_backend_pid()) THEN
        RETURN NULL;
    ELSIF TG_OP <> 'INSERT' OR NEW.numbers = 0 THEN  -- randflake_replace() inserts 0
        RETURN CASE TG_OP WHEN 'DELETE' THEN OLD ELSE NEW END;
    END IF;
    numbers := to_regclass(format('randflake.randflake_numbers_%s', coalesce(here, NEW.node_id)));
    IF numbers IS NOT NULL THEN
        EXECUTE format('ALTER SEQUENCE %s RESTART', numbers);
    END IF;
    RETURN CASE WHEN here IS NULL THEN NEW END;
END
$$;
CREATE OR REPLACE TRIGGER randflake_guard
    BEFORE INSERT OR UPDATE OR DELETE ON randflake.randflake_state
    FOR EACH ROW EXECUTE FUNCTION randflake.randflake_guard();
ALTER TABLE randflake.randflake_state ENABLE ALWAYS TRIGGER randflake_guard;

-- The cipher is SPARX-64/128. Its state is a bigint of four words, from the lowest bits on: x and y
-- of the left branch, then x and y of the right branch. A round computes both branches at once.
-- Additions change only x words. Masks prevent carries into other words. A round key is four words.

CREATE OR REPLACE FUNCTION randflake.randflake_key_schedule(secret bytea) RETURNS bigint[]
LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    k integer[];
    words bigint[];  -- 17 groups of 6, the order of the paper
    keys bigint[];   -- of round 1 to 24, then whitening
    left_at integer;
    right_at integer;
    x integer;
    y integer;
BEGIN
    FOR i IN 0..7 LOOP
        k[i] := (get_byte(secret, 2 * i) << 8) | get_byte(secret, 2 * i + 1);
    END LOOP;
    FOR turn IN 1..17 LOOP
        words := words || k[0:5]::bigint[];
        x := ((((k[0] << 9) | (k[0] >> 7)) & 65535) + k[1]) & 65535;
        y := (((k[1] << 2) | (k[1] >> 14)) & 65535) # x;
        k := ARRAY[k[6], (k[7] + turn) & 65535, x, y,
            (k[2] + x) & 65535, (k[3] + y) & 65535, k[4], k[5]];
        k := ('[0:7]=' || k::text)::integer[];
    END LOOP;
    FOR round IN 1..25 LOOP
        left_at := 12 * ((round - 1) / 3) + 2 * ((round - 1) % 3) + 1;
        right_at := left_at + CASE round WHEN 25 THEN 2 ELSE 6 END;
        keys := keys || (words[left_at] | (words[left_at + 1] << 16)
            | (words[right_at] << 32) | (words[right_at + 1] << 48));
    END LOOP;
    RETURN keys;
END
$$;

-- Returns HMAC-SHA-256 under a secret of 32 hexadecimal digits. This function and the next one are
-- in PL/pgSQL, because auto_explain would log the secret as an argument of an SQL function.
CREATE OR REPLACE FUNCTION randflake.randflake_hmac(secret text, message bytea) RETURNS bytea
LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    a constant bigint := ('x' || left(secret, 16))::bit(64)::bigint;
    b constant bigint := ('x' || right(secret, 16))::bit(64)::bigint;
BEGIN
    RETURN sha256(int8send(a # x'5c5c5c5c5c5c5c5c'::bigint)
        || int8send(b # x'5c5c5c5c5c5c5c5c'::bigint) || decode(repeat('5c', 48), 'hex')
        || sha256(int8send(a # x'3636363636363636'::bigint)
            || int8send(b # x'3636363636363636'::bigint) || decode(repeat('36', 48), 'hex')
            || message));
END
$$;

-- Returns the two words of a key that permutes 53-bit numbers. See docs/masking.md.
CREATE OR REPLACE FUNCTION randflake.randflake_permutation_key(secret text, use text, label bytea)
RETURNS bigint[]
LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    h constant bytea := randflake.randflake_hmac(secret,
        convert_to(use, 'UTF8') || decode('00', 'hex') || label);
    k bigint[] := '{0, 0}';
BEGIN
    FOR i IN 0..15 LOOP
        k[i / 8 + 1] := k[i / 8 + 1] | (get_byte(h, i)::bigint << (8 * (i % 8)));
    END LOOP;
    RETURN k;
END
$$;

-- This block has the cipher's rounds, unrolled. Constants select words, or bits of each word:
-- 281470681808895 the x words, 279275953520128 their upper 7 bits, 2194728288767 their lower 9
-- bits, -1125895612137472 and 844424930328576 the upper 14 and lower 2 bits of the y words. The
-- cipher swaps the two bytes of each word. Each third round ends with the linear layer, in which
-- the left branch changes the right one, and both change places.

CREATE OR REPLACE FUNCTION randflake.randflake_encrypt(z bigint, k bigint[]) RETURNS bigint
LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    t bigint;
BEGIN
    z := (((z << 8) & -71777214294589696) | ((z >> 8) & 71777214294589695)) # k[1];
    t := ((((z << 9) & 279275953520128) | ((z >> 7) & 2194728288767))
        + ((z >> 16) & 281470681808895)) & 281470681808895;
    z := (((z << 2) & -1125895612137472) | ((z >> 14) & 844424930328576))
        # (t << 16) # t # k[2];
    t := ((((z << 9) & 279275953520128) | ((z >> 7) & 2194728288767))
        + ((z >> 16) & 281470681808895)) & 281470681808895;
    z := (((z << 2) & -1125895612137472) | ((z >> 14) & 844424930328576))
        # (t << 16) # t # k[3];
    t := ((((z << 9) & 279275953520128) | ((z >> 7) & 2194728288767))
        + ((z >> 16) & 281470681808895)) & 281470681808895;
    z := (((z << 2) & -1125895612137472) | ((z >> 14) & 844424930328576)) # (t << 16) # t;
    z := ((z << 32) | (((z >> 32) # z # ((((((z # (z >> 16)) & 65535) * 65537) >> 8) & 65535)
        * 65537)) & 4294967295)) # k[4];
    t := ((((z << 9) & 279275953520128) | ((z >> 7) & 2194728288767))
        + ((z >> 16) & 281470681808895)) & 281470681808895;
    z := (((z << 2) & -1125895612137472) | ((z >> 14) & 844424930328576))
        # (t << 16) # t # k[5];
    t := ((((z << 9) & 279275953520128) | ((z >> 7) & 2194728288767))
        + ((z >> 16) & 281470681808895)) & 281470681808895;
    z := (((z << 2) & -1125895612137472) | ((z >> 14) & 844424930328576))
        # (t << 16) # t # k[6];
    t := ((((z << 9) & 279275953520128) | ((z >> 7) & 2194728288767))
        + ((z >> 16) & 281470681808895)) & 281470681808895;
    z := (((z << 2) & -1125895612137472) | ((z >> 14) & 844424930328576)) # (t << 16) # t;
    z := ((z << 32) | (((z >> 32) # z # ((((((z # (z >> 16)) & 65535) * 65537) >> 8) & 65535)
        * 65537)) & 4294967295)) # k[7];
    t := ((((z << 9) & 279275953520128) | ((z >> 7) & 2194728288767))
        + ((z >> 16) & 281470681808895)) & 281470681808895;
    z := (((z << 2) & -1125895612137472) | ((z >> 14) & 844424930328576))
        # (t << 16) # t # k[8];
    t := ((((z << 9) & 279275953520128) | ((z >> 7) & 2194728288767))
        + ((z >> 16) & 281470681808895)) & 281470681808895;
    z := (((z << 2) & -1125895612137472) | ((z >> 14) & 844424930328576))
        # (t << 16) # t # k[9];
    t := ((((z << 9) & 279275953520128) | ((z >> 7) & 2194728288767))
        + ((z >> 16) & 281470681808895)) & 281470681808895;
    z := (((z << 2) & -1125895612137472) | ((z >> 14) & 844424930328576)) # (t << 16) # t;
    z := ((z << 32) | (((z >> 32) # z # ((((((z # (z >> 16)) & 65535) * 65537) >> 8) & 65535)
        * 65537)) & 4294967295)) # k[10];
    t := ((((z << 9) & 279275953520128) | ((z >> 7) & 2194728288767))
        + ((z >> 16) & 281470681808895)) & 281470681808895;
    z := (((z << 2) & -1125895612137472) | ((z >> 14) & 844424930328576))
        # (t << 16) # t # k[11];
    t := ((((z << 9) & 279275953520128) | ((z >> 7) & 2194728288767))
        + ((z >> 16) & 281470681808895)) & 281470681808895;
    z := (((z << 2) & -1125895612137472) | ((z >> 14) & 844424930328576))
        # (t << 16) # t # k[12];
    t := ((((z << 9) & 279275953520128) | ((z >> 7) & 2194728288767))
        + ((z >> 16) & 281470681808895)) & 281470681808895;
    z := (((z << 2) & -1125895612137472) | ((z >> 14) & 844424930328576)) # (t << 16) # t;
    z := ((z << 32) | (((z >> 32) # z # ((((((z # (z >> 16)) & 65535) * 65537) >> 8) & 65535)
        * 65537)) & 4294967295)) # k[13];
    t := ((((z << 9) & 279275953520128) | ((z >> 7) & 2194728288767))
        + ((z >> 16) & 281470681808895)) & 281470681808895;
    z := (((z << 2) & -1125895612137472) | ((z >> 14) & 844424930328576))
        # (t << 16) # t # k[14];
    t := ((((z << 9) & 279275953520128) | ((z >> 7) & 2194728288767))
        + ((z >> 16) & 281470681808895)) & 281470681808895;
    z := (((z << 2) & -1125895612137472) | ((z >> 14) & 844424930328576))
        # (t << 16) # t # k[15];
    t := ((((z << 9) & 279275953520128) | ((z >> 7) & 2194728288767))
        + ((z >> 16) & 281470681808895)) & 281470681808895;
    z := (((z << 2) & -1125895612137472) | ((z >> 14) & 844424930328576)) # (t << 16) # t;
    z := ((z << 32) | (((z >> 32) # z # ((((((z # (z >> 16)) & 65535) * 65537) >> 8) & 65535)
        * 65537)) & 4294967295)) # k[16];
    t := ((((z << 9) & 279275953520128) | ((z >> 7) & 2194728288767))
        + ((z >> 16) & 281470681808895)) & 281470681808895;
    z := (((z << 2) & -1125895612137472) | ((z >> 14) & 844424930328576))
        # (t << 16) # t # k[17];
    t := ((((z << 9) & 279275953520128) | ((z >> 7) & 2194728288767))
        + ((z >> 16) & 281470681808895)) & 281470681808895;
    z := (((z << 2) & -1125895612137472) | ((z >> 14) & 844424930328576))
        # (t << 16) # t # k[18];
    t := ((((z << 9) & 279275953520128) | ((z >> 7) & 2194728288767))
        + ((z >> 16) & 281470681808895)) & 281470681808895;
    z := (((z << 2) & -1125895612137472) | ((z >> 14) & 844424930328576)) # (t << 16) # t;
    z := ((z << 32) | (((z >> 32) # z # ((((((z # (z >> 16)) & 65535) * 65537) >> 8) & 65535)
        * 65537)) & 4294967295)) # k[19];
    t := ((((z << 9) & 279275953520128) | ((z >> 7) & 2194728288767))
        + ((z >> 16) & 281470681808895)) & 281470681808895;
    z := (((z << 2) & -1125895612137472) | ((z >> 14) & 844424930328576))
        # (t << 16) # t # k[20];
    t := ((((z << 9) & 279275953520128) | ((z >> 7) & 2194728288767))
        + ((z >> 16) & 281470681808895)) & 281470681808895;
    z := (((z << 2) & -1125895612137472) | ((z >> 14) & 844424930328576))
        # (t << 16) # t # k[21];
    t := ((((z << 9) & 279275953520128) | ((z >> 7) & 2194728288767))
        + ((z >> 16) & 281470681808895)) & 281470681808895;
    z := (((z << 2) & -1125895612137472) | ((z >> 14) & 844424930328576)) # (t << 16) # t;
    z := ((z << 32) | (((z >> 32) # z # ((((((z # (z >> 16)) & 65535) * 65537) >> 8) & 65535)
        * 65537)) & 4294967295)) # k[22];
    t := ((((z << 9) & 279275953520128) | ((z >> 7) & 2194728288767))
        + ((z >> 16) & 281470681808895)) & 281470681808895;
    z := (((z << 2) & -1125895612137472) | ((z >> 14) & 844424930328576))
        # (t << 16) # t # k[23];
    t := ((((z << 9) & 279275953520128) | ((z >> 7) & 2194728288767))
        + ((z >> 16) & 281470681808895)) & 281470681808895;
    z := (((z << 2) & -1125895612137472) | ((z >> 14) & 844424930328576))
        # (t << 16) # t # k[24];
    t := ((((z << 9) & 279275953520128) | ((z >> 7) & 2194728288767))
        + ((z >> 16) & 281470681808895)) & 281470681808895;
    z := (((z << 2) & -1125895612137472) | ((z >> 14) & 844424930328576)) # (t << 16) # t;
    z := ((z << 32) | (((z >> 32) # z # ((((((z # (z >> 16)) & 65535) * 65537) >> 8) & 65535)
        * 65537)) & 4294967295)) # k[25];
    RETURN ((z << 8) & -71777214294589696) | ((z >> 8) & 71777214294589695);
END
$$;

CREATE OR REPLACE FUNCTION randflake.randflake_decrypt(z bigint, k bigint[]) RETURNS bigint
LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    t bigint;
BEGIN
    z := ((z << 8) & -71777214294589696) | ((z >> 8) & 71777214294589695);
    FOR round IN REVERSE 24..1 LOOP
        z := z # k[round + 1];
        IF round % 3 = 0 THEN
            z := (z << 32) | ((z >> 32) & 4294967295);
            t := (((((z # (z >> 16)) & 65535) * 65537) >> 8) & 65535) * 65537;
            z := z # ((z # t) << 32);
        END IF;
        t := ((z >> 16) # z) & 281470681808895;
        t := ((t >> 2) | (t << 14)) & 281470681808895;
        z := ((z & 281470681808895) + 281474976776192 - t) & 281470681808895;
        z := (((z >> 9) | (z << 7)) & 281470681808895) | (t << 16);
    END LOOP;
    z := z # k[1];
    RETURN ((z << 8) & -71777214294589696) | ((z >> 8) & 71777214294589695);
END
$$;

-- Permutes the 53-bit numbers: a Feistel network of 10 rounds, with SipHash-2-4 as its function.
-- The additions handle the lower 62 and the upper 2 bits separately, because PostgreSQL raises an
-- error on overflow.
CREATE OR REPLACE FUNCTION randflake.randflake_permute(number bigint, k bigint[], inverse boolean)
RETURNS bigint
LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    l bigint := number >> 27;
    r bigint := number & 134217727;
    m bigint;
    s bigint;
    a bigint; b bigint; c bigint; d bigint;
BEGIN
    FOR i IN 0..9 LOOP
        m := CASE WHEN inverse THEN 9 - i ELSE i END;
        m := (m << 32) | CASE m & 1 WHEN 0 THEN r ELSE l END;
        a := k[1] # 8317987319222330741;
        b := k[2] # 7237128888997146477;
        c := k[1] # 7816392313619706465;
        d := k[2] # 8387220255154660723 # m;
        FOR turn IN 1..8 LOOP
            IF turn = 3 THEN
                a := a # m;
                d := d # 576460752303423488;
            ELSIF turn = 5 THEN
                a := a # 576460752303423488;
                c := c # 255;
            END IF;
            s := (a & 4611686018427387903) + (b & 4611686018427387903);
            a := (s & 4611686018427387903) | (((a >> 62) + (b >> 62) + (s >> 62)) << 62);
            b := ((b << 13) | ((b >> 51) & 8191)) # a;
            s := (c & 4611686018427387903) + (d & 4611686018427387903);
            c := (s & 4611686018427387903) | (((c >> 62) + (d >> 62) + (s >> 62)) << 62);
            d := ((d << 16) | ((d >> 48) & 65535)) # c;
            a := (a << 32) | ((a >> 32) & 4294967295);
            s := (c & 4611686018427387903) + (b & 4611686018427387903);
            c := (s & 4611686018427387903) | (((c >> 62) + (b >> 62) + (s >> 62)) << 62);
            b := ((b << 17) | ((b >> 47) & 131071)) # c;
            s := (a & 4611686018427387903) + (d & 4611686018427387903);
            a := (s & 4611686018427387903) | (((a >> 62) + (d >> 62) + (s >> 62)) << 62);
            d := ((d << 21) | ((d >> 43) & 2097151)) # a;
            c := (c << 32) | ((c >> 32) & 4294967295);
        END LOOP;
        IF (m >> 32) & 1 = 0 THEN
            l := l # ((a # b # c # d) & 67108863);
        ELSE
            r := r # ((a # b # c # d) & 134217727);
        END IF;
    END LOOP;
    RETURN (l << 27) | r;
END
$$;

-- Reads the state. Sets v to the last number, or to NULL if `numbers` is not the configured
-- sequence. Sets now_ to the first number of the clock's second.

-- Checks the number again after nextval, because another session may have opened a new second.
CREATE OR REPLACE FUNCTION randflake.randflake_generate() RETURNS bigint
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    c randflake.randflake_state;
    now_ bigint;
    v bigint;
    z bigint;
    t bigint;
BEGIN
    LOOP
        SELECT * INTO c FROM randflake.randflake_state AS s WHERE s.xmin = s.writer;
        IF randflake.randflake_format() <> 1 THEN  -- replaced while this body waited for the row
            RAISE serialization_failure USING MESSAGE = 'randflake was updated during this call',
                HINT = 'Repeat the transaction.';
        END IF;
        v := CASE WHEN pg_relation_filepath(c.numbers) LIKE c.file AND NOT pg_is_in_recovery()
            THEN pg_sequence_last_value(c.numbers) END;
        now_ := ((date_part('microseconds', pg_postmaster_start_time())::bigint & 65535) << 47)
            | ((floor(date_part('epoch', clock_timestamp()))::bigint - 1730000000) << 17);
        IF (v - now_ BETWEEN 0 AND 7995391 AND (v & 131071) < 122880) IS NOT TRUE THEN
            PERFORM randflake.randflake_open();
            CONTINUE;
        END IF;
        v := nextval(c.numbers);
        CONTINUE WHEN v - now_ NOT BETWEEN 0 AND 7995391;
        z := (((v >> 17) & 1073741823) << 34) | (c.node_id::bigint << 17) | (v & 131071);
        EXIT WHEN cardinality(c.valid_from) = 1;
        z := randflake.randflake_ring_encrypt(z, c.valid_from, c.keys);
        CONTINUE WHEN z IS NULL;
        RETURN z;
    END LOOP;
    z := (((z << 8) & -71777214294589696) | ((z >> 8) & 71777214294589695)) # c.keys[1];
    t := ((((z << 9) & 279275953520128) | ((z >> 7) & 2194728288767))
        + ((z >> 16) & 281470681808895)) & 281470681808895;
    z := (((z << 2) & -1125895612137472) | ((z >> 14) & 844424930328576))
        # (t << 16) # t # c.keys[2];
    t := ((((z << 9) & 279275953520128) | ((z >> 7) & 2194728288767))
        + ((z >> 16) & 281470681808895)) & 281470681808895;
    z := (((z << 2) & -1125895612137472) | ((z >> 14) & 844424930328576))
        # (t << 16) # t # c.keys[3];
    t := ((((z << 9) & 279275953520128) | ((z >> 7) & 2194728288767))
        + ((z >> 16) & 281470681808895)) & 281470681808895;
    z := (((z << 2) & -1125895612137472) | ((z >> 14) & 844424930328576)) # (t << 16) # t;
    z := ((z << 32) | (((z >> 32) # z # ((((((z # (z >> 16)) & 65535) * 65537) >> 8) & 65535)
        * 65537)) & 4294967295)) # c.keys[4];
    t := ((((z << 9) & 279275953520128) | ((z >> 7) & 2194728288767))
        + ((z >> 16) & 281470681808895)) & 281470681808895;
    z := (((z << 2) & -1125895612137472) | ((z >> 14) & 844424930328576))
        # (t << 16) # t # c.keys[5];
    t := ((((z << 9) & 279275953520128) | ((z >> 7) & 2194728288767))
        + ((z >> 16) & 281470681808895)) & 281470681808895;
    z := (((z << 2) & -1125895612137472) | ((z >> 14) & 844424930328576))
        # (t << 16) # t # c.keys[6];
    t := ((((z << 9) & 279275953520128) | ((z >> 7) & 2194728288767))
        + ((z >> 16) & 281470681808895)) & 281470681808895;
    z := (((z << 2) & -1125895612137472) | ((z >> 14) & 844424930328576)) # (t << 16) # t;
    z := ((z << 32) | (((z >> 32) # z # ((((((z # (z >> 16)) & 65535) * 65537) >> 8) & 65535)
        * 65537)) & 4294967295)) # c.keys[7];
    t := ((((z << 9) & 279275953520128) | ((z >> 7) & 2194728288767))
        + ((z >> 16) & 281470681808895)) & 281470681808895;
    z := (((z << 2) & -1125895612137472) | ((z >> 14) & 844424930328576))
        # (t << 16) # t # c.keys[8];
    t := ((((z << 9) & 279275953520128) | ((z >> 7) & 2194728288767))
        + ((z >> 16) & 281470681808895)) & 281470681808895;
    z := (((z << 2) & -1125895612137472) | ((z >> 14) & 844424930328576))
        # (t << 16) # t # c.keys[9];
    t := ((((z << 9) & 279275953520128) | ((z >> 7) & 2194728288767))
        + ((z >> 16) & 281470681808895)) & 281470681808895;
    z := (((z << 2) & -1125895612137472) | ((z >> 14) & 844424930328576)) # (t << 16) # t;
    z := ((z << 32) | (((z >> 32) # z # ((((((z # (z >> 16)) & 65535) * 65537) >> 8) & 65535)
        * 65537)) & 4294967295)) # c.keys[10];
    t := ((((z << 9) & 279275953520128) | ((z >> 7) & 2194728288767))
        + ((z >> 16) & 281470681808895)) & 281470681808895;
    z := (((z << 2) & -1125895612137472) | ((z >> 14) & 844424930328576))
        # (t << 16) # t # c.keys[11];
    t := ((((z << 9) & 279275953520128) | ((z >> 7) & 2194728288767))
        + ((z >> 16) & 281470681808895)) & 281470681808895;
    z := (((z << 2) & -1125895612137472) | ((z >> 14) & 844424930328576))
        # (t << 16) # t # c.keys[12];
    t := ((((z << 9) & 279275953520128) | ((z >> 7) & 2194728288767))
        + ((z >> 16) & 281470681808895)) & 281470681808895;
    z := (((z << 2) & -1125895612137472) | ((z >> 14) & 844424930328576)) # (t << 16) # t;
    z := ((z << 32) | (((z >> 32) # z # ((((((z # (z >> 16)) & 65535) * 65537) >> 8) & 65535)
        * 65537)) & 4294967295)) # c.keys[13];
    t := ((((z << 9) & 279275953520128) | ((z >> 7) & 2194728288767))
        + ((z >> 16) & 281470681808895)) & 281470681808895;
    z := (((z << 2) & -1125895612137472) | ((z >> 14) & 844424930328576))
        # (t << 16) # t # c.keys[14];
    t := ((((z << 9) & 279275953520128) | ((z >> 7) & 2194728288767))
        + ((z >> 16) & 281470681808895)) & 281470681808895;
    z := (((z << 2) & -1125895612137472) | ((z >> 14) & 844424930328576))
        # (t << 16) # t # c.keys[15];
    t := ((((z << 9) & 279275953520128) | ((z >> 7) & 2194728288767))
        + ((z >> 16) & 281470681808895)) & 281470681808895;
    z := (((z << 2) & -1125895612137472) | ((z >> 14) & 844424930328576)) # (t << 16) # t;
    z := ((z << 32) | (((z >> 32) # z # ((((((z # (z >> 16)) & 65535) * 65537) >> 8) & 65535)
        * 65537)) & 4294967295)) # c.keys[16];
    t := ((((z << 9) & 279275953520128) | ((z >> 7) & 2194728288767))
        + ((z >> 16) & 281470681808895)) & 281470681808895;
    z := (((z << 2) & -1125895612137472) | ((z >> 14) & 844424930328576))
        # (t << 16) # t # c.keys[17];
    t := ((((z << 9) & 279275953520128) | ((z >> 7) & 2194728288767))
        + ((z >> 16) & 281470681808895)) & 281470681808895;
    z := (((z << 2) & -1125895612137472) | ((z >> 14) & 844424930328576))
        # (t << 16) # t # c.keys[18];
    t := ((((z << 9) & 279275953520128) | ((z >> 7) & 2194728288767))
        + ((z >> 16) & 281470681808895)) & 281470681808895;
    z := (((z << 2) & -1125895612137472) | ((z >> 14) & 844424930328576)) # (t << 16) # t;
    z := ((z << 32) | (((z >> 32) # z # ((((((z # (z >> 16)) & 65535) * 65537) >> 8) & 65535)
        * 65537)) & 4294967295)) # c.keys[19];
    t := ((((z << 9) & 279275953520128) | ((z >> 7) & 2194728288767))
        + ((z >> 16) & 281470681808895)) & 281470681808895;
    z := (((z << 2) & -1125895612137472) | ((z >> 14) & 844424930328576))
        # (t << 16) # t # c.keys[20];
    t := ((((z << 9) & 279275953520128) | ((z >> 7) & 2194728288767))
        + ((z >> 16) & 281470681808895)) & 281470681808895;
    z := (((z << 2) & -1125895612137472) | ((z >> 14) & 844424930328576))
        # (t << 16) # t # c.keys[21];
    t := ((((z << 9) & 279275953520128) | ((z >> 7) & 2194728288767))
        + ((z >> 16) & 281470681808895)) & 281470681808895;
    z := (((z << 2) & -1125895612137472) | ((z >> 14) & 844424930328576)) # (t << 16) # t;
    z := ((z << 32) | (((z >> 32) # z # ((((((z # (z >> 16)) & 65535) * 65537) >> 8) & 65535)
        * 65537)) & 4294967295)) # c.keys[22];
    t := ((((z << 9) & 279275953520128) | ((z >> 7) & 2194728288767))
        + ((z >> 16) & 281470681808895)) & 281470681808895;
    z := (((z << 2) & -1125895612137472) | ((z >> 14) & 844424930328576))
        # (t << 16) # t # c.keys[23];
    t := ((((z << 9) & 279275953520128) | ((z >> 7) & 2194728288767))
        + ((z >> 16) & 281470681808895)) & 281470681808895;
    z := (((z << 2) & -1125895612137472) | ((z >> 14) & 844424930328576))
        # (t << 16) # t # c.keys[24];
    t := ((((z << 9) & 279275953520128) | ((z >> 7) & 2194728288767))
        + ((z >> 16) & 281470681808895)) & 281470681808895;
    z := (((z << 2) & -1125895612137472) | ((z >> 14) & 844424930328576)) # (t << 16) # t;
    z := ((z << 32) | (((z >> 32) # z # ((((((z # (z >> 16)) & 65535) * 65537) >> 8) & 65535)
        * 65537)) & 4294967295)) # c.keys[25];
    RETURN ((z << 8) & -71777214294589696) | ((z >> 8) & 71777214294589695);
END
$$;

-- These functions make many identifiers in one call. 53-bit identifiers use the first 32,768
-- numbers of a second. After nextval, a session skips numbers that are not usable.

CREATE OR REPLACE FUNCTION randflake.randflake_generate(count integer) RETURNS SETOF bigint
LANGUAGE plpgsql VOLATILE STRICT SECURITY DEFINER SET search_path = pg_catalog, pg_temp
SET plan_cache_mode = force_generic_plan SET jit = off AS $$
DECLARE
    c randflake.randflake_state;
    now_ bigint;
    v bigint;
    raw bigint[];
    wanted integer := count;
    made integer;
BEGIN
    IF count < 0 THEN
        RAISE invalid_parameter_value USING
            MESSAGE = 'number of identifiers must not be negative';
    END IF;
    WHILE wanted > 0 LOOP
        SELECT * INTO c FROM randflake.randflake_state AS s WHERE s.xmin = s.writer;
        IF randflake.randflake_format() <> 1 THEN  -- replaced while this body waited for the row
            RAISE serialization_failure USING MESSAGE = 'randflake was updated during this call',
                HINT = 'Repeat the transaction.';
        END IF;
        v := CASE WHEN pg_relation_filepath(c.numbers) LIKE c.file AND NOT pg_is_in_recovery()
            THEN pg_sequence_last_value(c.numbers) END;
        now_ := ((date_part('microseconds', pg_postmaster_start_time())::bigint & 65535) << 47)
            | ((floor(date_part('epoch', clock_timestamp()))::bigint - 1730000000) << 17);
        IF (v - now_ BETWEEN 0 AND 7995391 AND (v & 131071) < 122880) IS NOT TRUE THEN
            PERFORM randflake.randflake_open(122880);
            CONTINUE;
        END IF;
        raw := ARRAY(SELECT (((n.v >> 17) & 1073741823) << 34)
                | (c.node_id::bigint << 17) | (n.v & 131071)
            FROM (SELECT CASE WHEN (pg_sequence_last_value(c.numbers) & 131071) < 122880
                    THEN nextval(c.numbers) END AS v
                FROM generate_series(1, least(wanted, 4096))) AS n
            WHERE n.v - now_ BETWEEN 0 AND 7995391 AND (n.v & 131071) < 131072);
        IF cardinality(c.valid_from) = 1 THEN
            RETURN QUERY SELECT randflake.randflake_encrypt_many(raw, c.keys);
        ELSE
            RETURN QUERY SELECT i.id FROM (
                SELECT randflake.randflake_ring_encrypt(n, c.valid_from, c.keys) AS id
                FROM unnest(raw) AS n OFFSET 0) AS i WHERE i.id IS NOT NULL;
        END IF;
        GET DIAGNOSTICS made = ROW_COUNT;
        wanted := wanted - made;
    END LOOP;
END
$$;

CREATE OR REPLACE FUNCTION randflake.randflake53_generate(count integer) RETURNS SETOF bigint
LANGUAGE plpgsql VOLATILE STRICT SECURITY DEFINER SET search_path = pg_catalog, pg_temp
SET plan_cache_mode = force_generic_plan SET jit = off AS $$
DECLARE
    c randflake.randflake_state;
    now_ bigint;
    v bigint;
    raw bigint[];
    wanted integer := count;
    made integer;
BEGIN
    IF count < 0 THEN
        RAISE invalid_parameter_value USING
            MESSAGE = 'number of identifiers must not be negative';
    END IF;
    WHILE wanted > 0 LOOP
        SELECT * INTO c FROM randflake.randflake_state AS s WHERE s.xmin = s.writer;
        IF randflake.randflake_format() <> 1 THEN  -- replaced while this body waited for the row
            RAISE serialization_failure USING MESSAGE = 'randflake was updated during this call',
                HINT = 'Repeat the transaction.';
        END IF;
        v := CASE WHEN pg_relation_filepath(c.numbers) LIKE c.file AND NOT pg_is_in_recovery()
            THEN pg_sequence_last_value(c.numbers) END;
        now_ := ((date_part('microseconds', pg_postmaster_start_time())::bigint & 65535) << 47)
            | ((floor(date_part('epoch', clock_timestamp()))::bigint - 1730000000) << 17);
        IF c.node_id > 255 THEN
            RAISE object_not_in_prerequisite_state USING
                MESSAGE = format('node ids %1$s to %1$s do not fit in 53-bit identifiers',
                    c.node_id),
                DETAIL = 'They have 8 bits for node ids, which are from 0 to 255.',
                HINT = 'Run SELECT randflake.randflake_configure(NULL, 1), with a node id up to '
                    '255 that no other database uses.';
        END IF;
        IF (v - now_ BETWEEN 0 AND 7995391 AND (v & 131071) < 32768) IS NOT TRUE THEN
            PERFORM randflake.randflake_open(32768);
            CONTINUE;
        END IF;
        raw := ARRAY(SELECT (((n.v >> 17) & 1073741823) << 23)
                | (c.node_id::bigint << 15) | (n.v & 131071)
            FROM (SELECT CASE WHEN (pg_sequence_last_value(c.numbers) & 131071) < 32768
                    THEN nextval(c.numbers) END AS v
                FROM generate_series(1, least(wanted, 4096))) AS n
            WHERE n.v - now_ BETWEEN 0 AND 7995391 AND (n.v & 131071) < 32768);
        RETURN QUERY SELECT i.id FROM (
            SELECT randflake.randflake53_ring_encrypt(n, c.valid_from, c.keys53) AS id
            FROM unnest(raw) AS n OFFSET 0) AS i WHERE i.id IS NOT NULL;
        GET DIAGNOSTICS made = ROW_COUNT;
        wanted := wanted - made;
    END LOOP;
END
$$;

-- These functions encrypt many numbers by bit slicing (Biham, "A Fast New DES Implementation in
-- Software", FSE 1997). Each bit string holds the bits at one position of all states, so rotations
-- cost nothing, and additions go bit by bit. A slice's first half belongs to the left branch, the
-- second half to the right.

-- A bit's place is a number of 6 + n bits: first the state's index, then the bit's index in the
-- state. Exchanging the lowest 6 with the highest 6 bits of all places turns states into slices,
-- and slices into states. Step i exchanges bits i and i + n. This function returns what each step
-- exchanges: element i marks places with bit i = 1 and bit i + n = 0.
CREATE OR REPLACE FUNCTION randflake.randflake_swaps(size integer) RETURNS varbit[]
LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    hex text;
    swaps varbit[];
BEGIN
    FOR i IN 0..5 LOOP
        hex := CASE i WHEN 0 THEN '5' WHEN 1 THEN '3'
            ELSE repeat('0', 1 << (i - 2)) || repeat('f', 1 << (i - 2)) END;
        hex := repeat(hex, (size << i) / 4 / length(hex)) || repeat('0', (size << i) / 4);
        swaps[i] := ('x' || repeat(hex, 32 >> i))::varbit;
    END LOOP;
    RETURN swaps;
END
$$;

-- A round turns x and y into u and v, and adds its key: to x, and to the sum of x and y.
CREATE OR REPLACE FUNCTION randflake.randflake_encrypt_many(numbers bigint[], k bigint[])
RETURNS SETOF bigint
LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    size  constant integer := 1 << ceil(log(2.0, greatest(cardinality(numbers), 64)))::integer;
    swaps varbit[];
    ones  varbit[];  -- all zeros; ones on the left; on the right; all ones
    all_  varbit;    -- all states
    key   bigint;
    sum   bigint;    -- bit i: key bits i and i + 16
    x varbit[]; y varbit[]; u varbit[]; v varbit[];
    s varbit; t varbit; carry varbit;
BEGIN
    IF cardinality(numbers) < 64 THEN
        RETURN QUERY SELECT randflake.randflake_encrypt(number, k) FROM unnest(numbers) AS number;
        RETURN;
    END IF;
    swaps := randflake.randflake_swaps(size);
    SELECT ('x' || rpad(encode(string_agg(int8send(((z << 8) & -71777214294589696)
        | ((z >> 8) & 71777214294589695)), '' ORDER BY o), 'hex'), 16 * size, '0'))::varbit
    INTO all_ FROM unnest(numbers) WITH ORDINALITY AS a (z, o);
    FOR i IN 0..5 LOOP
        s := (all_ # (all_ << ((size - 1) << i))) & swaps[i];
        all_ := all_ # s # (s >> ((size - 1) << i));
    END LOOP;
    FOR i IN 0..3 LOOP
        ones[i] := ('x' || repeat(CASE i & 1 WHEN 1 THEN 'f' ELSE '0' END, size / 4)
            || repeat(CASE i & 2 WHEN 2 THEN 'f' ELSE '0' END, size / 4))::varbit;
    END LOOP;
    FOR i IN 0..15 LOOP
        x[i] := (substring(all_, (63 - i) * size + 1, size)
            || substring(all_, (31 - i) * size + 1, size))
            # ones[((k[1] >> i) & 1) | ((k[1] >> (31 + i)) & 2)];
        y[i] := (substring(all_, (47 - i) * size + 1, size)
            || substring(all_, (15 - i) * size + 1, size))
            # ones[((k[1] >> (16 + i)) & 1) | ((k[1] >> (47 + i)) & 2)];
    END LOOP;

    FOR round IN 3..24 BY 3 LOOP  -- three rounds and a linear layer
        carry := ones[0];
        key := k[round-2 + 1];
        sum := key # (key >> 16);
        FOR i IN 0..15 LOOP
            s := x[(i + 7) & 15] # y[i];
            u[i] := s # carry # ones[((key >> i) & 1) | ((key >> (31 + i)) & 2)];
            v[i] := y[(i + 14) & 15] # u[i] # ones[((sum >> i) & 1) | ((sum >> (31 + i)) & 2)];
            carry := y[i] # (s & (y[i] # carry));
        END LOOP;
        carry := ones[0];
        key := k[round-1 + 1];
        sum := key # (key >> 16);
        FOR i IN 0..15 LOOP
            s := u[(i + 7) & 15] # v[i];
            x[i] := s # carry # ones[((key >> i) & 1) | ((key >> (31 + i)) & 2)];
            y[i] := v[(i + 14) & 15] # x[i] # ones[((sum >> i) & 1) | ((sum >> (31 + i)) & 2)];
            carry := v[i] # (s & (v[i] # carry));
        END LOOP;
        carry := ones[0];
        FOR i IN 0..15 LOOP
            s := x[(i + 7) & 15] # y[i];
            u[i] := s # carry;
            v[i] := y[(i + 14) & 15] # u[i];
            carry := y[i] # (s & (y[i] # carry));
        END LOOP;
        key := k[round + 1];
        FOR i IN 0..15 LOOP
            s := substring(u[(i + 8) & 15] # v[(i + 8) & 15], 1, size);
            t := substring(u[i], 1, size);
            x[i] := ((substring(u[i], size + 1) # t # s) || t)
                # ones[((key >> i) & 1) | ((key >> (31 + i)) & 2)];
            t := substring(v[i], 1, size);
            y[i] := ((substring(v[i], size + 1) # t # s) || t)
                # ones[((key >> (16 + i)) & 1) | ((key >> (47 + i)) & 2)];
        END LOOP;
    END LOOP;

    all_ := '';
    FOR i IN 0..63 LOOP
        t := CASE (i >> 4) & 1 WHEN 0 THEN y[15 - (i & 15)] ELSE x[15 - (i & 15)] END;
        all_ := all_ || substring(t, CASE i >> 5 WHEN 0 THEN size + 1 ELSE 1 END, size);
    END LOOP;
    FOR i IN 0..5 LOOP
        s := (all_ # (all_ << ((size - 1) << i))) & swaps[i];
        all_ := all_ # s # (s >> ((size - 1) << i));
    END LOOP;
    RETURN QUERY SELECT ((z << 8) & -71777214294589696) | ((z >> 8) & 71777214294589695)
        FROM (SELECT substring(all_, 64 * i + 1, 64)::bigint AS z
            FROM generate_series(0, cardinality(numbers) - 1) AS i OFFSET 0) AS a;
END
$$;

-- Returns the 1-based index of the secret that owns a number. See src/core/secret/secret_ring.h.
CREATE OR REPLACE FUNCTION randflake.randflake_owner(raw bigint, valid_from bigint[])
RETURNS integer
LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF raw & 17179869183 = 0 THEN
        RETURN 1;
    END IF;
    FOR i IN REVERSE cardinality(valid_from)..2 LOOP
        IF (raw >> 34) & 1073741823 >= valid_from[i] THEN
            RETURN i;
        END IF;
    END LOOP;
    RETURN 1;
END
$$;

-- These functions return NULL when they encrypt a skipped number, or decrypt an identifier that no
-- secret made. A 53-bit identifier belongs to the secret that is in use in the identifier's second.

CREATE OR REPLACE FUNCTION randflake.randflake_ring_encrypt(
    raw bigint, valid_from bigint[], keys bigint[]) RETURNS bigint
LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    owned bigint;  -- a number that has the same owner
    owner integer;
    id bigint;
BEGIN
    owned := raw;
    owner := randflake.randflake_owner(owned, valid_from);
    id := randflake.randflake_encrypt(raw, keys[25 * owner - 24 : 25 * owner]);
    FOR i IN 1..owner - 1 LOOP
        raw := randflake.randflake_decrypt(id, keys[25 * i - 24 : 25 * i]);
        owned := raw;
        IF randflake.randflake_owner(owned, valid_from) = i THEN
            RETURN NULL;
        END IF;
    END LOOP;
    RETURN id;
END
$$;

CREATE OR REPLACE FUNCTION randflake.randflake_ring_decrypt(
    id bigint, valid_from bigint[], keys bigint[]) RETURNS bigint
LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    owned bigint;
    raw bigint;
BEGIN
    FOR i IN 1..cardinality(valid_from) LOOP
        raw := randflake.randflake_decrypt(id, keys[25 * i - 24 : 25 * i]);
        owned := raw;
        IF randflake.randflake_owner(owned, valid_from) = i THEN
            RETURN raw;
        END IF;
    END LOOP;
    RETURN NULL;
END
$$;

CREATE OR REPLACE FUNCTION randflake.randflake53_ring_encrypt(
    raw bigint, valid_from bigint[], keys bigint[]) RETURNS bigint
LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    owned bigint;  -- a number that has the same owner
    owner integer;
    id bigint;
BEGIN
    owned := ((raw >> 23) << 34) | 1;
    owner := randflake.randflake_owner(owned, valid_from);
    id := randflake.randflake_permute(raw, keys[2 * owner - 1 : 2 * owner], false);
    FOR i IN 1..owner - 1 LOOP
        raw := randflake.randflake_permute(id, keys[2 * i - 1 : 2 * i], true);
        owned := ((raw >> 23) << 34) | 1;
        IF randflake.randflake_owner(owned, valid_from) = i THEN
            RETURN NULL;
        END IF;
    END LOOP;
    RETURN id;
END
$$;

CREATE OR REPLACE FUNCTION randflake.randflake53_ring_decrypt(
    id bigint, valid_from bigint[], keys bigint[]) RETURNS bigint
LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    owned bigint;
    raw bigint;
BEGIN
    FOR i IN 1..cardinality(valid_from) LOOP
        raw := randflake.randflake_permute(id, keys[2 * i - 1 : 2 * i], true);
        owned := ((raw >> 23) << 34) | 1;
        IF randflake.randflake_owner(owned, valid_from) = i THEN
            RETURN raw;
        END IF;
    END LOOP;
    RETURN NULL;
END
$$;

-- The state machine

-- Returns texts that identify the server, the database and the timeline. In a clone, branch or
-- restored dump, the texts differ from the original's if SQL can tell the copy from the original.
CREATE OR REPLACE FUNCTION randflake.randflake_identity(OUT identity text, OUT timeline text)
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    identity := (SELECT oid FROM pg_database WHERE datname = current_database()) || ' '
        || coalesce(current_setting('neon.timeline_id', true), '');
    BEGIN
        identity := identity || ' ' || (SELECT system_identifier FROM pg_control_system());
    EXCEPTION WHEN OTHERS THEN NULL;  -- a service may not allow this
    END;
    BEGIN
        timeline := left(pg_walfile_name(pg_current_wal_insert_lsn()), 8);
    EXCEPTION WHEN OTHERS THEN NULL;
    END;
END
$$;

-- Returns the part of the position that comes from hops and leaps.
CREATE OR REPLACE FUNCTION randflake.randflake_leapt(hops regclass, leaps regclass) RETURNS bigint
LANGUAGE sql VOLATILE
RETURN ((pg_sequence_last_value(hops) >> 6) << 15) + ((pg_sequence_last_value(leaps) >> 6) << 24);

CREATE OR REPLACE FUNCTION randflake.randflake_position(
    tickets regclass, hops regclass, leaps regclass) RETURNS bigint
LANGUAGE sql VOLATILE
RETURN pg_sequence_last_value(tickets) + randflake.randflake_leapt(hops, leaps);

-- Reports a violation of the uniqueness contract. Does not use ASSERT, which any role can turn off.
CREATE OR REPLACE FUNCTION randflake.randflake_broken(node_id integer, contract text) RETURNS void
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    RAISE data_corrupted USING
        MESSAGE = format('the sequences of node id %s broke a contract by which no identifier '
            'comes twice', node_id),
        DETAIL = format('The contract is: %s.', contract),
        HINT = format('If a sequence was set by hand, run SELECT '
            'randflake.randflake_configure(NULL, %s). If none was, report this.', node_id);
END
$$;

-- Returns an error if the clock, the server's settings, or the seconds of `numbers` (`used`) and of
-- the position (`last`) do not allow identifiers. It takes no row of randflake_state, because
-- auto_explain would log the row's secret.
CREATE OR REPLACE FUNCTION randflake.randflake_wrong(
    node_id integer, used bigint, last bigint,
    OUT state text, OUT message text, OUT detail text, OUT hint text)
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    now constant bigint := floor(date_part('epoch', clock_timestamp()))::bigint - 1730000000;
    sessions constant bigint := (SELECT sum(setting::bigint) FROM pg_settings
        WHERE name IN ('max_connections', 'max_worker_processes', 'autovacuum_max_workers',
            'max_wal_senders'));
BEGIN
    state := '55000';
    IF sessions > 8000 THEN
        message := format('there can be too many sessions, %s', sessions);
        detail := 'At most 8000 sessions and background processes may take numbers of one second.';
        hint := 'Lower "max_connections", "max_worker_processes", "autovacuum_max_workers" or '
            '"max_wal_senders".';
    ELSIF now NOT BETWEEN 0 AND 1073741823 - 100 THEN
        state := '22008';
        message := 'timestamp out of range';
        detail := 'Identifiers hold times from 2024-10-27 to 2058-11-05.';
        hint := 'Check the server''s clock.';
    ELSIF last IS NULL OR used > last THEN  -- NULL after ALTER SEQUENCE … RESTART
        message := format('the sequences of node id %s were set back', node_id);
        detail := format('They stand at %s, but identifiers have been made for times up to %s.',
            to_timestamp(1730000000 + coalesce(last, 0)),
            to_timestamp(1730000000 + coalesce(used, 0)));
        hint := format('Run SELECT randflake.randflake_configure(NULL, %s).', node_id);
    ELSIF last > now + 80 THEN  -- no call waits that long
        message := 'identifiers have been made for times far ahead of the server''s clock';
        detail := format('They go up to %s.', to_timestamp(1730000000 + last));
        hint := 'Wait for that time, set the clock right, or run SELECT '
            'randflake.randflake_configure(NULL, 2), with a node id that no database used.';
    ELSE
        state := NULL;
    END IF;
END
$$;

-- Returns the error if this database cannot make identifiers. Otherwise, state is NULL.
CREATE OR REPLACE FUNCTION randflake.randflake_refusal(
    OUT state text, OUT message text, OUT detail text, OUT hint text)
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    c randflake.randflake_state;
    here record;
    used bigint;
    last bigint;
BEGIN
    IF pg_is_in_recovery() THEN
        state := '25006';
        message := 'cannot generate identifiers during recovery';
        detail := 'A standby has the node id and the secret of its primary.';
        hint := 'Generate them on the primary.';
        RETURN;
    END IF;
    SELECT * INTO c FROM randflake.randflake_state;
    state := '55000';
    IF NOT FOUND THEN
        message := 'randflake is not configured in this database';
        detail := 'Or it was configured after this transaction''s snapshot was taken.';
        hint := 'Run SELECT randflake.randflake_configure(NULL, 1), with a node id that no other '
            'database uses. NULL makes a new secret: if identifiers exist, pass theirs.';
        RETURN;
    END IF;
    SELECT * INTO here FROM randflake.randflake_identity();
    hint := 'Run SELECT randflake.randflake_configure(NULL, 2), with a node id that no other '
        'database uses, or with the former one if the former server has stopped for good. A '
        'server with the library that takes its place starts 64 seconds after the last identifier.';
    IF c.identity <> here.identity OR (pg_relation_filepath(c.numbers) LIKE c.file) IS NOT TRUE
        OR NOT EXISTS (SELECT FROM randflake.randflake_state AS s WHERE s.xmin = s.writer)
        OR (SELECT count(*) FROM pg_class AS q WHERE q.oid IN (c.tickets, c.hops, c.leaps)) < 3
    THEN
        message :=
            'this database is a copy of the one that was configured, or was upgraded or restored';
        detail := 'Two databases with the same node id would make the same identifiers.';
        RETURN;
    END IF;
    IF c.timeline <> here.timeline AND NOT c.failover THEN
        message := 'this server was promoted or restored since randflake was configured';
        detail := 'If the former server still runs, both would make the same identifiers.';
        RETURN;
    END IF;
    used := (pg_sequence_last_value(c.numbers) >> 17) & 1073741823;  -- before the position
    last := randflake.randflake_position(c.tickets, c.hops, c.leaps) >> 6;
    SELECT w.* INTO state, message, detail, hint
    FROM randflake.randflake_wrong(c.node_id, used, last) AS w;
END
$$;

-- Moves the position to a second from `wanted` on, from the position `seen`. Returns the second if
-- this session holds it, or NULL.
CREATE OR REPLACE FUNCTION randflake.randflake_climb(
    node_id integer, tickets regclass, hops regclass, leaps regclass, wanted bigint, seen bigint)
RETURNS bigint
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    far constant boolean := wanted - (seen >> 6) > 512;
    goal constant bigint := CASE WHEN far THEN (seen >> 6) + 1 ELSE wanted END << 6;
    leapt constant bigint := randflake.randflake_leapt(hops, leaps);
    p bigint;
BEGIN
    WHILE randflake.randflake_position(tickets, hops, leaps) < goal LOOP
        p := nextval(tickets) + leapt;
    END LOOP;
    IF p IS NULL OR p & 63 <> 0 OR leapt <> randflake.randflake_leapt(hops, leaps) THEN
        RETURN NULL;
    END IF;
    IF p <= seen THEN
        PERFORM randflake.randflake_broken(node_id, 'the position never falls');
    END IF;
    -- The position belongs to a second that no other session holds.
    IF p >> 6 >= wanted THEN
        RETURN p >> 6;
    END IF;
    p := nextval(tickets);
    WHILE randflake.randflake_position(tickets, hops, leaps) + 16777216 <= wanted << 6 LOOP
        p := nextval(leaps);
    END LOOP;
    WHILE randflake.randflake_position(tickets, hops, leaps) + 32768 <= wanted << 6 LOOP
        p := nextval(hops);
    END LOOP;
    RETURN NULL;
END
$$;

-- Waits until the position of second t has reached the disk, or the clock is close to t. Returns
-- after 20 seconds since `began` at the latest.
CREATE OR REPLACE FUNCTION randflake.randflake_flush(t bigint, began timestamptz) RETURNS void
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    flushes constant boolean := current_setting('server_version_num')::integer >= 170000;
    now bigint := floor(date_part('epoch', clock_timestamp()))::bigint - 1730000000;
    written pg_lsn;  -- the position's WAL records end before
BEGIN
    BEGIN
        written := pg_current_wal_insert_lsn();
        IF flushes THEN
            PERFORM pg_logical_emit_message(false, 'randflake', '', true);
        ELSIF t > now + 2 THEN
            -- Without a commit, PostgreSQL flushes only full WAL pages. This call fills pages.
            PERFORM pg_logical_emit_message(false, 'randflake', repeat('x', 16384));
        END IF;
    EXCEPTION WHEN OTHERS THEN
        written := NULL;  -- a service may not allow this
    END;
    LOOP
        now := floor(date_part('epoch', clock_timestamp()))::bigint - 1730000000;
        EXIT WHEN (flushes AND written IS NOT NULL) OR t <= now + 2
            OR clock_timestamp() - began > interval '20 s';
        EXIT WHEN written IS NOT NULL AND pg_current_wal_flush_lsn() >= written;
        PERFORM pg_sleep(0.01);
    END LOOP;
END
$$;

-- Sleeps before the next look at the sequences. Fails after 20 seconds since `began`.
CREATE OR REPLACE FUNCTION randflake.randflake_pause(began timestamptz, ahead bigint) RETURNS void
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF clock_timestamp() - began > interval '20 s' THEN
        RAISE configuration_limit_exceeded USING MESSAGE = 'no number has become free',
            DETAIL = format('Identifiers have been made for times up to %s seconds ahead of the '
                'clock.', ahead),
            HINT = 'Wait, and make fewer identifiers at once.';
    END IF;
    PERFORM pg_sleep(0.002);
END
$$;

-- Waits until `numbers` may have a free number less than `below`. Opens the next second if this
-- session holds it. Otherwise, waits for the session that holds it.
CREATE OR REPLACE FUNCTION randflake.randflake_open(below integer DEFAULT 122880) RETURNS void
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    c randflake.randflake_state;
    no record;
    life constant bigint := date_part('microseconds', pg_postmaster_start_time())::bigint & 65535;
    began constant timestamptz := clock_timestamp();
    since timestamptz := began;  -- when `numbers` or the position last changed
    now bigint := floor(date_part('epoch', began))::bigint - 1730000000;
    first bigint;   -- the first second after a start
    seen_v bigint;
    seen_p bigint;
    v bigint;       -- last value of `numbers`
    second bigint;  -- its second; NULL with another life
    p bigint;       -- the position
    t bigint;       -- its second
    wanted bigint;
    patient boolean;
BEGIN
    SELECT * INTO no FROM randflake.randflake_refusal();
    IF no.state IS NOT NULL THEN
        RAISE EXCEPTION USING ERRCODE = no.state, MESSAGE = no.message, DETAIL = no.detail,
            HINT = no.hint;
    END IF;
    SELECT * INTO c FROM randflake.randflake_state;
    first := now + CASE WHEN c.timeline
        = (SELECT i.timeline FROM randflake.randflake_identity() AS i) THEN 4 ELSE 64 END;
    LOOP
        now := floor(date_part('epoch', clock_timestamp()))::bigint - 1730000000;
        v := coalesce(pg_sequence_last_value(c.numbers), 0);
        p := randflake.randflake_position(c.tickets, c.hops, c.leaps);
        t := p >> 6;
        second := CASE WHEN v >> 47 = life AND v & 140737488224256 <> 0
            THEN (v >> 17) & 1073741823 END;
        EXIT WHEN second BETWEEN now AND now + 60 AND (v & 131071) < below;
        IF (v, p) IS DISTINCT FROM (seen_v, seen_p) THEN
            since := clock_timestamp();
            seen_v := v;
            seen_p := p;
        END IF;
        -- If nothing changes for 0.1 s, this session assumes that the second's holder has ended.
        patient := clock_timestamp() - since <= interval '0.1 s';

        wanted := greatest(CASE WHEN second IS NULL THEN first ELSE second + 1 END, now);
        IF t >= wanted AND NOT patient THEN
            wanted := t + 1;
        END IF;
        -- If a position is far behind, only the session that holds its second moves the position.
        IF t >= wanted OR wanted > now + 60 OR (wanted - t > 512 AND p & 63 <> 0 AND patient) THEN
            PERFORM randflake.randflake_pause(began, greatest(second - now, t - now, 0));
            CONTINUE;
        END IF;
        IF wanted - t > 100000000 THEN
            RAISE object_not_in_prerequisite_state USING
                MESSAGE = 'the server''s clock is years ahead of the last identifiers',
                HINT = 'Check the clock. If it is right, run SELECT '
                    'randflake.randflake_configure(NULL, 2), with a node id that no database used.';
        END IF;
        t := randflake.randflake_climb(c.node_id, c.tickets, c.hops, c.leaps, wanted, p);
        CONTINUE WHEN t IS NULL;
        PERFORM randflake.randflake_flush(t, began);
        CONTINUE WHEN clock_timestamp() - began > interval '20 s';
        v := pg_sequence_last_value(c.numbers);
        IF v >> 47 = life AND (v >> 17) & 1073741823 = t THEN
            PERFORM randflake.randflake_broken(c.node_id,
                'a second is opened by its holder, once');
        ELSIF v >> 47 = life AND v >= ((life << 47) | (t << 17)) THEN
            CONTINUE;
        ELSIF t < first AND second IS NULL THEN
            PERFORM randflake.randflake_broken(c.node_id,
                'after a start, no second is opened before the first that is unused for certain');
        END IF;
        PERFORM setval(c.numbers, (life << 47) | (t << 17));
    END LOOP;
END
$$;

-- Configuration

-- Revokes what the owner's default privileges may have granted on the tables and sequences.
CREATE OR REPLACE FUNCTION randflake.randflake_keep_private() RETURNS void
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    grant_ record;
BEGIN
    FOR grant_ IN
        SELECT c.relname,
            CASE a.grantee WHEN 0 THEN 'PUBLIC' ELSE a.grantee::regrole::text END AS grantee
        FROM pg_class AS c, aclexplode(c.relacl) AS a
        WHERE c.relnamespace = 'randflake'::regnamespace AND c.relkind IN ('r', 'S')
            AND a.grantee <> c.relowner
    LOOP
        EXECUTE format('REVOKE ALL ON randflake.%I FROM %s', grant_.relname, grant_.grantee);
    END LOOP;
END
$$;

-- Parses the lines of secrets into keys and fingerprints, as src/core/secret/secret_file.h does.
CREATE OR REPLACE FUNCTION randflake.randflake_parse_secrets(
    secret text, OUT valid_from bigint[], OUT keys bigint[], OUT keys53 bigint[],
    OUT fingerprints text[])
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    line text;
    number integer := 0;
    parts text[];
    at timestamptz;
    second bigint;
    seen text[];
    fingerprint bytea := '';
    problem text;
BEGIN
    FOREACH line IN ARRAY string_to_array(secret, chr(10)) LOOP
        number := number + 1;
        line := rtrim(line, chr(9) || chr(13) || ' ');
        CONTINUE WHEN line = '' OR left(line, 1) = '#';
        parts := regexp_match(line, '^([0-9A-Fa-f]{32})([ \t]+from[ \t]+(.*))?$');
        problem := NULL;
        second := 0;
        IF parts IS NULL THEN
            problem := CASE WHEN line ~ '^[0-9A-Fa-f]{32}[ \t]' AND seen IS NOT NULL
                THEN 'After the first, a secret is followed by "from" and a time.'
                ELSE 'A secret is exactly 32 hexadecimal digits.' END;
        ELSIF lower(parts[1]) = ANY (seen) THEN
            problem := 'No secret may come twice.';
        ELSIF cardinality(seen) = 16 THEN
            problem := 'There may be at most 16 secrets.';
        ELSIF seen IS NULL THEN
            IF parts[2] IS NOT NULL THEN
                problem := 'The first secret has no time.';
            END IF;
        ELSIF parts[2] IS NULL THEN
            problem := 'After the first, a secret is followed by "from" and a time.';
        ELSIF parts[3] !~ ('^\d{4}-\d\d-\d\d[Tt ]([01]\d|2[0-3]):[0-5]\d:[0-5]\d(\.\d+)?'
            || '([Zz]|[+-]\d\d(:?[0-5]\d)?)$') THEN
            problem := 'A time is written as in 2027-01-01T00:00:00Z, with its offset from UTC.';
        ELSIF parts[3] ~ '\.\d*[1-9]' THEN
            problem := 'A time must be a full second.';
        ELSE
            second := date_part('epoch', parts[3]::timestamptz)::bigint - 1730000000;
            IF second NOT BETWEEN 1 AND 1073741823 THEN
                problem := 'A time must be one that identifiers can hold.';
            ELSIF second <= valid_from[cardinality(valid_from)] THEN
                problem := 'A time must be later than that of the secret before.';
            END IF;
        END IF;
        IF problem IS NOT NULL THEN
            RAISE invalid_parameter_value USING
                MESSAGE = format('invalid secret in line %s', number), DETAIL = problem;
        END IF;

        fingerprint := substr(randflake.randflake_hmac(parts[1],
            convert_to('randflake key check', 'UTF8') || fingerprint
            || CASE WHEN seen IS NULL THEN '' ELSE int4send(second::integer) END), 1, 8);
        seen := seen || lower(parts[1]);
        valid_from := valid_from || second;
        keys := keys || randflake.randflake_key_schedule(decode(parts[1], 'hex'));
        keys53 := keys53 || randflake.randflake_permutation_key(parts[1], 'randflake 53', '');
        fingerprints := fingerprints || encode(fingerprint, 'hex');
    END LOOP;
    IF seen IS NULL THEN
        RAISE invalid_parameter_value USING MESSAGE = 'invalid secret',
            DETAIL = 'There must be a secret.';
    END IF;
END
$$;

-- Locks the table. Waits for all transactions that have read it, and names those that are prepared.
CREATE OR REPLACE FUNCTION randflake.randflake_lock() RETURNS void
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    prepared text;
BEGIN
    SELECT string_agg(DISTINCT quote_literal(p.gid), ', ') INTO prepared
    FROM pg_prepared_xacts AS p JOIN pg_locks AS own ON own.transactionid = p.transaction
        JOIN pg_locks AS l USING (virtualtransaction)
    WHERE l.pid IS NULL AND l.relation = 'randflake.randflake_state'::regclass
        AND p.database = current_database();
    IF prepared IS NOT NULL THEN
        RAISE WARNING USING
            MESSAGE = 'randflake_configure() waits for prepared transactions: ' || prepared,
            DETAIL = 'They have generated identifiers.',
            HINT = 'End each of them with COMMIT PREPARED or ROLLBACK PREPARED.';
    END IF;
    LOCK TABLE randflake.randflake_state IN ACCESS EXCLUSIVE MODE;
END
$$;

-- Refuses a change of the secrets that sessions may have used.
CREATE OR REPLACE FUNCTION randflake.randflake_keep_secrets(
    before randflake.randflake_state, after randflake.randflake_state, now bigint) RETURNS void
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    -- The last second that may have been used, under any node id.
    latest constant bigint := greatest(now + 63, (
        SELECT max(randflake.randflake_position(c.oid,
            to_regclass(replace(c.oid::regclass::text, 'tickets', 'hops')),
            to_regclass(replace(c.oid::regclass::text, 'tickets', 'leaps'))) >> 6)
        FROM pg_class AS c WHERE c.relnamespace = 'randflake'::regnamespace
            AND c.relname LIKE 'randflake\_tickets\_%'));
BEGIN
    IF (SELECT array_agg(f ORDER BY o) FROM unnest(before.fingerprints, before.valid_from)
            WITH ORDINALITY AS u (f, s, o) WHERE s <= latest)
        IS DISTINCT FROM
        (SELECT array_agg(f ORDER BY o) FROM unnest(after.fingerprints, after.valid_from)
            WITH ORDINALITY AS u (f, s, o) WHERE s <= latest)
    THEN
        RAISE object_not_in_prerequisite_state USING
            MESSAGE = 'these secrets are not those that identifiers were made under',
            DETAIL = format('Identifiers up to %s may have been made.',
                to_timestamp(1730000000 + latest)),
            HINT = 'Keep every line that was in use, and let a new one begin later.';
    END IF;
END
$$;

-- Creates the sequences of a node id that are missing. Returns whether the past use is unknown.
CREATE OR REPLACE FUNCTION randflake.randflake_make_sequences(node_id integer) RETURNS boolean
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    sequence record;
    made boolean := false;
BEGIN
    FOR sequence IN
        SELECT format('randflake.randflake_%s_%s', s.kind, node_id) AS name, s.persistence
        FROM (VALUES ('tickets', ''), ('hops', ''), ('leaps', ''), ('numbers', 'UNLOGGED'))
            AS s (kind, persistence)
    LOOP
        IF to_regclass(sequence.name) IS NULL THEN
            EXECUTE format('CREATE %s SEQUENCE %s MINVALUE 0 START 0',
                sequence.persistence, sequence.name);
            PERFORM randflake.randflake_keep_private();
            made := true;
        END IF;
        IF pg_sequence_last_value(sequence.name) IS NULL THEN  -- it is new, or was restarted
            PERFORM setval(sequence.name, 0);
            made := made OR sequence.persistence = '';
        END IF;
    END LOOP;
    RETURN made;
END
$$;

-- Writes the row by a rewrite of the table, which no publication sends. The caller holds its lock.
CREATE OR REPLACE FUNCTION randflake.randflake_replace(after randflake.randflake_state)
RETURNS void
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF NOT EXISTS (SELECT FROM randflake.randflake_state) THEN
        INSERT INTO randflake.randflake_state
        VALUES (0, '', '{}', '{}', '{}', '{}', 0, 0, 0, 0, '', '', NULL, false, '0');
    END IF;
    -- SQL shows the number of a subtransaction only as xmin of what it wrote.
    ALTER TABLE randflake.randflake_state ALTER COLUMN keys SET STORAGE PLAIN;
    SELECT a.xmin INTO after.writer FROM pg_attribute AS a
    WHERE a.attrelid = 'randflake.randflake_state'::regclass AND a.attname = 'keys';
    PERFORM set_config('randflake_managed.row', after::text, true);
    EXECUTE (
        SELECT 'ALTER TABLE randflake.randflake_state '
            || string_agg(format('ALTER COLUMN %I TYPE %s USING (current_setting('
                '''randflake_managed.row'')::randflake.randflake_state).%1$I',
                a.attname, format_type(a.atttypid, a.atttypmod)), ', ')
            || ', ALTER COLUMN keys SET STORAGE PLAIN, ENABLE ALWAYS TRIGGER randflake_guard'
        FROM pg_attribute AS a WHERE a.attrelid = 'randflake.randflake_state'::regclass
            AND a.attnum > 0 AND NOT a.attisdropped);
    PERFORM set_config('randflake_managed.row', '', true);
END
$$;

-- secret    has the lines of a file of secrets. NULL keeps the present lines, or makes a secret.
-- failover  lets a promoted standby resume by itself. It is false at first. NULL keeps the setting.
CREATE OR REPLACE FUNCTION randflake.randflake_configure(
    secret text, node_id integer, failover boolean DEFAULT NULL) RETURNS void
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp
SET plan_cache_mode = force_generic_plan  -- a custom plan would show the secret to auto_explain
AS $$
DECLARE
    before randflake.randflake_state;
    after randflake.randflake_state;
    here record;
    now bigint;
    takes_over boolean;  -- the past use of this node id is unknown
    latest bigint;       -- the last second that may have been used
    reached bigint;      -- the position
BEGIN
    IF current_setting('transaction_isolation') <> 'read committed' THEN
        RAISE feature_not_supported USING
            MESSAGE = 'randflake is configured under READ COMMITTED only';
    END IF;
    PERFORM randflake.randflake_lock();
    now := floor(date_part('epoch', clock_timestamp()))::bigint - 1730000000;
    SELECT * INTO before FROM randflake.randflake_state;
    after.node_id := coalesce(randflake_configure.node_id, before.node_id);
    after.failover := coalesce(randflake_configure.failover, before.failover, false);
    after.secret := coalesce(randflake_configure.secret, before.secret, left(encode(sha256(
        uuid_send(gen_random_uuid()) || uuid_send(gen_random_uuid())), 'hex'), 32));
    IF after.node_id IS NULL OR after.node_id NOT BETWEEN 0 AND 131071 THEN
        RAISE invalid_parameter_value USING
            MESSAGE = coalesce(format('node id %s is out of range', after.node_id),
                'a node id is missing'),
            DETAIL = 'It must be from 0 to 131071.',
            HINT = 'Give each database and server with this secret a node id of its own.';
    END IF;
    SELECT p.* INTO after.valid_from, after.keys, after.keys53, after.fingerprints
    FROM randflake.randflake_parse_secrets(after.secret) AS p;
    IF before.secret IS NOT NULL THEN
        PERFORM randflake.randflake_keep_secrets(before, after, now);
    END IF;

    SELECT * INTO here FROM randflake.randflake_identity();
    takes_over := randflake.randflake_make_sequences(after.node_id)
        OR randflake_configure.node_id IS NOT NULL
        OR (before.identity, before.timeline) IS DISTINCT FROM (here.identity, here.timeline)
        OR (pg_relation_filepath(before.numbers) LIKE before.file) IS NOT TRUE;
    after.tickets := format('randflake.randflake_tickets_%s', after.node_id)::regclass;
    after.hops := format('randflake.randflake_hops_%s', after.node_id)::regclass;
    after.leaps := format('randflake.randflake_leaps_%s', after.node_id)::regclass;
    after.numbers := format('randflake.randflake_numbers_%s', after.node_id)::regclass;
    reached := randflake.randflake_position(after.tickets, after.hops, after.leaps);
    IF takes_over THEN
        -- If the secret is new, no identifier has used any second yet. Otherwise, sessions may
        -- already have used seconds up to `latest`.
        latest := now + CASE WHEN coalesce(randflake_configure.secret, before.secret) IS NULL
            THEN 0 ELSE 63 END;
        IF latest - coalesce(nullif(reached,0)>>6,latest) > 100000000 THEN
            RAISE object_not_in_prerequisite_state USING
                MESSAGE = 'the server''s clock is years ahead of the last identifiers',
                HINT = 'Check the clock. If it is right, run SELECT '
                    'randflake.randflake_configure(NULL, 2), with a node id that no database used.';
        END IF;
        PERFORM setval(after.tickets, pg_sequence_last_value(after.tickets)
            + greatest(((latest << 6) | 63) - reached, 0));
        reached := greatest(reached, (latest << 6) | 63);
    END IF;
    IF (randflake.randflake_position(after.tickets, after.hops, after.leaps) >= reached)
        IS NOT TRUE
    THEN
        PERFORM randflake.randflake_broken(after.node_id,
            'the position goes beyond each second that may have been used');
    END IF;
    PERFORM setval(after.numbers, 0);  -- as after a start
    after.file := '%/' || substring(pg_relation_filepath(after.numbers) FROM '[^/]*/[^/]*$');
    after.identity := here.identity;
    after.timeline := here.timeline;
    PERFORM randflake.randflake_replace(after);
END
$$;

-- Decode and encode identifiers of 64 and of 53 bits.

CREATE OR REPLACE FUNCTION randflake.randflake_decode(
    id bigint, OUT generated_at timestamptz, OUT node_id integer, OUT sequence integer)
LANGUAGE plpgsql STABLE STRICT SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    raw bigint;
BEGIN
    SELECT randflake.randflake_ring_decrypt(id, s.valid_from, s.keys) INTO raw
    FROM randflake.randflake_state AS s;
    IF NOT FOUND THEN
        RAISE object_not_in_prerequisite_state USING
            MESSAGE = 'randflake is not configured in this database',
            HINT = 'Run SELECT randflake.randflake_configure(NULL, 1), with a node id that no '
                'other database uses. NULL makes a new secret: if identifiers exist, '
                'pass theirs.';
    END IF;
    generated_at := to_timestamp(1730000000 + ((raw >> 34) & 1073741823));
    node_id := (raw >> 17) & 131071;
    sequence := raw & 131071;
END
$$;

CREATE OR REPLACE FUNCTION randflake.randflake_encode(
    generated_at timestamptz, node_id integer, sequence integer) RETURNS bigint
LANGUAGE plpgsql STABLE STRICT SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    raw bigint;
    id bigint;
    problem text[];
BEGIN
    IF generated_at < to_timestamp(1730000000) OR generated_at >= to_timestamp(2803741824) THEN
        problem := ARRAY['timestamp out of range', format('It must be from %s to %s.',
            to_timestamp(1730000000), to_timestamp(2803741823))];
    ELSIF node_id NOT BETWEEN 0 AND 131071 THEN
        problem := ARRAY[format('node id %s is out of range', node_id),
            'It must be from 0 to 131071.'];
    ELSIF sequence NOT BETWEEN 0 AND 131071 THEN
        problem := ARRAY[format('sequence %s is out of range', sequence),
            'It must be from 0 to 131071.'];
    ELSE
        raw := ((floor(date_part('epoch', generated_at))::bigint - 1730000000) << 34)
            | (node_id::bigint << 17) | sequence;
        SELECT randflake.randflake_ring_encrypt(raw, s.valid_from, s.keys) INTO id
        FROM randflake.randflake_state AS s;
        IF NOT FOUND THEN
            RAISE object_not_in_prerequisite_state USING
                MESSAGE = 'randflake is not configured in this database',
                HINT = 'Run SELECT randflake.randflake_configure(NULL, 1), with a node id that no '
                    'other database uses. NULL makes a new secret: if identifiers exist, '
                    'pass theirs.';
        END IF;
        problem := CASE WHEN id IS NULL THEN ARRAY[
            'there is no identifier of this second, node id and sequence',
            'An identifier of an earlier secret takes its place.'] END;
    END IF;
    IF problem IS NOT NULL THEN
        RAISE invalid_parameter_value USING MESSAGE = problem[1], DETAIL = problem[2];
    END IF;
    RETURN id;
END
$$;

CREATE OR REPLACE FUNCTION randflake.randflake53_decode(
    id bigint, OUT generated_at timestamptz, OUT node_id integer, OUT sequence integer)
LANGUAGE plpgsql STABLE STRICT SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    raw bigint;
BEGIN
    IF id NOT BETWEEN 0 AND 9007199254740991 THEN
        RAISE invalid_parameter_value USING MESSAGE = format('%s is not a 53-bit identifier', id),
            DETAIL = 'They are from 0 to 9007199254740991.';
    END IF;
    SELECT randflake.randflake53_ring_decrypt(id, s.valid_from, s.keys53) INTO raw
    FROM randflake.randflake_state AS s;
    IF NOT FOUND THEN
        RAISE object_not_in_prerequisite_state USING
            MESSAGE = 'randflake is not configured in this database',
            HINT = 'Run SELECT randflake.randflake_configure(NULL, 1), with a node id that no '
                'other database uses. NULL makes a new secret: if identifiers exist, '
                'pass theirs.';
    END IF;
    generated_at := to_timestamp(1730000000 + ((raw >> 23) & 1073741823));
    node_id := (raw >> 15) & 255;
    sequence := raw & 32767;
END
$$;

CREATE OR REPLACE FUNCTION randflake.randflake53_encode(
    generated_at timestamptz, node_id integer, sequence integer) RETURNS bigint
LANGUAGE plpgsql STABLE STRICT SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    raw bigint;
    id bigint;
    problem text[];
BEGIN
    IF generated_at < to_timestamp(1730000000) OR generated_at >= to_timestamp(2803741824) THEN
        problem := ARRAY['timestamp out of range', format('It must be from %s to %s.',
            to_timestamp(1730000000), to_timestamp(2803741823))];
    ELSIF node_id NOT BETWEEN 0 AND 255 THEN
        problem := ARRAY[format('node id %s is out of range', node_id),
            'It must be from 0 to 255.'];
    ELSIF sequence NOT BETWEEN 0 AND 32767 THEN
        problem := ARRAY[format('sequence %s is out of range', sequence),
            'It must be from 0 to 32767.'];
    ELSE
        raw := ((floor(date_part('epoch', generated_at))::bigint - 1730000000) << 23)
            | (node_id::bigint << 15) | sequence;
        SELECT randflake.randflake53_ring_encrypt(raw, s.valid_from, s.keys53) INTO id
        FROM randflake.randflake_state AS s;
        IF NOT FOUND THEN
            RAISE object_not_in_prerequisite_state USING
                MESSAGE = 'randflake is not configured in this database',
                HINT = 'Run SELECT randflake.randflake_configure(NULL, 1), with a node id that no '
                    'other database uses. NULL makes a new secret: if identifiers exist, '
                    'pass theirs.';
        END IF;
        problem := CASE WHEN id IS NULL THEN ARRAY[
            'there is no identifier of this second, node id and sequence',
            'An identifier of an earlier secret takes its place.'] END;
    END IF;
    IF problem IS NOT NULL THEN
        RAISE invalid_parameter_value USING MESSAGE = problem[1], DETAIL = problem[2];
    END IF;
    RETURN id;
END
$$;

CREATE OR REPLACE FUNCTION randflake.randflake_generated_at(id bigint) RETURNS timestamptz
LANGUAGE sql STABLE STRICT SECURITY DEFINER SET search_path = pg_catalog, pg_temp
RETURN (SELECT d.generated_at FROM randflake.randflake_decode(id) AS d);

-- The following functions mask numbers with the first secret.

CREATE OR REPLACE FUNCTION randflake.randflake_masked(number bigint, label text, inverse boolean)
RETURNS bigint
LANGUAGE plpgsql STABLE STRICT SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    secret text;
    utf8 bytea;
    label_hint constant text :=
        'Use a fixed text that names what the numbers identify, as "customer".';
BEGIN
    SELECT substring(s.secret FROM '(?n)^[0-9A-Fa-f]{32}') INTO secret
    FROM randflake.randflake_state AS s;
    IF NOT FOUND THEN
        RAISE object_not_in_prerequisite_state USING
            MESSAGE = 'randflake is not configured in this database',
            HINT = 'Run SELECT randflake.randflake_configure(NULL, 1), with a node id that no '
                'other database uses. NULL makes a new secret: if identifiers exist, '
                'pass theirs.';
    END IF;
    utf8 := convert_to(label,
        CASE getdatabaseencoding() WHEN 'SQL_ASCII' THEN 'SQL_ASCII' ELSE 'UTF8' END);
    IF utf8 = '' THEN
        RAISE invalid_parameter_value USING MESSAGE = 'label of a mask is empty', HINT = label_hint;
    ELSIF length(utf8) > 255 THEN
        RAISE invalid_parameter_value USING
            MESSAGE = format('label of a mask is too long: "%s..."', left(label, 128)),
            DETAIL = 'It may have at most 255 bytes in UTF-8.', HINT = label_hint;
    ELSIF getdatabaseencoding() = 'SQL_ASCII' AND encode(utf8, 'hex') ~ '^(..)*[89a-f]' THEN
        RAISE character_not_in_repertoire USING MESSAGE = 'label of a mask is not valid text',
            DETAIL = 'It must be UTF-8, and ASCII in a database with the encoding SQL_ASCII.',
            HINT = label_hint;
    ELSIF number NOT BETWEEN 0 AND 9007199254740991 THEN
        RAISE invalid_parameter_value USING
            MESSAGE = format('%s %s is out of range',
                CASE WHEN inverse THEN 'mask' ELSE 'number to mask' END, number),
            DETAIL = 'It must be from 0 to 9007199254740991.',
            HINT = CASE WHEN inverse
                THEN 'No number has this mask: answer as for a row that does not exist.'
                ELSE 'Masks are for keys that count up. Identifiers that are random already need '
                    'none.' END;
    END IF;
    RETURN randflake.randflake_permute(number,
        randflake.randflake_permutation_key(secret, 'randflake mask', utf8), inverse);
END
$$;

CREATE OR REPLACE FUNCTION randflake.randflake_mask(id bigint, label text) RETURNS bigint
LANGUAGE sql STABLE STRICT SECURITY DEFINER SET search_path = pg_catalog, pg_temp
RETURN randflake.randflake_masked(id, label, false);

CREATE OR REPLACE FUNCTION randflake.randflake_unmask(masked bigint, label text) RETURNS bigint
LANGUAGE sql STABLE STRICT SECURITY DEFINER SET search_path = pg_catalog, pg_temp
RETURN randflake.randflake_masked(masked, label, true);

-- PostgreSQL resolves the names in these functions at creation. So they need no search_path, and
-- PostgreSQL can inline them.

CREATE OR REPLACE FUNCTION randflake.randflake_to_text(id bigint) RETURNS text
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
RETURN coalesce(nullif(ltrim(
    substr('0123456789abcdef', ((id >> 60) & 15)::integer + 1, 1)
    || (SELECT string_agg(substr('0123456789abcdefghijklmnopqrstuv',
            ((id >> (5 * i)) & 31)::integer + 1, 1), '' ORDER BY i DESC)
        FROM generate_series(0, 11) AS i), '0'), ''), '0');

CREATE OR REPLACE FUNCTION randflake.randflake_generate_text() RETURNS text
LANGUAGE sql VOLATILE
RETURN randflake.randflake_to_text(randflake.randflake_generate());

CREATE OR REPLACE FUNCTION randflake.randflake53_generate() RETURNS bigint
LANGUAGE sql VOLATILE
RETURN (SELECT id FROM randflake.randflake53_generate(1) AS id);

-- Returns the identifier that `digits` represents. Errors show `all_`, the text form that contains
-- these digits. The function compares under collation "C", not under the column's collation.
CREATE OR REPLACE FUNCTION randflake.randflake_from_digits(all_ text, digits text) RETURNS bigint
LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    d constant text COLLATE "C" := digits;
    bad text COLLATE "C" := substr(d, length(substring(d FROM '^[0-9a-vA-V]*')) + 1, 1);
    id bigint := 0;
    problem text;
BEGIN
    problem := CASE WHEN d = '' THEN 'It is empty.'
        WHEN bad <> '' THEN format('Character "%s" is not a digit of base32hex (0-9, a-v).', bad)
        WHEN length(d) > 13 THEN format('It has %s characters; at most 13 are possible.', length(d))
        WHEN length(d) = 13 AND d !~ '^[0-9a-fA-F]' THEN 'It exceeds 64 bits.' END;
    IF problem IS NOT NULL THEN
        RAISE invalid_text_representation USING DETAIL = problem,
            MESSAGE = format('invalid text form of an identifier: "%s"',
            CASE WHEN length(all_) > 128 THEN left(all_, 128) || '...' ELSE all_ END);
    END IF;
    FOR i IN 1..length(d) LOOP
        id := (id << 5) | (strpos('0123456789abcdefghijklmnopqrstuv', translate(substr(d, i, 1),
            'ABCDEFGHIJKLMNOPQRSTUV', 'abcdefghijklmnopqrstuv')) - 1)::bigint;
    END LOOP;
    RETURN id;
END
$$;

CREATE OR REPLACE FUNCTION randflake.randflake_from_text(text) RETURNS bigint
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
RETURN randflake.randflake_from_digits($1, $1);

-- These functions handle prefixes as src/core/identifier/id_text.h does.

CREATE OR REPLACE FUNCTION randflake.randflake_prefixed(prefix text) RETURNS text
LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF prefix COLLATE "C" !~ '^[a-z]([a-z_]{0,61}[a-z])?$' THEN
        RAISE invalid_parameter_value USING
            MESSAGE = format('invalid prefix of identifiers: "%s"',
                CASE WHEN length(prefix) > 128 THEN left(prefix, 128) || '...' ELSE prefix END),
            DETAIL = 'A prefix has 1 to 63 characters, a to z and _, and begins and ends with a '
                'letter.';
    END IF;
    RETURN prefix || '_';
END
$$;

CREATE OR REPLACE FUNCTION randflake.randflake_to_text(id bigint, prefix text) RETURNS text
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
RETURN randflake.randflake_prefixed(prefix) || randflake.randflake_to_text(id);

CREATE OR REPLACE FUNCTION randflake.randflake_from_text(text, prefix text) RETURNS bigint
LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    prefixed constant text COLLATE "C" := randflake.randflake_prefixed(prefix);
    digits   constant text COLLATE "C" := substr($1, length(prefixed) + 1);
BEGIN
    IF left($1, length(prefixed)) COLLATE "C" <> prefixed OR strpos(digits, '_') > 0 THEN
        RAISE invalid_text_representation USING
            MESSAGE = format('text form of an identifier does not have the prefix "%s": "%s"',
                prefix, CASE WHEN length($1) > 128 THEN left($1, 128) || '...' ELSE $1 END),
            DETAIL = format('It must begin with "%s".', prefixed);
    END IF;
    RETURN randflake.randflake_from_digits($1, digits);
END
$$;

CREATE OR REPLACE FUNCTION randflake.randflake_shard(id bigint, shards integer) RETURNS integer
LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF shards < 1 THEN
        RAISE invalid_parameter_value USING
            MESSAGE = format('number of shards must be at least 1, not %s', shards);
    END IF;
    -- Multiplies a 64-bit number, in two halves, by a 31-bit number.
    RETURN (((id >> 32) + 2147483648) * shards + (((id & 4294967295) * shards) >> 32)) >> 32;
END
$$;

CREATE OR REPLACE FUNCTION randflake.randflake_shard_ranges(
    shards integer, OUT shard integer, OUT lower bigint, OUT upper bigint)
RETURNS SETOF record
LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    next bigint;
BEGIN
    IF shards < 1 THEN
        RAISE invalid_parameter_value USING
            MESSAGE = format('number of shards must be at least 1, not %s', shards);
    END IF;
    lower := -9223372036854775808;
    FOR i IN 0..shards - 1 LOOP
        shard := i;
        upper := div((i + 1) * 18446744073709551616 + shards - 1, shards) - 9223372036854775808 - 1;
        RETURN NEXT;
        IF i < shards - 1 THEN
            lower := upper + 1;
        END IF;
    END LOOP;
END
$$;

-- Monitoring

CREATE OR REPLACE FUNCTION randflake.randflake_status(
    OUT mode text, OUT problem text, OUT first_node_id integer, OUT node_count integer,
    OUT ids_per_second bigint, OUT key_fingerprint text, OUT last_second timestamptz,
    OUT ahead interval)
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    no record;
    second bigint := floor(date_part('epoch', clock_timestamp()))::bigint - 1730000000;
BEGIN
    mode := 'managed';
    SELECT * INTO no FROM randflake.randflake_refusal();
    problem := no.message || ': ' || no.detail;
    SELECT s.node_id, 1, 122880,
        s.fingerprints[(SELECT count(*) FROM unnest(s.valid_from) AS f WHERE f <= second)],
        to_timestamp(1730000000 + (l.p >> 6)),
        make_interval(secs => greatest((l.p >> 6) - second, 0))
    INTO first_node_id, node_count, ids_per_second, key_fingerprint, last_second, ahead
    FROM randflake.randflake_state AS s LEFT JOIN LATERAL (
        SELECT randflake.randflake_position(s.tickets, s.hops, s.leaps) AS p
        WHERE (SELECT count(*) FROM pg_class AS c  -- they may be gone
            WHERE c.oid IN (s.tickets, s.hops, s.leaps)) = 3) AS l ON true;
END
$$;

CREATE OR REPLACE FUNCTION randflake.randflake_secrets(
    OUT generation integer, OUT fingerprint text, OUT valid_from timestamptz, OUT state text)
RETURNS SETOF record
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    RETURN QUERY SELECT u.o::integer, u.f,
        CASE WHEN u.o > 1 THEN to_timestamp(1730000000 + u.s) END,
        CASE WHEN to_timestamp(1730000000 + u.s) > clock_timestamp() THEN 'future'
            WHEN to_timestamp(1730000000 + lead(u.s) OVER (ORDER BY u.o)) <= clock_timestamp()
            THEN 'past' ELSE 'current' END
    FROM randflake.randflake_state AS s,
        unnest(s.fingerprints, s.valid_from) WITH ORDINALITY AS u (f, s, o)
    ORDER BY u.o;
END
$$;

-- Apart from the grants to PUBLIC and pg_monitor below, only the owner may use new objects. So this
-- block revokes what default privileges granted. The script keeps earlier views, because replacing
-- a view could deadlock with a session that has read the view and waits for randflake_state.
DO $do$
DECLARE
    known  constant text[] := string_to_array(current_setting('randflake_managed.known'), ',');
    public constant text[] := ARRAY['generate', 'generate_text', 'to_text', 'from_text',
        'from_digits', 'prefixed', 'shard', 'shard_ranges'];
    made record;
    other oid;
BEGIN
    IF to_regclass('randflake.randflake_status') IS NULL THEN
        CREATE VIEW randflake.randflake_status AS SELECT * FROM randflake.randflake_status();
        CREATE VIEW randflake.randflake_secrets AS SELECT * FROM randflake.randflake_secrets();
    END IF;
    FOR made IN
        SELECT format('FUNCTION %s', p.oid::regprocedure) AS object, 'EXECUTE' AS privilege,
            'pg_proc'::regclass::oid::text || ' ' || p.oid AS id, p.proowner AS owner,
            coalesce(p.proacl, acldefault('f', p.proowner)) AS acl,
            CASE WHEN p.proname IN ('randflake_status', 'randflake_secrets') THEN 'pg_monitor'
                WHEN regexp_replace(p.proname, '^randflake(53)?_', '') = ANY (public)
                THEN 'PUBLIC' END AS grantee
        FROM pg_proc AS p WHERE p.pronamespace = 'randflake'::regnamespace
        UNION ALL
        SELECT format('TABLE randflake.%I', c.relname), 'SELECT',
            'pg_class'::regclass::oid::text || ' ' || c.oid, c.relowner, c.relacl,
            CASE c.relkind WHEN 'v' THEN 'pg_monitor' END
        FROM pg_class AS c
        WHERE c.relnamespace = 'randflake'::regnamespace AND c.relkind IN ('r', 'v')
        UNION ALL
        SELECT 'SCHEMA randflake', 'USAGE', CASE WHEN known <> '{}' THEN known[1] END,
            n.nspowner, n.nspacl, 'PUBLIC'
        FROM pg_namespace AS n WHERE n.nspname = 'randflake'
    LOOP
        CONTINUE WHEN made.id = ANY (known);
        FOR other IN
            SELECT DISTINCT a.grantee FROM aclexplode(made.acl) AS a
            WHERE a.grantee <> made.owner
        LOOP
            EXECUTE format('REVOKE ALL ON %s FROM %s', made.object,
                CASE other WHEN 0 THEN 'PUBLIC' ELSE other::regrole::text END);
        END LOOP;
        IF made.grantee IS NOT NULL THEN
            EXECUTE format('GRANT %s ON %s TO %s', made.privilege, made.object, made.grantee);
        END IF;
    END LOOP;
END
$do$;
