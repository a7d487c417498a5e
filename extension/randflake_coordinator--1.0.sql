\echo Use "CREATE EXTENSION randflake_coordinator" to load this file. \quit


-- This script qualifies every name that could be overloaded. randflake--1.0.sql gives the reason.
-- Another role could create a function with the same name and an extra argument that has a default.
-- Then PostgreSQL would refuse each call as ambiguous. So each internal function's first argument
-- has a type that no other role may use.

CREATE TYPE randflake_lease_internal AS ENUM ();
COMMENT ON TYPE randflake_lease_internal IS
'not for users: the first argument of functions that the coordinator''s functions call';
REVOKE ALL ON TYPE randflake_lease_internal FROM PUBLIC;

-- A lease is a rectangle: node ids x seconds. Three things keep leases apart: the exclusion
-- constraint, the high-water mark for leases that the table lacks, and the lists of secrets. The
-- section "Leased node ids" of docs/design.md explains them. The coordinator's clock may step back.
-- So the coordinator does not renew a lease if a later lease had some of the node ids, or if the
-- lease may have ended before the mark. After a takeover, the mark includes twice max_clock_skew,
-- because this coordinator's clock may be behind the former one's. Leases stay apart on two
-- conditions: the former coordinator grants no more leases, and the operator sets never_leased and
-- nothing_lost only if they are true.
--
-- Locks. A role can keep a transaction open after a grant. A commit holds its locks until the
-- commit has reached the disk and the standby. So a grant or renewal must not lock out other roles:
--
-- - Pool: a grant or a renewal locks the table in mode ROW SHARE, which does not conflict with
--   itself. Changes of the pool (randflake_lease_configure, purge, a change of secrets, and the
--   first grant) lock the table in mode EXCLUSIVE. So once a request holds the lock, secrets,
--   limits and the mark stay the same until this request commits. A session never waits much longer
--   than 20 seconds for this lock.
-- - Role: a grant locks the role's row in randflake_lease_role. So the grants of a role commit one
--   after another, and the coordinator can count them.
-- - Node ids: a grant locks the rows of randflake_lease_chunk that contain its node ids. It also
--   locks the ended leases that it collects, and the chunks of these leases. It skips locked rows.
-- - Lease: a renewal locks the lease's row. If another transaction has locked the row, the renewal
--   fails with an error, which the server does not treat as a refusal.
--
-- Two transactions cannot grant the same node ids, because both need the row of the same chunk.
-- Once a grant has the lock, it reads the leases again under a new snapshot. A holder whose clock
-- is behind may renew a lease that, according to the coordinator's clock, has already ended. This
-- renewal locks the row of the lease, and so does a grant of the node ids. The exclusion constraint
-- refuses any other overlap, and waits for no other transaction. A takeover needs no lock, because
-- until the pool changes, each request computes the mark from randflake_lease_takeover. After a
-- request has got a lock, its checks must see all earlier commits, so requests need READ COMMITTED.
--
-- A grant removes ended leases of its node ids. If a holder releases an unused lease, the lease's
-- row remains, and covers only its first second. The table shows when each node id's last lease
-- ended. The table has at most one row per node id, or two if leases differ in size.
--
-- Choice of node ids: leases do not move, so the free node ids can be too scattered for a request.
-- Requests for 1, 2, 4, .., 64 node ids can defeat any allocator once about a quarter of the pool
-- is in use (Robson, Journal of the ACM 18, 1971, and 21, 1974). This allocator has proven limits:
--
-- - A chunk is 64 aligned node ids of the pool. A chunk is empty while all its slots are free. Any
--   other chunk has a class, which is the size of its slots: a power of two. A request is rounded
--   up to a class, and takes a free slot in a chunk of this class, or else in an empty chunk.
-- - Let `used` be the highest number of node ids in use at once, with each lease rounded up to its
--   class. Let c be the number of requested classes, and m the number of chunks. A class takes
--   another chunk only when its chunks are full. So a class has at most used / 64 + 1 chunks. The
--   coordinator refuses a request only if no chunk is empty and all chunks of the request's class
--   are full. In this case, the class has at most (used - 1) / 64 chunks. So the coordinator grants
--   every request while c * used / 64 + c - 1 < m. This inequality holds while used <= 64 * (m - c)
--   / c. For all sizes 1 .. 64, c is 7.
-- - While there are fewer leases than chunks, not counting leases of more than 64 node ids, each
--   request for up to 64 node ids succeeds. Each lease lies in one chunk, so at least one chunk is
--   empty.
--
-- A lease counts as in use until a grant collects it and frees its slots. Each grant collects ended
-- leases, oldest first, until the collected leases have more node ids than the grant needs. So
-- `used` never exceeds the largest number of node ids leased at one time. These also count as in
-- use:
--
-- - chunks and ended leases that are locked by open transactions
-- - static node ids of this server
-- - leases that cross the edges of chunks because the pool has changed
-- - for a day after a takeover, leases that began before it and that no holder has renewed.
--
-- The node ids at the edges of the pool form no whole chunk. Grants take them one at a time. In a
-- pool of fewer than 16 chunks, grants take all node ids one at a time, so transactions lock only
-- what they lease.
--
-- Chunks serve as hints and locks. Only the leases decide which node ids are free. A grant examines
-- all leases if no slot is free, if the hints of 16 chunks were wrong, or if it needs more than 64
-- node ids. Such a grant takes an empty chunk or, if there is none, another gap. If no gap is large
-- enough, the grant fails.
--
-- A server names its secrets in one text, oldest first. The text begins with the fingerprint of the
-- first secret. Each further secret adds a space, its fingerprint, "@" and its first Unix second.
--
-- Times are Unix seconds. A span is half-open, [start, end). The functions take and return the last
-- second of a lease, as the Randflake libraries do.

CREATE TABLE randflake_lease_pool (
    singleton boolean PRIMARY KEY DEFAULT true CHECK (singleton), -- keeps the table at one row
    nodes int4range NOT NULL DEFAULT pg_catalog.int4range(0, 131072) -- node ids to lease
        CHECK (NOT pg_catalog.isempty(nodes)
               AND nodes OPERATOR(pg_catalog.<@) pg_catalog.int4range(0, 131072)),
    -- No lease lasts longer than this number of seconds.
    max_duration integer NOT NULL DEFAULT 60 CHECK (max_duration BETWEEN 1 AND 86400),
    -- The clocks of two coordinators may differ by this many seconds.
    max_clock_skew integer NOT NULL DEFAULT 2 CHECK (max_clock_skew BETWEEN 0 AND 3600),
    closed boolean NOT NULL DEFAULT false, -- true: the coordinator grants and renews no lease
    -- All leases of one role together may have at most this many node ids.
    max_nodes_per_role integer NOT NULL DEFAULT 131072
        CHECK (max_nodes_per_role BETWEEN 1 AND 131072),
    -- A role may get this many leases in a minute. Grants that roll back do not count.
    max_grants_per_role integer NOT NULL DEFAULT 60000
        CHECK (max_grants_per_role BETWEEN 1 AND 60000),
    -- No lease begins before this Unix second: the largest wait in randflake_lease_hold.
    high_water bigint NOT NULL DEFAULT 0,
    -- This text lists the secrets that every holder must have, in the format described above.
    secrets text,
    -- The identity of the coordinator that last changed the pool, as randflake_lease_identity
    -- returns it. If the present coordinator has another identity, the table may lack leases.
    coordinator text NOT NULL,
    -- The value of randflake_lease_takeover at that time. Another value is a takeover since.
    takeover bigint
);
COMMENT ON TABLE randflake_lease_pool IS
'coordinator: the settings of the pool, in one row that the first lease or setting creates';

CREATE TABLE randflake_lease (
    lease_id bigint GENERATED ALWAYS AS IDENTITY, -- number of the lease
    -- Only the role that got the lease may renew or release it.
    role name NOT NULL DEFAULT SESSION_USER,
    -- The holder chooses this name, which operators read.
    holder text NOT NULL CHECK (pg_catalog.octet_length(holder) OPERATOR(pg_catalog.<=) 256),
    -- The holder draws this random number for each acquisition.
    incarnation uuid NOT NULL,
    nodes int4range NOT NULL CHECK (NOT pg_catalog.isempty(nodes)), -- node ids
    span int8range NOT NULL CHECK (NOT pg_catalog.isempty(span)), -- Unix seconds
    granted_at timestamptz NOT NULL DEFAULT pg_catalog.clock_timestamp(), -- time of the grant
    renewed_at timestamptz, -- time of the last renewal
    released_at timestamptz, -- when the holder released it
    secrets text NOT NULL, -- fingerprints of the secrets that the holder named last, oldest first
    -- The coordinator has seen that the lease ended, so it can lease the node ids again.
    collected boolean NOT NULL DEFAULT false,
    PRIMARY KEY (role, lease_id), -- the role comes first, to find its leases
    CONSTRAINT randflake_lease_no_overlap EXCLUDE USING gist
        (nodes WITH OPERATOR(pg_catalog.&&), span WITH OPERATOR(pg_catalog.&&))
);
CREATE UNIQUE INDEX randflake_lease_number ON randflake_lease (lease_id);
CREATE INDEX randflake_lease_end ON randflake_lease (pg_catalog.upper(span)) WHERE NOT collected;
COMMENT ON TABLE randflake_lease IS
'coordinator: leases of node ids; an ended lease stays until its node ids are leased again';

COMMENT ON SEQUENCE randflake_lease_lease_id_seq IS 'numbers of leases';

-- Grants wait after some events. Each event has its own row, so waits end independently. A wait is
-- computed from the largest max_duration and the largest max_clock_skew set since the event. Each
-- wait protects static node ids. If "longest" is not 0, the wait also protects unknown leases.
--
--   takeover   another coordinator may have leased; also the extension's creation
--   promotion  a takeover by a start of the former coordinator or a promotion of its standby, so
--              the operator may state nothing_lost
--   added      node ids were added to the pool
--   reopened   another coordinator may have leased while the pool was closed ("since" is null)
--   purge      the coordinator deleted leases that ended before or in this second
CREATE TABLE randflake_lease_hold (
    -- makes updates and deletes possible while a publication has this table
    entry integer PRIMARY KEY,
    cause text NOT NULL, -- takeover, promotion, added, reopened or purge
    since bigint, -- Unix second of the event; null while the pool is closed
    -- This is the largest max_duration since the event, or 0 if the table has every lease in force.
    longest integer NOT NULL,
    widest integer NOT NULL -- largest max_clock_skew since the event
);
COMMENT ON TABLE randflake_lease_hold IS
'coordinator: a row for each event after which grants wait';

CREATE SEQUENCE randflake_lease_change MINVALUE 0 START 0;
COMMENT ON SEQUENCE randflake_lease_change IS
'coordinator: until this Unix millisecond other sessions leave the pool to a change that has '
'waited too long';

-- A dump omits this table. A restored coordinator at first grants nothing, and so needs no counts.
CREATE TABLE randflake_lease_role (
    role name PRIMARY KEY, -- name of the role
    minute bigint NOT NULL, -- minute of its last grant, since 1970
    grants integer NOT NULL -- number of grants in that minute
);
COMMENT ON TABLE randflake_lease_role IS
'coordinator: a row for each role that leased, which a grant to it locks';

-- Has a row for each server that announced its static node ids. Servers announce themselves again
-- after a restore, so a dump omits the table.
CREATE TABLE randflake_lease_announcement (
    role name NOT NULL DEFAULT SESSION_USER, -- role by which the server announced them
    server uuid NOT NULL, -- random number that the server chose at its start
    -- The server chooses this name, which operators read.
    holder text NOT NULL CHECK (pg_catalog.octet_length(holder) OPERATOR(pg_catalog.<=) 256),
    -- This text identifies the server's data directory.
    origin text NOT NULL CHECK (pg_catalog.octet_length(origin) OPERATOR(pg_catalog.<=) 256),
    nodes int4range NOT NULL, -- node ids
    -- The server's first secret has this fingerprint.
    fingerprint text NOT NULL
        CHECK (pg_catalog.octet_length(fingerprint) OPERATOR(pg_catalog.<=) 16),
    announced_at timestamptz NOT NULL, -- when it was last heard of
    PRIMARY KEY (role, server)
);
COMMENT ON TABLE randflake_lease_announcement IS
'coordinator: servers with node ids of their own, which they announce twice a minute';

-- A dump contains the chunks, so that no grant has to recreate them under a lock after a restore.
-- An UPDATE that changes only the slots updates no index.
CREATE TABLE randflake_lease_chunk (
    first integer PRIMARY KEY, -- first node id
    size integer NOT NULL CHECK (size IN (1, 64)), -- number of node ids
    -- The number of node ids of each slot. An empty chunk has 0.
    class integer NOT NULL CHECK (class = 0 OR size % class = 0),
    -- One bit for each slot, or a single bit for an empty chunk. 1 means that the slot seems free.
    free bit varying NOT NULL,
    -- Equals the column "first" while the chunk has a free slot, and is null otherwise.
    open_at integer GENERATED ALWAYS AS (CASE
        WHEN pg_catalog."position"(free, B'1') OPERATOR(pg_catalog.>) 0 THEN first END) STORED
) WITH (fillfactor = 20);
CREATE INDEX randflake_lease_chunk_open ON randflake_lease_chunk (class, open_at)
    WHERE open_at IS NOT NULL;
COMMENT ON TABLE randflake_lease_chunk IS
'coordinator: the pool in chunks of 64 node ids, or of 1 at its edges; a grant locks the chunks of '
'its node ids';

-- Stores the time of a takeover. No rollback undoes a change of a sequence. So the wait begins with
-- the first call, even if this call fails. Until the first takeover, the sequence's value says
-- where and when the extension was created. So a dump omits this value.
CREATE SEQUENCE randflake_lease_takeover MINVALUE 0 START 0;
COMMENT ON SEQUENCE randflake_lease_takeover IS
'coordinator: Unix seconds << 31 | hash of its identity: the time of its creation or, if '
'is_called, of its takeover';
SELECT pg_catalog.pg_extension_config_dump('randflake_lease_pool', '');
SELECT pg_catalog.pg_extension_config_dump('randflake_lease_hold', '');
SELECT pg_catalog.pg_extension_config_dump('randflake_lease', '');
SELECT pg_catalog.pg_extension_config_dump('randflake_lease_chunk', '');
SELECT pg_catalog.pg_extension_config_dump('randflake_lease_lease_id_seq', '');

-- Returns the identity: system identifier / timeline / data directory @ start of the server /
-- database. A copy, a promotion and a start change it.
CREATE FUNCTION randflake_coordinator_identity(own randflake_lease_internal) RETURNS text
AS 'MODULE_PATHNAME', 'randflake_coordinator_identity'
LANGUAGE C VOLATILE PARALLEL UNSAFE;

-- Returns the static node ids of this server, or nulls if it has none.
CREATE FUNCTION randflake_coordinator_static_nodes(
    own randflake_lease_internal,
    OUT first_node_id integer,
    OUT node_count integer)
AS 'MODULE_PATHNAME', 'randflake_coordinator_static_nodes'
LANGUAGE C STABLE PARALLEL SAFE;

-- Returns the static node ids of this server as a range. The coordinator never leases them.
CREATE FUNCTION randflake_lease_static_nodes(own randflake_lease_internal) RETURNS int4range
LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $$
    -- int4range(NULL, NULL) would contain all node ids.
    SELECT CASE WHEN first_node_id IS NULL THEN 'empty'
                ELSE int4range(first_node_id, first_node_id + node_count) END
    FROM @extschema@.randflake_coordinator_static_nodes(own)
$$;

CREATE FUNCTION randflake_lease_clock(own randflake_lease_internal) RETURNS bigint
LANGUAGE sql VOLATILE PARALLEL SAFE
SET search_path = pg_catalog, pg_temp
AS $$ SELECT floor(extract(epoch FROM clock_timestamp()))::bigint $$;

-- Returns the first Unix second that an identifier can hold.
CREATE FUNCTION randflake_lease_epoch(own randflake_lease_internal) RETURNS bigint
LANGUAGE sql IMMUTABLE PARALLEL SAFE
AS $$ SELECT 1730000000::bigint $$;

-- Returns the first Unix second that is too late for an identifier.
CREATE FUNCTION randflake_lease_horizon(own randflake_lease_internal) RETURNS bigint
LANGUAGE sql IMMUTABLE PARALLEL SAFE
AS $$ SELECT 1730000000 + (1::bigint << 30) $$;

CREATE FUNCTION randflake_lease_identity(own randflake_lease_internal) RETURNS text
LANGUAGE sql VOLATILE
SET search_path = pg_catalog, pg_temp
-- A restore of a dump gives the table another oid, and so another identity.
AS $$
    SELECT format('%s/%s', @extschema@.randflake_coordinator_identity(own),
                  '@extschema@.randflake_lease'::regclass::oid)
$$;

-- Returns the Unix second of the server's start.
CREATE FUNCTION randflake_lease_started(own randflake_lease_internal) RETURNS bigint
LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $$ SELECT floor(extract(epoch FROM pg_postmaster_start_time()))::bigint $$;

CREATE FUNCTION randflake_lease_identity_hash(own randflake_lease_internal, identity text)
    RETURNS bigint
LANGUAGE sql IMMUTABLE
SET search_path = pg_catalog, pg_temp
-- Starts count by their time.
AS $$
    SELECT hashtextextended(regexp_replace(identity, '@[^/]*', ''), 0) & ((1::bigint << 31) - 1)
$$;

-- Returns true if this value of randflake_lease_takeover was written here, since the last start.
CREATE FUNCTION randflake_lease_noted_here(own randflake_lease_internal, identity text,
                                           noted bigint) RETURNS boolean
LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $$
    SELECT (noted - @extschema@.randflake_lease_identity_hash(own, identity))
        & ((1::bigint << 31) - 1) = 0
        AND noted >> 31 >= @extschema@.randflake_lease_started(own)
$$;

-- Returns true if this coordinator is the former one after a start of its server, or a promoted
-- standby of the former one: its timeline is higher by 1, and the rest of the identity is equal. If
-- the timeline is higher by more than 1, another standby was promoted before this coordinator, and
-- may have granted leases that this table lacks.
CREATE FUNCTION randflake_lease_promoted(own randflake_lease_internal, former text, identity text)
    RETURNS boolean
LANGUAGE sql IMMUTABLE
SET search_path = pg_catalog, pg_temp
AS $$
    SELECT coalesce(
        (SELECT bool_and(split_part(former, '/', part) = split_part(identity, '/', part))
         FROM unnest('{1,4,5}'::integer[]) AS part)
        AND former <> identity
        AND CASE nullif(split_part(identity, '/', 2), '')::bigint
                 - nullif(split_part(former, '/', 2), '')::bigint
            WHEN 1 THEN true
            WHEN 0 THEN split_part(split_part(former, '/', 3), '@', 1)
                        = split_part(split_part(identity, '/', 3), '@', 1)
            END, false)
$$;

-- While is_called is false, the sequence holds the time of the extension's creation.
SELECT pg_catalog.setval('@extschema@.randflake_lease_takeover',
                         least(@extschema@.randflake_lease_clock(own),
                               @extschema@.randflake_lease_horizon(own))
                         OPERATOR(pg_catalog.<<) 31
                         OPERATOR(pg_catalog.|) @extschema@.randflake_lease_identity_hash(
                             own, @extschema@.randflake_lease_identity(own)),
                         false)
FROM (SELECT NULL::@extschema@.randflake_lease_internal) AS internal (own);

-- Reports a violated contract of uniqueness. Does not use ASSERT, as any role can turn ASSERT off.
CREATE FUNCTION randflake_lease_broken(own randflake_lease_internal, contract text) RETURNS void
LANGUAGE plpgsql VOLATILE
SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    RAISE data_corrupted USING
        MESSAGE = 'the coordinator broke a contract by which no identifier comes twice',
        DETAIL = format('The contract is: %s. Nothing of the transaction stays.', contract),
        HINT = 'Undo what was changed by hand in the coordinator''s tables. If nothing was, '
               'report this.';
END
$$;

-- Returns the time at which this coordinator took over from the former one. This is the time of the
-- first call that saw another identity in the pool, or of the table's last grant, whichever is
-- later. Without a pool, returns the time of the extension's creation in this database, if the
-- server has not started since. From then on, a copy of the database may have granted leases that
-- this database lacks.
CREATE FUNCTION randflake_lease_taken_over(own randflake_lease_internal, former text, identity text)
RETURNS bigint
LANGUAGE plpgsql VOLATILE
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    hash CONSTANT bigint := @extschema@.randflake_lease_identity_hash(own, identity);
    noted bigint;
    called boolean;
BEGIN
    SELECT last_value, is_called INTO STRICT noted, called
    FROM @extschema@.randflake_lease_takeover;
    IF @extschema@.randflake_lease_noted_here(own, identity, noted)
        AND (called OR former = '') THEN
        RETURN noted >> 31;
    END IF;
    SELECT least(greatest(@extschema@.randflake_lease_clock(own),
                          @extschema@.randflake_lease_started(own),
                          extract(epoch FROM max(greatest(granted_at, renewed_at)))::bigint),
                 @extschema@.randflake_lease_horizon(own)) << 31 | hash
    INTO STRICT noted FROM @extschema@.randflake_lease;
    PERFORM setval('@extschema@.randflake_lease_takeover', noted);
    RAISE LOG 'node ids were leased by another coordinator before'
        USING DETAIL = 'No lease starts until the last one that it may have granted has ended.';
    RETURN noted >> 31;
END
$$;

-- A restore or an operator may delete rows of leases in force, or replace the pool by an older one.
-- Triggers note this as a takeover, in the sequence that no dump contains. They also fire while
-- session_replication_role is `replica`. DISABLE TRIGGER ALL changes them, and so shows itself.
CREATE FUNCTION randflake_lease_lost() RETURNS trigger
LANGUAGE plpgsql VOLATILE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    own CONSTANT @extschema@.randflake_lease_internal := NULL;
BEGIN
    PERFORM setval('@extschema@.randflake_lease_takeover',
                   @extschema@.randflake_lease_identity_hash(own,
                       @extschema@.randflake_lease_identity(own)) # 1);
    RETURN NULL;
END
$$;
COMMENT ON FUNCTION randflake_lease_lost() IS
'not for users: a trigger that notes that rows were lost';

-- Ignores rows of another server, which an apply or synchronization worker brings.
CREATE FUNCTION randflake_lease_own_rows() RETURNS trigger
LANGUAGE plpgsql VOLATILE
SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    IF EXISTS (SELECT FROM pg_stat_get_subscription(NULL) WHERE pid = pg_backend_pid()) THEN
        RETURN NULL;
    ELSIF TG_OP = 'DELETE' THEN
        RETURN OLD;
    END IF;
    RETURN NEW;
END
$$;
COMMENT ON FUNCTION randflake_lease_own_rows() IS
'not for users: a trigger that ignores rows of a subscription';

-- Returns true while all triggers fire, whatever session_replication_role says.
CREATE FUNCTION randflake_lease_guarded(own randflake_lease_internal) RETURNS boolean
LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $$
    SELECT count(*) = 12 FROM pg_trigger
    WHERE tgrelid IN ('@extschema@.randflake_lease'::regclass,
                      '@extschema@.randflake_lease_pool'::regclass,
                      '@extschema@.randflake_lease_hold'::regclass,
                      '@extschema@.randflake_lease_role'::regclass,
                      '@extschema@.randflake_lease_chunk'::regclass,
                      '@extschema@.randflake_lease_announcement'::regclass)
      AND tgname LIKE 'randflake\_lease\_%' AND tgenabled = 'A'
$$;

-- Makes all triggers fire always.
CREATE FUNCTION randflake_lease_guard(own randflake_lease_internal) RETURNS void
LANGUAGE plpgsql VOLATILE
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    command text;
BEGIN
    FOR command IN
        SELECT format('ALTER TABLE %s ENABLE ALWAYS TRIGGER %I', tgrelid::regclass, tgname)
        FROM pg_trigger JOIN pg_class ON pg_class.oid = tgrelid
        WHERE relnamespace = (SELECT relnamespace FROM pg_class
                              WHERE oid = '@extschema@.randflake_lease'::regclass)
          AND relname LIKE 'randflake\_lease%' AND tgname LIKE 'randflake\_lease\_%'
          AND tgenabled <> 'A'
    LOOP
        EXECUTE command;
    END LOOP;
END
$$;

CREATE TRIGGER randflake_lease_deleted AFTER DELETE ON randflake_lease FOR EACH ROW
    WHEN (pg_catalog.upper(OLD.span)::numeric
          OPERATOR(pg_catalog.>) EXTRACT(epoch FROM pg_catalog.clock_timestamp()))
    EXECUTE FUNCTION randflake_lease_lost();
CREATE TRIGGER randflake_lease_truncated AFTER TRUNCATE ON randflake_lease
    EXECUTE FUNCTION randflake_lease_lost();
CREATE TRIGGER randflake_lease_replaced AFTER INSERT ON randflake_lease_pool FOR EACH ROW
    WHEN (NEW.coordinator OPERATOR(pg_catalog.<>) '') EXECUTE FUNCTION randflake_lease_lost();
CREATE TRIGGER randflake_lease_deleted AFTER DELETE ON randflake_lease_pool FOR EACH ROW
    EXECUTE FUNCTION randflake_lease_lost();
CREATE TRIGGER randflake_lease_truncated AFTER TRUNCATE ON randflake_lease_pool
    EXECUTE FUNCTION randflake_lease_lost();
CREATE TRIGGER randflake_lease_truncated AFTER TRUNCATE ON randflake_lease_hold
    EXECUTE FUNCTION randflake_lease_lost();
DO $$
DECLARE
    of_table text;
BEGIN
    FOREACH of_table IN ARRAY ARRAY['', '_pool', '_hold', '_role', '_chunk', '_announcement'] LOOP
        EXECUTE pg_catalog.format(
            'CREATE TRIGGER randflake_lease_own_rows
            BEFORE INSERT OR UPDATE OR DELETE ON @extschema@.randflake_lease%s
            FOR EACH ROW WHEN (pg_catalog.current_setting(''session_replication_role'')
                               OPERATOR(pg_catalog.=) ''replica'')
            EXECUTE FUNCTION @extschema@.randflake_lease_own_rows()', of_table);
    END LOOP;
END
$$;
SELECT @extschema@.randflake_lease_guard(NULL);

-- Locks the pool against changes until the transaction ends. Other sessions can hold this lock at
-- the same time. Returns the pool with its current mark, or null if there is no pool.
CREATE FUNCTION randflake_lease_share_pool(own randflake_lease_internal)
    RETURNS randflake_lease_pool
LANGUAGE plpgsql VOLATILE
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    pool @extschema@.randflake_lease_pool;
    identity CONSTANT text := @extschema@.randflake_lease_identity(own);
    noted bigint;
    called boolean;
    since bigint; -- leases that the table lacks may have been granted until this second
BEGIN
    IF current_setting('transaction_isolation') NOT IN ('read committed', 'read uncommitted') THEN
        RAISE invalid_transaction_state USING
            MESSAGE = 'node ids are leased under the isolation level READ COMMITTED alone',
            DETAIL = format('This transaction is %s, and sees the leases as they were when '
                            'it began.',
                            upper(current_setting('transaction_isolation'))),
            HINT = 'Begin it with BEGIN ISOLATION LEVEL READ COMMITTED, or set '
                   '"default_transaction_isolation" in the connection.';
    END IF;
    -- A grant must survive a crash. If the wait for a synchronous standby is canceled, the holder
    -- must see the warning. So this code sets synchronous_commit and client_min_messages.
    IF current_setting('synchronous_commit') IN ('off', 'local') THEN
        PERFORM set_config('synchronous_commit', 'on', true);
    END IF;
    IF current_setting('client_min_messages') = 'error' THEN
        PERFORM set_config('client_min_messages', 'warning', true);
    END IF;
    -- If a change of the pool has waited for 20 seconds, this call waits for it, up to a second.
    FOR attempt IN 1 .. 100 LOOP
        EXIT WHEN (SELECT last_value - floor(1000 * extract(epoch FROM clock_timestamp()))::bigint
                          NOT BETWEEN 1 AND 2000
                   FROM @extschema@.randflake_lease_change);
        PERFORM pg_sleep(0.01);
    END LOOP;
    LOCK TABLE @extschema@.randflake_lease_pool IN ROW SHARE MODE;
    SELECT * INTO pool FROM @extschema@.randflake_lease_pool;
    IF NOT FOUND THEN
        RETURN pool;
    END IF;
    IF NOT @extschema@.randflake_lease_guarded(own) THEN
        RAISE LOG 'triggers of the coordinator''s tables were changed'
            USING DETAIL = 'Rows may have been lost meanwhile, so no lease is granted.',
                  HINT = 'Call randflake_lease_configure(), which restores them.';
        since := @extschema@.randflake_lease_clock(own);
    END IF;
    SELECT last_value, is_called INTO STRICT noted, called
    FROM @extschema@.randflake_lease_takeover;
    IF pool.coordinator <> identity
        OR NOT @extschema@.randflake_lease_noted_here(own, identity, noted)
        OR (CASE WHEN called THEN noted END) IS DISTINCT FROM pool.takeover THEN
        since := greatest(since, @extschema@.randflake_lease_taken_over(
            own, pool.coordinator, identity));
        pool.coordinator := identity;
    END IF;
    pool.high_water :=
        greatest(pool.high_water, since + pool.max_duration + 2 * pool.max_clock_skew + 1);
    RETURN pool;
END
$$;

-- Because of this event, no lease begins before the returned Unix second; null while the pool is
-- closed.
CREATE FUNCTION randflake_lease_until(own randflake_lease_internal, hold randflake_lease_hold)
    RETURNS bigint
LANGUAGE sql IMMUTABLE PARALLEL SAFE
SET search_path = pg_catalog, pg_temp
AS $$
    SELECT hold.since + hold.longest
        + CASE WHEN hold.longest > 0 THEN 2 ELSE 1 END * hold.widest + 1
$$;

-- Adds an event after which grants wait. Deletes events with the same cause that end no later.
CREATE FUNCTION randflake_lease_hold_off(
    own randflake_lease_internal, event text, second bigint, duration integer, skew integer)
RETURNS void
LANGUAGE sql VOLATILE
SET search_path = pg_catalog, pg_temp
AS $$
    DELETE FROM @extschema@.randflake_lease_hold
    WHERE cause = event AND since <= second AND longest <= duration AND widest <= skew;
    INSERT INTO @extschema@.randflake_lease_hold
    SELECT 1 + coalesce(max(entry), 0), event, second, duration, skew
    FROM @extschema@.randflake_lease_hold;
$$;

-- Returns the class of a lease: its number of node ids, rounded up to a power of two, at most 64.
CREATE FUNCTION randflake_lease_class(own randflake_lease_internal, count integer) RETURNS integer
LANGUAGE sql IMMUTABLE PARALLEL SAFE
SET search_path = pg_catalog, pg_temp
AS $$
    SELECT CASE WHEN count <= 1 THEN 1 WHEN count <= 2 THEN 2
                WHEN count <= 4 THEN 4 WHEN count <= 8 THEN 8
                WHEN count <= 16 THEN 16 WHEN count <= 32 THEN 32 ELSE 64 END
$$;

-- Records the free slots of a chunk, whose row the caller has locked. Only slots whose node ids are
-- in `place` may have changed. The node ids of `granted` belong to a lease that has no row yet.
CREATE FUNCTION randflake_lease_look(own randflake_lease_internal, chunk randflake_lease_chunk,
                                     place int4range, granted int4range, now bigint) RETURNS void
LANGUAGE plpgsql VOLATILE
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    slot integer := chunk.class;
    bits bit varying := chunk.free;
    from_slot integer := 0;
    to_slot integer := 0;
    around int4range := int4range(chunk.first, chunk.first + chunk.size);
    busy int4multirange;
    widest integer;
    -- After a failover, the former primary may still run and renew its leases. So for a day,
    -- grants avoid node ids of earlier leases that no holder has renewed at this coordinator.
    taken_over CONSTANT timestamptz := (SELECT to_timestamp((last_value >> 31) + 1)
                                        FROM @extschema@.randflake_lease_takeover
                                        WHERE is_called AND now < (last_value >> 31) + 86400);
BEGIN
    IF slot > 0 THEN
        from_slot := (lower(around * place) - chunk.first) / slot;
        to_slot := (upper(around * place) - 1 - chunk.first) / slot;
        around := int4range(chunk.first + from_slot * slot, chunk.first + (to_slot + 1) * slot);
    END IF;
    SELECT coalesce(range_agg(lease.nodes), '{}')
               + int4multirange(@extschema@.randflake_lease_static_nodes(own)),
           max(@extschema@.randflake_lease_class(
               own, upper(lease.nodes) - lower(lease.nodes)))
    INTO STRICT busy, widest
    FROM (SELECT l.nodes FROM @extschema@.randflake_lease l
          WHERE l.nodes && around
            AND (l.span && int8range(now, NULL)
                 OR greatest(l.granted_at, l.renewed_at) < taken_over)
          UNION ALL SELECT granted WHERE granted && around) AS lease;
    IF slot = 0 THEN
        IF NOT busy && around THEN
            RETURN;
        END IF;
        slot := coalesce(widest, 1);
        to_slot := 64 / slot - 1;
        bits := repeat('1', to_slot + 1)::bit varying;
    END IF;
    FOR i IN from_slot .. to_slot LOOP
        bits := set_bit(bits, i,
                        (NOT busy && int4range(chunk.first + i * slot,
                                               chunk.first + (i + 1) * slot))::integer);
    END LOOP;
    IF chunk.size = 64 AND position(B'0' IN bits) = 0 THEN
        slot := 0;
        bits := B'1';
    END IF;
    IF slot <> chunk.class OR bits <> chunk.free THEN
        UPDATE @extschema@.randflake_lease_chunk c SET class = slot, free = bits
        WHERE c.first = chunk.first;
    END IF;
END
$$;

-- Recreates the chunks of a locked pool.
CREATE FUNCTION randflake_lease_chunks(own randflake_lease_internal, pool int4range) RETURNS void
LANGUAGE plpgsql VOLATILE
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    now CONSTANT bigint := @extschema@.randflake_lease_clock(own);
    chunk @extschema@.randflake_lease_chunk;
BEGIN
    DELETE FROM @extschema@.randflake_lease_chunk;
    INSERT INTO @extschema@.randflake_lease_chunk (first, size, class, free)
    SELECT node_id, size, CASE WHEN size = 1 THEN 1 ELSE 0 END, B'1'
    FROM generate_series(lower(pool) / 64 * 64, upper(pool) - 1, 64) AS start,
         LATERAL (SELECT CASE WHEN int4range(start, start + 64) <@ pool
                                   AND upper(pool) / 64 - (lower(pool) + 63) / 64 >= 16
                              THEN 64 ELSE 1 END) AS of_chunk (size),
         generate_series(greatest(start, lower(pool)), least(start + 63, upper(pool) - 1), size)
             AS node_id;
    FOR chunk IN SELECT * FROM @extschema@.randflake_lease_chunk LOOP
        PERFORM @extschema@.randflake_lease_look(
            own, chunk, pool, 'empty'::int4range, now);
    END LOOP;
END
$$;

-- Collects ended leases, oldest first, until they have more node ids than the class of `count`. If
-- a lease has more than 64 node ids, a call locks and frees only two of the lease's chunks.
CREATE FUNCTION randflake_lease_collect(own randflake_lease_internal, number bigint, count integer,
                                        pool int4range, now bigint)
RETURNS void
LANGUAGE plpgsql VOLATILE
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    most CONSTANT integer := @extschema@.randflake_lease_class(own, count);
    -- Every 64th grant examines 64 node ids from `turn` on, to finish earlier grants' cleanup.
    turn CONSTANT integer := lower(pool) + number % (upper(pool) - lower(pool));
    lease record;
    chunk @extschema@.randflake_lease_chunk;
    taken_over CONSTANT timestamptz := (SELECT to_timestamp((last_value >> 31) + 1)
                                        FROM @extschema@.randflake_lease_takeover
                                        WHERE is_called AND now < (last_value >> 31) + 86400);
    node_ids integer := 0;
    undone int4multirange;
BEGIN
    IF number % 64 = 0 THEN
        FOR chunk IN SELECT * FROM @extschema@.randflake_lease_chunk c
            WHERE c.first BETWEEN turn AND turn + 63 FOR UPDATE SKIP LOCKED LOOP
            PERFORM @extschema@.randflake_lease_look(
                own, chunk, pool, 'empty'::int4range, now);
        END LOOP;
    END IF;
    -- No state says where the former grant stopped. Such a state would outlive its transaction, or
    -- another transaction that collects leases and then rolls back.
    FOR lease IN
        SELECT l.ctid AS place, l.nodes, upper(l.nodes) - lower(l.nodes) > 64 AS wide
        FROM @extschema@.randflake_lease l
        WHERE NOT l.collected AND upper(l.span) <= now
          AND (greatest(l.granted_at, l.renewed_at) < taken_over) IS NOT TRUE
        ORDER BY upper(l.span) LIMIT most + 1
        FOR NO KEY UPDATE SKIP LOCKED
    LOOP
        EXIT WHEN node_ids > most;
        undone := int4multirange(lease.nodes * pool);
        FOR chunk IN
            SELECT * FROM @extschema@.randflake_lease_chunk c
            WHERE c.first BETWEEN lower(lease.nodes) - 63 AND upper(lease.nodes) - 1
              AND c.first + c.size > lower(lease.nodes)
              AND (c.open_at IS NULL OR NOT lease.wide)
            LIMIT CASE WHEN lease.wide THEN 2 ELSE 64 END FOR UPDATE SKIP LOCKED
        LOOP
            PERFORM @extschema@.randflake_lease_look(own, chunk, lease.nodes,
                                                     'empty'::int4range, now);
            undone := undone - int4multirange(int4range(chunk.first, chunk.first + chunk.size));
        END LOOP;
        IF lease.wide THEN
            node_ids := node_ids + 128;
            SELECT coalesce(range_agg(int4range(c.first, c.first + c.size)), '{}') INTO undone
            FROM @extschema@.randflake_lease_chunk c
            WHERE c.first BETWEEN lower(lease.nodes) - 63 AND upper(lease.nodes) - 1
              AND c.first + c.size > lower(lease.nodes) AND c.open_at IS NULL;
        ELSIF isempty(undone) THEN
            node_ids := node_ids + @extschema@.randflake_lease_class(
                own, upper(lease.nodes) - lower(lease.nodes));
        END IF;
        -- While a chunk of the lease is locked, only every 64th grant tries to collect the lease.
        IF isempty(undone) OR number % 64 = 0 AND NOT lease.wide THEN
            UPDATE @extschema@.randflake_lease l SET collected = true
            WHERE l.ctid = lease.place;
        END IF;
    END LOOP;
END
$$;

-- If `chosen` is free, removes its old leases and returns true. The caller has locked the chunks.
CREATE FUNCTION randflake_lease_take(own randflake_lease_internal, chosen int4range, now bigint)
    RETURNS boolean
LANGUAGE plpgsql VOLATILE
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    places tid[];
    wider tid[];
BEGIN
    IF chosen && @extschema@.randflake_lease_static_nodes(own) THEN
        RETURN false;
    ELSIF EXISTS (SELECT FROM @extschema@.randflake_lease l WHERE l.nodes && chosen) THEN
        -- All leases that overlap `chosen` must have ended. The locks stop renewals by holders
        -- whose clocks are behind. A lease that reaches beyond `chosen` stays in the table.
        places := ARRAY(SELECT l.ctid FROM @extschema@.randflake_lease l
                        WHERE l.nodes && chosen AND l.nodes <@ chosen AND upper(l.span) <= now
                        FOR UPDATE SKIP LOCKED);
        wider := ARRAY(SELECT l.ctid FROM @extschema@.randflake_lease l
                       WHERE l.nodes && chosen AND NOT l.nodes <@ chosen AND upper(l.span) <= now
                       FOR KEY SHARE SKIP LOCKED);
        IF EXISTS (SELECT FROM @extschema@.randflake_lease l
                   WHERE l.nodes && chosen AND l.ctid <> ALL (places || wider)) THEN
            RETURN false;
        END IF;
        DELETE FROM @extschema@.randflake_lease l WHERE l.ctid = ANY (places);
    END IF;
    RETURN true;
END
$$;

-- Finds at most 64 node ids for the lease with this number in a free slot, locks them, and removes
-- their former leases. Returns the first node id, or null if no slot is free.
CREATE FUNCTION randflake_lease_find_slot(
    own randflake_lease_internal, number bigint, count integer, pool int4range, now bigint)
RETURNS integer
LANGUAGE plpgsql VOLATILE
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    slot CONSTANT integer := @extschema@.randflake_lease_class(own, count);
    -- If a former primary still runs, it uses other lease numbers, and therefore other node ids.
    turn CONSTANT integer := lower(pool) + 64 * (number - 1) % (upper(pool) - lower(pool));
    chunk @extschema@.randflake_lease_chunk;
    place integer;
    first integer;
    chosen int4range;
BEGIN
    FOR attempt IN 1 .. 16 LOOP
        SELECT * INTO chunk FROM @extschema@.randflake_lease_chunk c
        WHERE c.class = slot AND c.open_at IS NOT NULL
        ORDER BY c.open_at LIMIT 1 FOR UPDATE SKIP LOCKED;
        IF NOT FOUND THEN
            SELECT * INTO chunk FROM @extschema@.randflake_lease_chunk c
            WHERE c.class = 0 AND c.open_at >= turn
            ORDER BY c.open_at LIMIT 1 FOR UPDATE SKIP LOCKED;
            IF NOT FOUND THEN
                SELECT * INTO chunk FROM @extschema@.randflake_lease_chunk c
                WHERE c.class = 0 AND c.open_at < turn
                ORDER BY c.open_at LIMIT 1 FOR UPDATE SKIP LOCKED;
                EXIT WHEN NOT FOUND;
            END IF;
            chunk.class := slot;
            chunk.free := repeat('1', 64 / slot)::bit varying;
        END IF;
        LOOP
            place := (number - 1) % length(chunk.free);
            place := place + position(B'1' IN substring(chunk.free FROM place + 1)) - 1;
            IF place < (number - 1) % length(chunk.free) THEN
                place := position(B'1' IN chunk.free) - 1;
                EXIT WHEN place < 0;
            END IF;
            chunk.free := set_bit(chunk.free, place, 0);
            first := chunk.first + place * slot;
            chosen := int4range(first, first + count);
            EXIT WHEN chosen <@ pool
                AND @extschema@.randflake_lease_take(own, chosen, now);
            first := NULL;
        END LOOP;
        UPDATE @extschema@.randflake_lease_chunk c
        SET class = chunk.class, free = chunk.free WHERE c.first = chunk.first;
        IF first IS NOT NULL THEN
            RETURN first;
        END IF;
    END LOOP;
    RETURN NULL;
END
$$;

-- Finds consecutive node ids for the lease with this number, locks them, and removes their former
-- leases. If it finds none, `first` is null. `free_at` is then the time to retry; null means soon.
CREATE FUNCTION randflake_lease_find(own randflake_lease_internal, number bigint, count integer,
                                     pool int4range, now bigint,
                                     OUT first integer, OUT free_at bigint)
LANGUAGE plpgsql VOLATILE
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    static_nodes CONSTANT int4range := @extschema@.randflake_lease_static_nodes(own);
    slot CONSTANT integer := @extschema@.randflake_lease_class(own, count);
    has_chunks CONSTANT boolean := EXISTS (SELECT FROM @extschema@.randflake_lease_chunk c
                                           WHERE c.size = 64);
    chunk @extschema@.randflake_lease_chunk;
    chunks @extschema@.randflake_lease_chunk[];
    chosen int4range;
    busy int4multirange := '{}';  -- locked by others
BEGIN
    IF NOT EXISTS (SELECT FROM unnest(int4multirange(pool) - int4multirange(static_nodes)) AS r
                   WHERE upper(r) - lower(r) >= count) THEN
        RAISE configuration_limit_exceeded USING
            MESSAGE = format('the pool has fewer than %s node ids', count),
            DETAIL = format('It has node ids %s to %s%s.', lower(pool), upper(pool) - 1,
                            CASE WHEN static_nodes && pool
                                 THEN format(', without %s to %s, which this server uses itself',
                                             lower(static_nodes), upper(static_nodes) - 1)
                                 ELSE '' END),
            HINT = 'Widen it with randflake_lease_configure, or ask for fewer.';
    END IF;
    PERFORM @extschema@.randflake_lease_collect(own, number, count, pool, now);
    IF count <= 64 THEN
        first := @extschema@.randflake_lease_find_slot(own, number, count, pool, now);
        IF first IS NOT NULL THEN
            RETURN;
        END IF;
    END IF;
    FOR attempt IN 1 .. 64 LOOP
        -- Prefers a whole chunk to a slot, and a slot to any other gap.
        SELECT candidate.start INTO first
        FROM (SELECT unnest(int4multirange(pool) - int4multirange(static_nodes) - busy
                            - coalesce(range_agg(l.nodes), '{}')) AS r
              FROM @extschema@.randflake_lease l WHERE upper(l.span) > now) AS gap,
             LATERAL (VALUES (1, (lower(r) + 63) / 64 * 64, greatest(count, 64)),
                             (2, (lower(r) + slot - 1) / slot * slot, count),
                             (3, lower(r), count)) AS candidate (preference, start, size)
        WHERE candidate.start + candidate.size <= upper(r)
          AND (candidate.preference > 1 OR has_chunks)
        ORDER BY candidate.preference, candidate.start LIMIT 1;
        IF first IS NULL THEN
            SELECT min(upper(l.span)) INTO free_at
            FROM @extschema@.randflake_lease l
            WHERE upper(l.span) > now AND l.nodes && pool AND isempty(busy);
            RETURN;
        END IF;
        chosen := int4range(first, first + count);
        chunks := ARRAY(SELECT c FROM @extschema@.randflake_lease_chunk c
                        WHERE c.first BETWEEN lower(chosen) - 63 AND upper(chosen) - 1
                          AND c.first + c.size > lower(chosen)
                        ORDER BY c.first FOR UPDATE SKIP LOCKED);
        IF (SELECT range_agg(int4range(c.first, c.first + c.size)) @> chosen
            FROM unnest(chunks) AS c)
            AND @extschema@.randflake_lease_take(own, chosen, now) THEN
            FOREACH chunk IN ARRAY chunks LOOP
                PERFORM @extschema@.randflake_lease_look(own, chunk, pool, chosen, now);
            END LOOP;
            RETURN;
        END IF;
        SELECT busy + int4multirange(chosen)
            + coalesce(range_agg(int4range(c.first, c.first + c.size)), '{}') INTO busy
        FROM @extschema@.randflake_lease_chunk c
        WHERE c.first BETWEEN lower(chosen) - 63 AND upper(chosen) - 1
          AND c.first + c.size > lower(chosen);
    END LOOP;
    first := NULL;
END
$$;

-- Locks the pool against all other leasing until the transaction ends. Creates the pool if
-- necessary, and writes its mark. Returns the pool, with the identity of the coordinator that last
-- changed the pool ('' if none has). To get the lock, the call ends other sessions that lock the
-- pool. In its first 20 seconds, the call ends only sessions whose transactions are older than 20
-- seconds. Once a second, the call leaves the lock's queue to let waiting sessions proceed. After
-- 20 seconds, the call ends every session that locks the pool, and lets no other session lock the
-- pool first. Otherwise sessions could take turns and delay the call forever.
CREATE FUNCTION randflake_lease_lock_pool(own randflake_lease_internal) RETURNS randflake_lease_pool
LANGUAGE plpgsql VOLATILE
SET search_path = pg_catalog, pg_temp
SET lock_timeout = '1s'
AS $$
DECLARE
    former @extschema@.randflake_lease_pool;
    pool @extschema@.randflake_lease_pool;
    attempts integer := 0; -- of a second each
BEGIN
    LOOP
        attempts := attempts + 1;
        IF attempts > 20 THEN
            PERFORM setval('@extschema@.randflake_lease_change',
                           floor(1000 * extract(epoch FROM clock_timestamp()))::bigint + 2000);
        END IF;
        PERFORM pg_stat_clear_snapshot(); -- otherwise it misses new sessions
        PERFORM pg_terminate_backend(pid)
        FROM pg_locks JOIN pg_database ON pg_database.oid = database
            JOIN pg_stat_activity USING (pid)
        WHERE pg_database.datname = current_database()
          AND relation = '@extschema@.randflake_lease_pool'::regclass
          AND mode NOT IN ('AccessShareLock', 'ShareUpdateExclusiveLock') AND granted
          AND pid <> pg_backend_pid()
          AND (attempts > 20 OR xact_start < clock_timestamp() - interval '20 seconds');
        BEGIN
            LOCK TABLE @extschema@.randflake_lease_pool IN EXCLUSIVE MODE;
            EXIT;
        EXCEPTION WHEN lock_not_available THEN
            NULL;
        END;
    END LOOP;
    IF attempts > 20 THEN
        PERFORM setval('@extschema@.randflake_lease_change', 0);
    END IF;
    INSERT INTO @extschema@.randflake_lease_pool AS p (coordinator) VALUES ('')
    ON CONFLICT DO NOTHING RETURNING p.* INTO former;
    IF FOUND THEN
        PERFORM @extschema@.randflake_lease_chunks(own, former.nodes);
    END IF;
    SELECT * INTO STRICT former FROM @extschema@.randflake_lease_pool;
    IF NOT @extschema@.randflake_lease_guarded(own) THEN
        PERFORM @extschema@.randflake_lease_guard(own),
                setval('@extschema@.randflake_lease_takeover',
                       @extschema@.randflake_lease_identity_hash(own,
                           @extschema@.randflake_lease_identity(own)) # 1);
    END IF;
    pool := @extschema@.randflake_lease_share_pool(own);
    IF EXISTS (SELECT FROM @extschema@.randflake_lease_pool p
               WHERE p.high_water > pool.high_water) THEN
        PERFORM @extschema@.randflake_lease_broken(
            own, 'a takeover does not lower the mark'::text);
    END IF;
    SELECT CASE WHEN is_called THEN last_value END INTO STRICT pool.takeover
    FROM @extschema@.randflake_lease_takeover;
    IF pool.coordinator <> former.coordinator OR pool.takeover IS DISTINCT FROM former.takeover THEN
        -- `nothing_lost` concerns only the last takeover.
        UPDATE @extschema@.randflake_lease_hold SET cause = 'takeover'
        WHERE cause = 'promotion';
        PERFORM @extschema@.randflake_lease_hold_off(
            own,
            CASE WHEN @extschema@.randflake_lease_promoted(
                          own, former.coordinator, pool.coordinator)
                 THEN 'promotion' ELSE 'takeover' END,
            last_value >> 31, pool.max_duration, pool.max_clock_skew)
        FROM @extschema@.randflake_lease_takeover;
        UPDATE @extschema@.randflake_lease_pool
        SET coordinator = pool.coordinator, takeover = pool.takeover, high_water = pool.high_water;
        pool.coordinator := former.coordinator;
    END IF;
    RETURN pool;
END
$$;

-- Raises an error while the pool is closed. The error does not count as a refusal, so the holder
-- does not ask for another lease. It keeps its lease, and asks this or another coordinator again.
CREATE FUNCTION randflake_lease_require_open(own randflake_lease_internal,
                                             pool randflake_lease_pool)
RETURNS void
LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    IF pool.closed THEN
        RAISE cannot_connect_now USING
            MESSAGE = 'the pool of node ids is closed',
            DETAIL = 'Leases end when they would have been renewed; none is granted.',
            HINT = 'Set "randflake.coordinator" to the coordinator that has taken the place of '
                   'this one, or open the pool with randflake_lease_configure(closed => false).';
    END IF;
END
$$;

CREATE FUNCTION randflake_lease_require_fingerprints(own randflake_lease_internal, secrets text)
RETURNS void
LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    IF secrets !~ '^[0-9a-f]{16}( [0-9a-f]{16}@[1-9][0-9]{9}){0,15}$' THEN
        RAISE invalid_parameter_value USING
            MESSAGE = 'key fingerprint must be 16 lower-case hexadecimal digits',
            DETAIL = 'Those of up to 15 further secrets may follow, each after a space, and with '
                     '"@" and the Unix second from which on the secret is in use.';
    END IF;
    IF length(secrets) = 16 THEN
        RETURN; -- one secret, without a time
    END IF;
    IF EXISTS (
        SELECT FROM (
            SELECT second, lag(second, 1, @extschema@.randflake_lease_epoch(own))
                           OVER (ORDER BY place) AS former
            FROM unnest(string_to_array(secrets, ' ')) WITH ORDINALITY AS e (entry, place),
                 LATERAL (SELECT nullif(split_part(entry, '@', 2), '')::bigint AS second)
                     AS of_entry
            WHERE place > 1) AS seconds
        WHERE second <= former OR second >= @extschema@.randflake_lease_horizon(own)) THEN
        RAISE invalid_parameter_value USING
            MESSAGE = 'times of secrets must increase, in seconds that an identifier can hold',
            DETAIL = format('The fingerprints and times are: %s', secrets);
    END IF;
END
$$;

-- Compares the secrets of a holder with those of the pool. Returns the Unix second of the first
-- entry that differs. From then on, two numbers could get the same identifier. Returns 0 if the
-- first secrets differ, or null if all entries are equal. Used by the view randflake_leases.
CREATE FUNCTION randflake_lease_stops_at(own randflake_lease_internal, holder text, pool text)
    RETURNS bigint
LANGUAGE sql IMMUTABLE PARALLEL SAFE
SET search_path = pg_catalog, pg_temp
AS $$
    SELECT min(coalesce(nullif(split_part(entry, '@', 2), ''), '0')::bigint)
    FROM unnest(string_to_array(holder, ' '), string_to_array(pool, ' '))
             AS both_of (of_holder, of_pool),
         LATERAL (VALUES (of_holder), (of_pool)) AS either (entry)
    WHERE of_holder IS DISTINCT FROM of_pool AND entry IS NOT NULL AND pool IS NOT NULL
$$;

-- Finds the pool's first secret that the holder lacks, and returns its first Unix second. From this
-- second on, the holder may misread identifiers of other servers. Returns null if the holder has
-- all the pool's secrets, or if holder and pool begin with different secrets. Ignores secrets that
-- the pool lacks.
CREATE FUNCTION randflake_lease_lacks_from(own randflake_lease_internal, holder text, pool text)
    RETURNS bigint
LANGUAGE sql IMMUTABLE PARALLEL SAFE
SET search_path = pg_catalog, pg_temp
AS $$
    SELECT nullif(split_part(of_pool, '@', 2), '')::bigint
    FROM unnest(string_to_array(holder, ' '), string_to_array(pool, ' '))
             WITH ORDINALITY AS e (of_holder, of_pool, place)
    WHERE of_holder IS DISTINCT FROM of_pool
    ORDER BY place LIMIT 1
$$;

-- Raises an error if the holder's and the pool's secrets for the time before a lease's end differ.
-- The error's constraint field identifies this error. If the holder lacks a secret, the column
-- field contains the second at which its first missing secret begins. A lease that ends before the
-- time of the first entry that differs raises no error.
CREATE FUNCTION randflake_lease_require_secrets(
    own randflake_lease_internal, holder text, pool text, second bigint, condition text)
RETURNS void
LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    stops_at bigint;
    lacks_from bigint;
    entries record;  -- the first different ones
    missing boolean; -- the holder's entry is missing
BEGIN
    IF holder = pool THEN
        RETURN; -- the usual case
    END IF;
    stops_at := @extschema@.randflake_lease_stops_at(own, holder, pool);
    lacks_from := @extschema@.randflake_lease_lacks_from(own, holder, pool);
    IF second < stops_at OR stops_at IS NULL THEN
        RETURN;
    END IF;
    SELECT of_holder, of_pool INTO STRICT entries
    FROM unnest(string_to_array(holder, ' '), string_to_array(pool, ' '))
             WITH ORDINALITY AS e (of_holder, of_pool, place)
    WHERE of_holder IS DISTINCT FROM of_pool
    ORDER BY place LIMIT 1;
    IF stops_at = 0 THEN
        RAISE object_not_in_prerequisite_state USING
            MESSAGE = 'the holder has another secret than the other holders',
            DETAIL = format('Its fingerprint is %s, that of this coordinator''s leases %s.',
                            entries.of_holder, entries.of_pool),
            CONSTRAINT = 'secrets',
            HINT = 'Configure the same secret everywhere. To change it for all, see '
                   'randflake_lease_configure.';
    END IF;
    missing := coalesce(lacks_from = stops_at, false);
    RAISE EXCEPTION USING
        ERRCODE = condition,
        MESSAGE = format(CASE
                         WHEN missing THEN 'the holder lacks the secret that is in use from %s on'
                         ELSE 'the holder has a secret from %s on that the coordinator does '
                              'not know' END,
                         to_timestamp(stops_at)),
        DETAIL = format('The coordinator has %s there, the holder %s.',
                        coalesce(entries.of_pool, 'nothing'),
                        coalesce(entries.of_holder, 'nothing')),
        CONSTRAINT = 'secrets',
        COLUMN = coalesce(lacks_from::text, ''),
        HINT = CASE WHEN missing
                    THEN 'Add its line to "randflake.secret_file" of the holder and call '
                         'randflake_reload_secret() there.'
                    ELSE 'If all holders are to have it, add it with '
                         'randflake_lease_add_secret.' END;
END
$$;

-- Checks what a grant and a renewal have in common.
CREATE FUNCTION randflake_lease_require_request(
    own randflake_lease_internal, duration integer, secrets text)
RETURNS void
LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    IF duration < 1 THEN
        RAISE invalid_parameter_value USING
            MESSAGE = format('duration of a lease must be at least 1 second, not %s', duration);
    END IF;
    PERFORM @extschema@.randflake_lease_require_fingerprints(own, secrets);
END
$$;

-- Locks the pool for a grant. The first grant sets the secrets and creates the pool.
CREATE FUNCTION randflake_lease_open_pool(own randflake_lease_internal, secrets text)
RETURNS randflake_lease_pool
LANGUAGE plpgsql VOLATILE
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    pool @extschema@.randflake_lease_pool;
BEGIN
    IF NOT EXISTS (SELECT FROM @extschema@.randflake_lease_pool p
                   WHERE p.secrets IS NOT NULL) THEN
        pool := @extschema@.randflake_lease_lock_pool(own);
        UPDATE @extschema@.randflake_lease_pool p
        SET secrets = randflake_lease_open_pool.secrets WHERE p.secrets IS NULL;
        pool.secrets := coalesce(pool.secrets, randflake_lease_open_pool.secrets);
    ELSE
        pool := @extschema@.randflake_lease_share_pool(own);
    END IF;
    IF pool.secrets IS NULL THEN
        RAISE serialization_failure USING
            MESSAGE = 'the secrets of this coordinator were just forgotten', HINT = 'Ask again.';
    END IF;
    PERFORM @extschema@.randflake_lease_require_open(own, pool);
    PERFORM @extschema@.randflake_lease_require_secrets(
        own, randflake_lease_open_pool.secrets, pool.secrets, 0::bigint,
        'object_not_in_prerequisite_state'::text);
    RETURN pool;
END
$$;

-- Refuses a lease that begins now, if the coordinator cannot know who has which node ids now, or if
-- the holder lacks the present secret.
CREATE FUNCTION randflake_lease_require_time(
    own randflake_lease_internal, pool randflake_lease_pool, secrets text, now bigint)
RETURNS void
LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    IF now <= @extschema@.randflake_lease_epoch(own) THEN
        RAISE datetime_field_overflow USING
            MESSAGE = 'the coordinator''s clock is before the first second of an identifier';
    ELSIF now >= @extschema@.randflake_lease_horizon(own) THEN
        RAISE datetime_field_overflow USING
            MESSAGE = 'the coordinator''s clock is after the last second of an identifier';
    END IF;
    PERFORM @extschema@.randflake_lease_require_secrets(
        own, secrets, pool.secrets, now, 'object_not_in_prerequisite_state'::text);

    IF now < pool.high_water THEN
        RAISE object_not_in_prerequisite_state USING
            MESSAGE = format('no lease may begin before %s', to_timestamp(pool.high_water)),
            DETAIL = 'Leases that this coordinator does not know of may last until then.',
            COLUMN = pool.high_water::text,
            HINT = CASE WHEN pool.high_water
                             <= now + pool.max_duration + 2 * pool.max_clock_skew + 1
                        THEN format('Ask again in %s seconds.', pool.high_water - now)
                        ELSE 'Set the coordinator''s clock if it is wrong. If it is right and was '
                             'ahead before, lower "high_water" in randflake_lease_pool as '
                             'documented.' END;
    END IF;
END
$$;

-- Refuses node ids that exceed the role's share. Locks the role's row, so that the role's grants
-- commit one after another.
CREATE FUNCTION randflake_lease_require_share(
    own randflake_lease_internal, pool randflake_lease_pool, wanted integer, now bigint)
RETURNS void
LANGUAGE plpgsql VOLATILE
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    had bigint;       -- node ids of this role's leases, and
    had_until bigint; -- the end of the first of these
    counted @extschema@.randflake_lease_role;
BEGIN
    LOOP
        SELECT * INTO counted FROM @extschema@.randflake_lease_role r
        WHERE r.role = SESSION_USER FOR UPDATE;
        EXIT WHEN FOUND;
        INSERT INTO @extschema@.randflake_lease_role VALUES (SESSION_USER, 0, 0)
        ON CONFLICT DO NOTHING;
    END LOOP;
    IF counted.minute <> now / 60 THEN
        counted.grants := 0;
    END IF;
    IF counted.grants >= pool.max_grants_per_role THEN
        RAISE configuration_limit_exceeded USING
            MESSAGE = format('role "%s" may be granted at most %s leases a minute', SESSION_USER,
                             pool.max_grants_per_role),
            COLUMN = ((now / 60 + 1) * 60)::text,
            HINT = 'Raise "max_grants_per_role" with randflake_lease_configure, or wait for the '
                   'next minute.';
    END IF;
    -- Under the default bounds, which refuse no grant, the call counts no grants and no node ids.
    IF pool.max_grants_per_role < 60000 THEN
        UPDATE @extschema@.randflake_lease_role r
        SET minute = now / 60, grants = counted.grants + 1 WHERE r.role = SESSION_USER;
    END IF;
    IF pool.max_nodes_per_role < 131072 THEN
        SELECT coalesce(sum(upper(l.nodes) - lower(l.nodes)), 0), coalesce(min(upper(l.span)), 0)
        INTO STRICT had, had_until
        FROM @extschema@.randflake_lease l
        WHERE l.role = SESSION_USER AND upper(l.span) > now AND lower(l.span) <= now;
        IF had + wanted > pool.max_nodes_per_role THEN
            RAISE configuration_limit_exceeded USING
                MESSAGE = format('role "%s" may have at most %s node ids', SESSION_USER,
                                 pool.max_nodes_per_role),
                DETAIL = format('It has %s, and asks for %s.', had, wanted),
                COLUMN = had_until::text,
                HINT = 'Raise "max_nodes_per_role" with randflake_lease_configure, or wait until '
                       'leases have ended.';
        END IF;
    END IF;
END
$$;

-- Checks a lease that was just written, of whose node ids and seconds its holder is told. The lease
-- may not reach beyond the second `latest`.
CREATE FUNCTION randflake_lease_require_contracts(
    own randflake_lease_internal, pool randflake_lease_pool, lease randflake_lease, latest bigint,
    told_nodes int4range, told_span int8range)
RETURNS void
LANGUAGE plpgsql VOLATILE
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    used CONSTANT record := @extschema@.randflake_coordinator_static_nodes(own);
    broken CONSTANT text := CASE
        WHEN lease.nodes <> told_nodes OR lease.span <> told_span
            THEN 'a lease is stored as its holder is told'
        WHEN NOT lease.nodes <@ pool.nodes THEN 'a lease has node ids of the pool alone'
        WHEN used.first_node_id < upper(lease.nodes)
            AND used.first_node_id + used.node_count > lower(lease.nodes)
            THEN 'a lease has no node ids of the coordinator''s own server'
        WHEN upper(lease.span) > latest
            OR upper(lease.span) > @extschema@.randflake_lease_horizon(own)
            THEN 'a lease is no longer than the longest one'
        WHEN lease.secrets <> pool.secrets
            AND upper(lease.span)
                > @extschema@.randflake_lease_stops_at(own, lease.secrets, pool.secrets)
            THEN 'a lease ends before secrets differ'
        END;
BEGIN
    IF broken IS NOT NULL THEN
        PERFORM @extschema@.randflake_lease_broken(own, broken);
    END IF;
END
$$;

-- If a refused request can succeed after a known second, the error's column field has that second.
CREATE FUNCTION randflake_lease_acquire(
    holder text, incarnation uuid, nodes integer, duration integer, secrets text,
    OUT lease_id bigint, OUT first_node_id integer, OUT node_count integer, OUT lease_start bigint,
    OUT lease_end bigint, OUT clock_ms bigint, OUT differs_from bigint)
LANGUAGE plpgsql VOLATILE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
SET plan_cache_mode = force_generic_plan -- planning takes longer than the search
SET enable_seqscan = off -- outdated statistics must not lead to a plan that reads all
SET enable_bitmapscan = off
SET enable_sort = off
SET jit = off -- the costs of disabled plans would start it
AS $$
#variable_conflict use_column
DECLARE
    own CONSTANT @extschema@.randflake_lease_internal := NULL;
    pool @extschema@.randflake_lease_pool;
    now bigint;
    free_at bigint;   -- node ids are free from here on
    newest bigint;    -- the largest number of a lease
    lease @extschema@.randflake_lease;
BEGIN
    IF num_nulls(holder, incarnation, nodes, duration, secrets) > 0 THEN
        RAISE null_value_not_allowed USING MESSAGE = 'arguments of a lease must not be null';
    END IF;
    IF randflake_lease_acquire.nodes NOT BETWEEN 1 AND 131072 THEN
        RAISE invalid_parameter_value USING
            MESSAGE = format('number of node ids must be from 1 to 131072, not %s', nodes);
    END IF;
    IF octet_length(randflake_lease_acquire.holder) > 256 THEN
        RAISE invalid_parameter_value USING
            MESSAGE = format('name of a holder must be at most 256 bytes, not %s',
                             octet_length(randflake_lease_acquire.holder));
    END IF;
    PERFORM @extschema@.randflake_lease_require_request(own, duration, secrets);
    pool := @extschema@.randflake_lease_open_pool(own, randflake_lease_acquire.secrets);
    now := @extschema@.randflake_lease_clock(own);
    PERFORM @extschema@.randflake_lease_require_time(own, pool, secrets, now);
    PERFORM @extschema@.randflake_lease_require_share(own, pool, nodes, now);
    node_count := randflake_lease_acquire.nodes;
    -- A restore or a refresh of sequences may have set the numbers back.
    SELECT max(l.lease_id) INTO newest FROM @extschema@.randflake_lease l;
    PERFORM setval('@extschema@.randflake_lease_lease_id_seq', newest)
    FROM @extschema@.randflake_lease_lease_id_seq WHERE last_value < newest;
    lease_id := nextval('@extschema@.randflake_lease_lease_id_seq');
    SELECT found.first, found.free_at INTO first_node_id, free_at
    FROM @extschema@.randflake_lease_find(own, lease_id, node_count, pool.nodes, now)
             AS found;
    IF first_node_id IS NULL THEN
        RAISE configuration_limit_exceeded USING
            MESSAGE = CASE WHEN node_count = 1 THEN 'no node id is free'
                           ELSE format('no %s consecutive node ids are free', node_count) END,
            DETAIL = CASE WHEN free_at > now
                          THEN format('Node ids become free at %s.', to_timestamp(free_at))
                          ELSE 'Others are being leased at this moment.' END,
            COLUMN = coalesce(free_at::text, ''),
            HINT = 'Widen the pool with randflake_lease_configure, or wait.';
    END IF;
    lease_start := now;
    lease_end := least(now + least(duration, pool.max_duration),
                       @extschema@.randflake_lease_horizon(own),
                       @extschema@.randflake_lease_stops_at(
                           own, randflake_lease_acquire.secrets, pool.secrets)) - 1;
    INSERT INTO @extschema@.randflake_lease
        (lease_id, holder, incarnation, nodes, span, secrets) OVERRIDING SYSTEM VALUE
    VALUES (lease_id, randflake_lease_acquire.holder, randflake_lease_acquire.incarnation,
            int4range(first_node_id, first_node_id + node_count),
            int8range(lease_start, lease_end + 1), randflake_lease_acquire.secrets)
    RETURNING * INTO STRICT lease;
    IF lower(lease.span) < pool.high_water THEN
        PERFORM @extschema@.randflake_lease_broken(
            own, 'a grant does not begin before the mark'::text);
    END IF;
    PERFORM @extschema@.randflake_lease_require_contracts(
        own, pool, lease, now + pool.max_duration,
        int4range(first_node_id, first_node_id + node_count),
        int8range(lease_start, lease_end + 1));
    differs_from := @extschema@.randflake_lease_lacks_from(own, secrets, pool.secrets);
    clock_ms := floor(1000 * extract(epoch FROM clock_timestamp()));
END
$$;
COMMENT ON FUNCTION randflake_lease_acquire(text, uuid, integer, integer, text) IS
'coordinator: grants a lease of consecutive node ids for at most this number of seconds; start and '
'end are Unix seconds, both inclusive; clock_ms is the coordinator''s clock in Unix milliseconds; '
'differs_from is the second of the first secret that the holder lacks, or null';

-- Refuses a renewal if other holders may have had node ids of the lease, or may get them. No lease
-- may end after the second `latest`.
CREATE FUNCTION randflake_lease_require_renewable(
    own randflake_lease_internal, pool randflake_lease_pool, lease randflake_lease,
    expected_end bigint, latest bigint, now bigint)
RETURNS void
LANGUAGE plpgsql VOLATILE
SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    IF NOT lease.nodes <@ pool.nodes THEN
        RAISE object_not_in_prerequisite_state USING
            MESSAGE = format('the node ids of lease %s are no longer in the pool', lease.lease_id),
            HINT = 'Acquire a new lease.';
    END IF;
    IF lease.nodes && @extschema@.randflake_lease_static_nodes(own) THEN
        RAISE object_not_in_prerequisite_state USING
            MESSAGE = format('the node ids of lease %s are those of the coordinator''s own server',
                             lease.lease_id),
            HINT = 'Acquire a new lease.';
    END IF;
    -- If the holder expects an earlier end than the table has, the holder missed the answer to a
    -- renewal. If it expects a later end, a failover lost a renewal. No lease is granted beyond
    -- `latest`, so an end beyond `latest` shows that the clock stepped back, or that the holder
    -- invented the end.
    IF greatest(expected_end + 1, upper(lease.span)) > latest THEN
        RAISE object_not_in_prerequisite_state USING
            MESSAGE = format('lease %s ends later than this coordinator grants', lease.lease_id),
            DETAIL = format('It ends at %s; by this clock no lease ends after %s.',
                            to_timestamp(greatest(expected_end + 1, upper(lease.span))),
                            to_timestamp(latest)),
            HINT = 'Acquire a new lease.';
    END IF;
    -- A failover may have lost another holder's later lease of these node ids. If the former
    -- coordinator's clock was ahead, it granted that lease up to max_clock_skew early.
    IF expected_end < now + pool.max_clock_skew
        AND (expected_end < now OR expected_end < pool.high_water - 1) THEN
        RAISE object_not_in_prerequisite_state USING
            MESSAGE = format('lease %s has ended', lease.lease_id),
            DETAIL = format('It ended at %s.', to_timestamp(expected_end + 1)),
            HINT = 'Acquire a new lease.';
    END IF;
    -- If some of the node ids were leased again, this renewal fails, whatever the clock shows.
    IF EXISTS (SELECT FROM @extschema@.randflake_lease later
               WHERE later.nodes && lease.nodes AND later.lease_id > lease.lease_id) THEN
        RAISE object_not_in_prerequisite_state USING
            MESSAGE = format('the node ids of lease %s have another holder by now', lease.lease_id),
            HINT = 'Acquire a new lease.';
    END IF;
END
$$;

CREATE FUNCTION randflake_lease_renew(
    lease_id bigint, incarnation uuid, expected_end bigint, duration integer, secrets text,
    OUT lease_end bigint, OUT clock_ms bigint, OUT differs_from bigint)
LANGUAGE plpgsql VOLATILE STRICT SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
#variable_conflict use_column
DECLARE
    own CONSTANT @extschema@.randflake_lease_internal := NULL;
    pool @extschema@.randflake_lease_pool;
    lease @extschema@.randflake_lease;
    now bigint;
    latest bigint;    -- the latest end of any lease
    renewed @extschema@.randflake_lease;
BEGIN
    PERFORM @extschema@.randflake_lease_require_request(own, duration, secrets);
    IF expected_end < @extschema@.randflake_lease_epoch(own)
        OR expected_end >= @extschema@.randflake_lease_horizon(own) THEN
        RAISE invalid_parameter_value USING
            MESSAGE = format('expected end of a lease must be a Unix second that an identifier '
                             'can hold, not %s', expected_end);
    END IF;
    pool := @extschema@.randflake_lease_share_pool(own);
    PERFORM @extschema@.randflake_lease_require_open(own, pool);
    now := @extschema@.randflake_lease_clock(own);
    latest := least(now + pool.max_duration + pool.max_clock_skew,
                    @extschema@.randflake_lease_horizon(own));
    SELECT * INTO lease FROM @extschema@.randflake_lease l
    WHERE l.lease_id = randflake_lease_renew.lease_id
      AND l.incarnation = randflake_lease_renew.incarnation
      AND l.role = SESSION_USER AND l.released_at IS NULL
    FOR UPDATE NOWAIT;
    IF NOT FOUND THEN
        RAISE object_not_in_prerequisite_state USING
            MESSAGE = format('lease %s does not exist or is not this holder''s',
                             randflake_lease_renew.lease_id),
            HINT = 'Acquire a new lease.';
    END IF;
    PERFORM @extschema@.randflake_lease_require_secrets(
        own, secrets, pool.secrets, 0::bigint, 'object_not_in_prerequisite_state'::text);
    PERFORM @extschema@.randflake_lease_require_renewable(
        own, pool, lease, expected_end, latest, now);
    -- The lease goes on after this error. To renew its lease, the holder needs the missing secret.
    PERFORM @extschema@.randflake_lease_require_secrets(
        own, secrets, pool.secrets, upper(lease.span), 'cannot_connect_now'::text);
    lease_end := least(greatest(expected_end + 1, upper(lease.span),
                                now + least(duration, pool.max_duration)),
                       latest, @extschema@.randflake_lease_stops_at(
                           own, randflake_lease_renew.secrets, pool.secrets)) - 1;
    UPDATE @extschema@.randflake_lease l
    SET span = int8range(lower(l.span), lease_end + 1), renewed_at = clock_timestamp(),
        secrets = randflake_lease_renew.secrets, collected = false
    WHERE l.role = SESSION_USER AND l.lease_id = randflake_lease_renew.lease_id
    RETURNING * INTO STRICT renewed;
    IF renewed.incarnation <> randflake_lease_renew.incarnation OR renewed.role <> SESSION_USER
        OR renewed.released_at IS NOT NULL THEN
        PERFORM @extschema@.randflake_lease_broken(
            own, 'a lease is renewed for its holder, until it is released'::text);
    ELSIF NOT renewed.span @> lease.span THEN
        PERFORM @extschema@.randflake_lease_broken(
            own, 'a renewal does not move the end back'::text);
    END IF;
    PERFORM @extschema@.randflake_lease_require_contracts(
        own, pool, renewed, now + pool.max_duration + pool.max_clock_skew, lease.nodes,
        int8range(lower(lease.span), lease_end + 1));
    differs_from := @extschema@.randflake_lease_lacks_from(own, secrets, pool.secrets);
    clock_ms := floor(1000 * extract(epoch FROM clock_timestamp()));
EXCEPTION
WHEN lock_not_available THEN
    RAISE lock_not_available USING
        MESSAGE = format('lease %s is being renewed or replaced by another request',
                         randflake_lease_renew.lease_id),
        HINT = 'Ask again.';
WHEN exclusion_violation THEN
    RAISE object_not_in_prerequisite_state USING
        MESSAGE = format('the node ids of lease %s have another holder by now',
                         randflake_lease_renew.lease_id),
        HINT = 'Acquire a new lease.';
END
$$;
COMMENT ON FUNCTION randflake_lease_renew(bigint, uuid, bigint, integer, text) IS
'coordinator: renews the caller''s lease if it has not ended; returns its new last second, the '
'coordinator''s clock in Unix milliseconds, and the second of the first secret that the holder '
'lacks, or null';

CREATE FUNCTION randflake_lease_release(lease_id bigint, incarnation uuid, last_used bigint)
RETURNS void
LANGUAGE plpgsql VOLATILE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
#variable_conflict use_column
DECLARE
    own CONSTANT @extschema@.randflake_lease_internal := NULL;
    lease @extschema@.randflake_lease;
    kept int8range;
BEGIN
    IF randflake_lease_release.lease_id IS NULL OR randflake_lease_release.incarnation IS NULL THEN
        RAISE null_value_not_allowed USING MESSAGE = 'arguments of a lease must not be null';
    END IF;
    PERFORM @extschema@.randflake_lease_share_pool(own);
    SELECT * INTO lease FROM @extschema@.randflake_lease l
    WHERE l.lease_id = randflake_lease_release.lease_id
      AND l.incarnation = randflake_lease_release.incarnation
      AND l.role = SESSION_USER
    FOR UPDATE;
    IF NOT FOUND THEN
        RAISE object_not_in_prerequisite_state USING
            MESSAGE = format('lease %s does not exist or is not this holder''s',
                             randflake_lease_release.lease_id);
    ELSIF lease.released_at IS NOT NULL THEN
        -- Only the first release of a lease counts.
        RETURN;
    ELSE
        -- A release never prolongs the lease. An unused lease keeps its first second, so that the
        -- table shows when the node ids were last leased.
        UPDATE @extschema@.randflake_lease l
        SET span = int8range(lower(l.span),
                             least(greatest(last_used, lower(l.span)), upper(l.span) - 1) + 1),
            released_at = clock_timestamp()
        WHERE l.role = SESSION_USER AND l.lease_id = lease.lease_id
        RETURNING l.span INTO STRICT kept;
        IF NOT kept <@ lease.span THEN
            PERFORM @extschema@.randflake_lease_broken(
                own, 'a release does not prolong a lease'::text);
        ELSIF last_used >= upper(kept) AND upper(kept) < upper(lease.span) THEN
            PERFORM @extschema@.randflake_lease_broken(
                own, 'a release keeps each second that was used'::text);
        END IF;
    END IF;
END
$$;
COMMENT ON FUNCTION randflake_lease_release(bigint, uuid, bigint) IS
'coordinator: ends a lease after the last second that its holder used; null means that it used '
'none';

-- Does the work of randflake_lease_purge. The caller has locked the pool.
CREATE FUNCTION randflake_lease_forget(own randflake_lease_internal, keep interval) RETURNS bigint
LANGUAGE plpgsql VOLATILE
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    now CONSTANT bigint := @extschema@.randflake_lease_clock(own);
    cutoff CONSTANT bigint := now - ceil(extract(epoch FROM keep))::bigint;
    purged bigint;
    newest bigint;
BEGIN
    WITH gone AS (
        DELETE FROM @extschema@.randflake_lease
        WHERE upper(span) <= cutoff RETURNING upper(span) AS ended
    )
    SELECT count(*), max(ended) INTO purged, newest FROM gone;
    IF newest > now THEN
        PERFORM @extschema@.randflake_lease_broken(
            own, 'no lease is forgotten before its end'::text);
    ELSIF purged > 0 THEN
        PERFORM @extschema@.randflake_lease_hold_off(own, 'purge'::text, newest - 1,
                                                     0::integer, 0::integer);
        UPDATE @extschema@.randflake_lease_pool SET high_water = newest
        WHERE newest > high_water;
    END IF;
    PERFORM @extschema@.randflake_lease_chunks(own, pool.nodes)
    FROM @extschema@.randflake_lease_pool AS pool;
    RETURN purged;
END
$$;

CREATE FUNCTION randflake_lease_purge(keep interval DEFAULT '1 day') RETURNS bigint
LANGUAGE plpgsql VOLATILE STRICT SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    own CONSTANT @extschema@.randflake_lease_internal := NULL;
BEGIN
    IF keep < interval '0' OR NOT isfinite(keep) THEN
        RAISE invalid_parameter_value USING
            MESSAGE = 'interval to keep must be finite and not negative';
    END IF;
    PERFORM @extschema@.randflake_lease_lock_pool(own);
    RETURN @extschema@.randflake_lease_forget(own, keep);
END
$$;
COMMENT ON FUNCTION randflake_lease_purge(interval) IS
'coordinator: deletes leases that ended this long ago, lets no lease start before their end, and '
'returns their number';

CREATE FUNCTION randflake_lease_require_settings(
    own randflake_lease_internal, first integer, count integer, duration integer, skew integer,
    most integer, grants integer)
RETURNS void
LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    IF first NOT BETWEEN 0 AND 131071 OR count NOT BETWEEN 1 AND 131072 - greatest(first, 0) THEN
        RAISE invalid_parameter_value USING
            MESSAGE = format('node ids %s to %s are out of range', first,
                             first::bigint + count - 1),
            DETAIL = 'Node ids are from 0 to 131071.';
    END IF;
    IF duration NOT BETWEEN 1 AND 86400 THEN
        RAISE invalid_parameter_value USING
            MESSAGE = 'longest lease must be from 1 to 86400 seconds';
    END IF;
    IF skew NOT BETWEEN 0 AND 3600 THEN
        RAISE invalid_parameter_value USING MESSAGE = 'clock skew must be from 0 to 3600 seconds';
    END IF;
    IF most NOT BETWEEN 1 AND 131072 THEN
        RAISE invalid_parameter_value USING MESSAGE = 'node ids per role must be from 1 to 131072';
    END IF;
    IF grants NOT BETWEEN 1 AND 60000 THEN
        RAISE invalid_parameter_value USING
            MESSAGE = 'leases of a role per minute must be from 1 to 60000';
    END IF;
END
$$;

-- Refuses what the operator states if the tables show that it is wrong.
CREATE FUNCTION randflake_lease_require_statements(
    own randflake_lease_internal, never_leased boolean, nothing_lost boolean)
RETURNS void
LANGUAGE plpgsql VOLATILE
SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    -- is_called stays true when a purge deletes all leases.
    IF never_leased
        AND (SELECT is_called FROM @extschema@.randflake_lease_lease_id_seq) THEN
        RAISE object_not_in_prerequisite_state USING
            MESSAGE = 'this coordinator has leased node ids';
    END IF;
    IF nothing_lost AND NOT EXISTS (SELECT FROM @extschema@.randflake_lease_hold
                                    WHERE cause = 'promotion') THEN
        RAISE object_not_in_prerequisite_state USING
            MESSAGE = 'this coordinator did not take over by a start or a promotion of its server',
            DETAIL = 'Only the server that changed the pool last, and a standby of it that was '
                     'promoted once since, can have all of its leases.',
            HINT = 'Wait until "grants_from" in randflake_pool.';
    END IF;
END
$$;

CREATE FUNCTION randflake_lease_configure(
    first_node_id integer DEFAULT NULL, node_count integer DEFAULT NULL,
    max_duration integer DEFAULT NULL, max_clock_skew integer DEFAULT NULL,
    closed boolean DEFAULT NULL, never_leased boolean DEFAULT false,
    forget_key boolean DEFAULT false, max_nodes_per_role integer DEFAULT NULL,
    secrets text DEFAULT NULL, max_grants_per_role integer DEFAULT NULL,
    nothing_lost boolean DEFAULT false)
RETURNS timestamptz
LANGUAGE plpgsql VOLATILE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
#variable_conflict use_column
DECLARE
    own CONSTANT @extschema@.randflake_lease_internal := NULL;
    pool @extschema@.randflake_lease_pool :=
        @extschema@.randflake_lease_lock_pool(own);
    now CONSTANT bigint := @extschema@.randflake_lease_clock(own);
    first CONSTANT integer := coalesce(first_node_id, lower(pool.nodes));
    count CONSTANT integer := coalesce(node_count, upper(pool.nodes) - greatest(first, -1));
    duration CONSTANT integer := coalesce(max_duration, pool.max_duration);
    skew CONSTANT integer := coalesce(max_clock_skew, pool.max_clock_skew);
    most CONSTANT integer := coalesce(max_nodes_per_role, pool.max_nodes_per_role);
    grants CONSTANT integer := coalesce(max_grants_per_role, pool.max_grants_per_role);
    shut CONSTANT boolean := coalesce(randflake_lease_configure.closed, pool.closed);
    free_at bigint;
BEGIN
    PERFORM @extschema@.randflake_lease_require_settings(
        own, first, count, duration, skew, most, grants);
    PERFORM @extschema@.randflake_lease_require_fingerprints(own, secrets);
    IF forget_key AND randflake_lease_configure.secrets IS NOT NULL THEN
        RAISE invalid_parameter_value USING
            MESSAGE = 'a key fingerprint cannot be both set and forgotten';
    END IF;
    PERFORM @extschema@.randflake_lease_require_statements(
        own, never_leased, nothing_lost);
    IF shut AND NOT pool.closed THEN
        PERFORM @extschema@.randflake_lease_hold_off(
            own, 'reopened'::text, NULL::bigint, pool.max_duration, pool.max_clock_skew);
    ELSIF pool.closed AND NOT shut THEN
        UPDATE @extschema@.randflake_lease_hold SET since = now WHERE since IS NULL;
    END IF;
    IF NOT int4range(first, first + count) <@ pool.nodes THEN
        PERFORM @extschema@.randflake_lease_hold_off(own, 'added'::text, now, 0::integer,
                                                     pool.max_clock_skew);
    END IF;
    -- A larger value extends current waits, because other servers may already have had it then.
    UPDATE @extschema@.randflake_lease_hold h
    SET longest = CASE WHEN longest > 0 THEN greatest(longest, duration) ELSE 0 END,
        widest = greatest(widest, skew)
    WHERE cause <> 'purge'
      AND (@extschema@.randflake_lease_until(own, h) > now OR since IS NULL);
    -- With this call, the operator states that the table has all leases. Servers may have used
    -- static node ids until now. If this call creates the pool, only the new clock skew is used.
    UPDATE @extschema@.randflake_lease_hold
    SET longest = 0, since = least(since, now),
        widest = CASE WHEN pool.coordinator = '' THEN skew ELSE widest END
    WHERE longest > 0 AND since IS NOT NULL
      AND (never_leased OR nothing_lost AND cause = 'promotion');
    UPDATE @extschema@.randflake_lease_pool SET
        -- Only never_leased and nothing_lost lower the mark.
        high_water = greatest((SELECT max(@extschema@.randflake_lease_until(own, h))
                               FROM @extschema@.randflake_lease_hold h),
                              CASE WHEN never_leased OR nothing_lost THEN 0 ELSE high_water END),
        nodes = int4range(first, first + count),
        max_duration = duration, max_clock_skew = skew, closed = shut,
        max_nodes_per_role = most, max_grants_per_role = grants,
        secrets = CASE WHEN NOT forget_key
                       THEN coalesce(randflake_lease_configure.secrets, pool.secrets) END;
    PERFORM @extschema@.randflake_lease_chunks(own, int4range(first, first + count));
    -- Finds the end of the last lease of node ids that leave the pool.
    IF shut OR NOT int4range(0, 131072) <@ int4range(first, first + count) THEN
        SELECT greatest(max(upper(span)),
                        (SELECT max(@extschema@.randflake_lease_until(own, h))
                         FROM @extschema@.randflake_lease_hold h WHERE longest > 0))
        INTO free_at FROM @extschema@.randflake_lease
        WHERE shut OR NOT nodes <@ int4range(first, first + count);
    END IF;
    RETURN CASE WHEN free_at > now THEN to_timestamp(free_at) END;
END
$$;
COMMENT ON FUNCTION randflake_lease_configure(integer, integer, integer, integer, boolean, boolean,
                                              boolean, integer, text, integer, boolean) IS
'coordinator: sets the pool''s node ids and limits; null keeps a value; closed stops grants and '
'renewals; never_leased states that no server has leased under this secret before; nothing_lost '
'states, after a start or a promotion, that this server has all leases; forget_key accepts the '
'secrets of the next holder, secrets sets them; max_nodes_per_role limits the node ids that a role '
'leases, max_grants_per_role its leases in a minute. Returns when the node ids that leave the pool '
'become free, or null if they are free';

-- Returns the first Unix second after all leases, including those that the table may lack. An
-- operator can add or withdraw only secrets that begin at this second or later.
CREATE FUNCTION randflake_lease_untouched(own randflake_lease_internal, pool randflake_lease_pool)
    RETURNS bigint
LANGUAGE sql VOLATILE
SET search_path = pg_catalog, pg_temp
AS $$
    SELECT greatest(max(upper(span)), pool.high_water,
                    @extschema@.randflake_lease_clock(own) + pool.max_duration
                        + 2 * pool.max_clock_skew + 1)
    FROM @extschema@.randflake_lease
$$;

CREATE FUNCTION randflake_lease_add_secret(fingerprint text, valid_from timestamptz) RETURNS void
LANGUAGE plpgsql VOLATILE STRICT SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    own CONSTANT @extschema@.randflake_lease_internal := NULL;
    pool @extschema@.randflake_lease_pool;
    second bigint;
    entries text[];
    same text;
    earliest bigint;
BEGIN
    IF fingerprint !~ '^[0-9a-f]{16}$' THEN
        RAISE invalid_parameter_value USING
            MESSAGE = 'key fingerprint must be 16 lower-case hexadecimal digits';
    END IF;
    IF NOT isfinite(valid_from)
        OR extract(epoch FROM valid_from) <> floor(extract(epoch FROM valid_from)) THEN
        RAISE invalid_parameter_value USING MESSAGE = 'a secret must begin on a full second';
    END IF;
    second := extract(epoch FROM valid_from)::bigint;
    IF second <= @extschema@.randflake_lease_epoch(own)
        OR second >= @extschema@.randflake_lease_horizon(own) THEN
        RAISE invalid_parameter_value USING
            MESSAGE = 'a secret must begin in a second that an identifier can hold';
    END IF;
    pool := @extschema@.randflake_lease_lock_pool(own);
    entries := string_to_array(pool.secrets, ' ');
    IF entries IS NULL THEN
        RAISE object_not_in_prerequisite_state USING
            MESSAGE = 'the coordinator knows no secret yet',
            HINT = 'Set the first one with randflake_lease_configure, or let a holder name it.';
    END IF;
    SELECT entry INTO same FROM unnest(entries) AS entry
    WHERE split_part(entry, '@', 1) = fingerprint;
    IF same = format('%s@%s', fingerprint, second) THEN
        RETURN;
    ELSIF same IS NOT NULL THEN
        RAISE object_not_in_prerequisite_state USING
            MESSAGE = 'the coordinator has this secret with another time',
            DETAIL = format('Its secrets are: %s', pool.secrets),
            HINT = 'Withdraw the last one with randflake_lease_remove_secret.';
    END IF;
    IF cardinality(entries) >= 16 THEN
        RAISE object_not_in_prerequisite_state USING MESSAGE = 'there are 16 secrets already';
    END IF;
    IF second <= nullif(split_part(entries[cardinality(entries)], '@', 2), '')::bigint THEN
        RAISE object_not_in_prerequisite_state USING
            MESSAGE = 'a secret must begin after the one before',
            DETAIL = format(
                'The last one begins at %s.',
                to_timestamp(split_part(entries[cardinality(entries)], '@', 2)::bigint));
    END IF;
    earliest := @extschema@.randflake_lease_untouched(own, pool);
    IF second < earliest THEN
        RAISE object_not_in_prerequisite_state USING
            MESSAGE = 'the secret begins too early',
            DETAIL = format('Leases may reach beyond its time; the earliest possible time is %s.',
                            to_timestamp(earliest)),
            HINT = 'Let it begin later, on every server. If its time has come and no lease was '
                   'granted beyond it, see randflake_lease_configure.';
    END IF;
    IF EXISTS (SELECT FROM @extschema@.randflake_lease WHERE upper(span) > second) THEN
        PERFORM @extschema@.randflake_lease_broken(
            own, 'no lease reaches into the time of a secret that is added'::text);
    END IF;
    UPDATE @extschema@.randflake_lease_pool
    SET secrets = format('%s %s@%s', pool.secrets, fingerprint, second);
END
$$;
COMMENT ON FUNCTION randflake_lease_add_secret(text, timestamptz) IS
'coordinator: adds a secret by its fingerprint in randflake_secrets; a holder without this secret '
'gets no lease beyond the given time';

CREATE FUNCTION randflake_lease_remove_secret(fingerprint text) RETURNS void
LANGUAGE plpgsql VOLATILE STRICT SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    own CONSTANT @extschema@.randflake_lease_internal := NULL;
    pool CONSTANT @extschema@.randflake_lease_pool :=
        @extschema@.randflake_lease_lock_pool(own);
    entries CONSTANT text[] := string_to_array(pool.secrets, ' ');
    last CONSTANT text := entries[cardinality(entries)];
    earliest bigint;
BEGIN
    IF split_part(last, '@', 1) IS DISTINCT FROM fingerprint OR cardinality(entries) = 1 THEN
        RAISE object_not_in_prerequisite_state USING
            MESSAGE = 'only the last of several secrets can be withdrawn',
            DETAIL = format('The coordinator''s secrets are: %s', coalesce(pool.secrets, 'none'));
    END IF;
    earliest := @extschema@.randflake_lease_untouched(own, pool);
    IF split_part(last, '@', 2)::bigint < earliest THEN
        RAISE object_not_in_prerequisite_state USING
            MESSAGE = 'it is too late to withdraw the secret',
            DETAIL = format('It begins at %s, and leases may reach to %s.',
                            to_timestamp(split_part(last, '@', 2)::bigint), to_timestamp(earliest));
    END IF;
    IF EXISTS (SELECT FROM @extschema@.randflake_lease
               WHERE upper(span) > split_part(last, '@', 2)::bigint) THEN
        PERFORM @extschema@.randflake_lease_broken(
            own, 'no lease reaches into the time of a secret that is withdrawn'::text);
    END IF;
    UPDATE @extschema@.randflake_lease_pool
    SET secrets = array_to_string(entries[:cardinality(entries) - 1], ' ');
END
$$;
COMMENT ON FUNCTION randflake_lease_remove_secret(text) IS
'coordinator: withdraws the secret that was added last, while no lease reaches its time';

CREATE FUNCTION randflake_lease_pool_state(
    OUT state text,
    OUT grants_from timestamptz,
    OUT first_node_id integer,
    OUT node_count integer,
    OUT own_first_node_id integer,
    OUT own_node_count integer,
    OUT max_duration integer,
    OUT max_clock_skew integer,
    OUT max_nodes_per_role integer,
    OUT max_grants_per_role integer,
    OUT secrets text,
    OUT leased_node_ids integer,
    OUT largest_request integer)
LANGUAGE plpgsql STABLE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
#variable_conflict use_column
DECLARE
    own CONSTANT @extschema@.randflake_lease_internal := NULL;
    pool @extschema@.randflake_lease_pool;
    static_nodes CONSTANT int4range := @extschema@.randflake_lease_static_nodes(own);
    pool_nodes int4range;
    identity text;
    noted bigint;
    called boolean;
    mark bigint;
    longest CONSTANT integer := 60;
    widest CONSTANT integer := 2;
    now CONSTANT bigint := @extschema@.randflake_lease_clock(own);
BEGIN
    SELECT * INTO pool FROM @extschema@.randflake_lease_pool;
    pool_nodes := coalesce(pool.nodes, int4range(0, 131072));
    first_node_id := lower(pool_nodes);
    node_count := upper(pool_nodes) - lower(pool_nodes);
    own_first_node_id := lower(static_nodes * pool_nodes);
    own_node_count := upper(static_nodes * pool_nodes) - lower(static_nodes * pool_nodes);
    max_duration := pool.max_duration;
    max_clock_skew := pool.max_clock_skew;
    max_nodes_per_role := pool.max_nodes_per_role;
    max_grants_per_role := pool.max_grants_per_role;
    secrets := pool.secrets;
    IF pg_is_in_recovery() THEN
        state := 'unused';
        RETURN;
    END IF;
    SELECT coalesce(sum(upper(r) - lower(r)) FILTER (WHERE r <@ leased), 0),
           coalesce(max(upper(r) - lower(r)) FILTER (WHERE NOT r <@ leased), 0)
    INTO STRICT leased_node_ids, largest_request
    FROM (SELECT coalesce(range_agg(l.nodes), '{}') * int4multirange(pool_nodes) AS leased
          FROM @extschema@.randflake_lease l WHERE upper(l.span) > now) AS leases,
         LATERAL (SELECT unnest(leased) AS r UNION ALL
                  SELECT unnest(int4multirange(pool_nodes) - int4multirange(static_nodes)
                                - leased)) AS ranges;
    -- The first request after a takeover starts the wait. Until then, the mark follows the clock.
    identity := @extschema@.randflake_lease_identity(own);
    SELECT last_value, is_called INTO STRICT noted, called
    FROM @extschema@.randflake_lease_takeover;
    mark := pool.high_water;
    IF NOT @extschema@.randflake_lease_noted_here(own, identity, noted)
        OR NOT @extschema@.randflake_lease_guarded(own)
        OR pool.coordinator <> identity AND NOT called THEN
        mark := now + coalesce(pool.max_duration, longest)
            + 2 * coalesce(pool.max_clock_skew, widest) + 1;
    ELSIF pool.coordinator IS DISTINCT FROM identity
        OR (CASE WHEN called THEN noted END) IS DISTINCT FROM pool.takeover THEN
        mark := (noted >> 31) + coalesce(pool.max_duration, longest)
            + 2 * coalesce(pool.max_clock_skew, widest) + 1;
    END IF;
    mark := greatest(mark, pool.high_water);
    IF pool.closed THEN
        state := 'closed';
    ELSIF mark > now THEN
        state := 'holding off';
        grants_from := to_timestamp(mark);
    ELSE
        state := 'open';
    END IF;
END
$$;
COMMENT ON FUNCTION randflake_lease_pool_state() IS 'the row of the view randflake_pool';

CREATE FUNCTION randflake_lease_announce(
    holder text, server uuid, origin text, first_node_id integer, node_count integer,
    fingerprint text, starts boolean,
    OUT servers bigint, OUT leases bigint)
LANGUAGE plpgsql VOLATILE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
#variable_conflict use_column
DECLARE
    announced int4range;
BEGIN
    IF num_nulls(holder, server, origin, first_node_id, node_count, fingerprint, starts) > 0 THEN
        RAISE null_value_not_allowed USING
            MESSAGE = 'arguments of an announcement must not be null';
    ELSIF first_node_id < 0 OR node_count < 1 OR first_node_id > 131072 - node_count THEN
        RAISE invalid_parameter_value USING
            MESSAGE = format('node ids from %s on, %s of them, are not within 0 to 131071',
                             first_node_id, node_count);
    END IF;
    announced := int4range(first_node_id, first_node_id + node_count);
    -- Deletes only rows of the calling role, and unlocked rows of roles that are gone, so the call
    -- never waits for another role's lock.
    DELETE FROM @extschema@.randflake_lease_announcement a
    WHERE a.ctid = ANY (ARRAY(SELECT gone.ctid
                              FROM @extschema@.randflake_lease_announcement gone
                              WHERE NOT EXISTS (SELECT FROM pg_roles WHERE rolname = gone.role)
                              FOR UPDATE SKIP LOCKED));
    DELETE FROM @extschema@.randflake_lease_announcement a
    WHERE a.role = SESSION_USER
      AND (a.announced_at < clock_timestamp() - interval '1 hour'
           OR randflake_lease_announce.starts AND a.origin = randflake_lease_announce.origin);
    IF (SELECT count(*) FROM @extschema@.randflake_lease_announcement a
        WHERE a.role = SESSION_USER) >= 10000 THEN
        RAISE configuration_limit_exceeded USING
            MESSAGE = 'role has announced 10000 servers within an hour',
            HINT = 'Let each server announce itself by a role of its own.';
    END IF;
    INSERT INTO @extschema@.randflake_lease_announcement AS a
        (server, holder, origin, nodes, fingerprint, announced_at)
    VALUES (randflake_lease_announce.server, randflake_lease_announce.holder,
            randflake_lease_announce.origin, announced,
            randflake_lease_announce.fingerprint, clock_timestamp())
    ON CONFLICT ON CONSTRAINT randflake_lease_announcement_pkey DO UPDATE
    SET holder = excluded.holder, nodes = excluded.nodes, announced_at = excluded.announced_at;
    SELECT count(*) INTO servers
    FROM @extschema@.randflake_lease_announcement a
    WHERE (a.role, a.server) IS DISTINCT FROM (SESSION_USER, randflake_lease_announce.server)
      AND a.fingerprint = randflake_lease_announce.fingerprint AND a.nodes && announced
      AND a.announced_at > clock_timestamp() - interval '90 s';
    SELECT count(*) INTO leases
    FROM @extschema@.randflake_lease l
    WHERE l.nodes && announced AND upper(l.span) > extract(epoch FROM clock_timestamp())
      AND split_part(l.secrets, ' ', 1) = randflake_lease_announce.fingerprint;
END
$$;
COMMENT ON FUNCTION randflake_lease_announce(text, uuid, text, integer, integer, text, boolean) IS
'coordinator: announces a server with static node ids, and returns how many other servers and '
'leases have some of them';

CREATE VIEW randflake_pool AS SELECT * FROM randflake_lease_pool_state();
COMMENT ON VIEW randflake_pool IS
'coordinator: which node ids it leases, and whether it does now; as of the snapshot of its reader';
COMMENT ON COLUMN randflake_pool.state IS
'open; holding off: grants wait, renewals do not; closed; unused: a standby';
COMMENT ON COLUMN randflake_pool.grants_from IS
'while holding off: from when leases are granted; after a failover or restore that counts from the '
'first request on';
COMMENT ON COLUMN randflake_pool.first_node_id IS 'first node id of the pool';
COMMENT ON COLUMN randflake_pool.node_count IS 'number of node ids of the pool';
COMMENT ON COLUMN randflake_pool.own_first_node_id IS
'first static node id of this server, which the coordinator does not lease; null if there is none';
COMMENT ON COLUMN randflake_pool.own_node_count IS 'number of those';
COMMENT ON COLUMN randflake_pool.max_duration IS 'longest lease, seconds';
COMMENT ON COLUMN randflake_pool.max_clock_skew IS
'seconds by which the clocks of two coordinators, and of servers whose node ids come into the '
'pool, may differ';
COMMENT ON COLUMN randflake_pool.max_nodes_per_role IS
'most node ids that the leases of one role may have at a time';
COMMENT ON COLUMN randflake_pool.max_grants_per_role IS
'largest number of leases of one role in a minute; grants that roll back do not count';
COMMENT ON COLUMN randflake_pool.secrets IS
'fingerprints of the secrets that every holder must have, oldest first; the second and later ones '
'have "@" and the Unix second at which they begin; null before the first secret is set or leased '
'under';
COMMENT ON COLUMN randflake_pool.leased_node_ids IS
'number of node ids of the pool that are leased; null on a standby';
COMMENT ON COLUMN randflake_pool.largest_request IS
'largest number of consecutive free node ids, which is the largest possible request; null on a '
'standby';

CREATE VIEW randflake_leases AS
SELECT lease_id, role, holder, first_node_id, after - first_node_id AS node_count, starts_at,
       ends_at,
       CASE WHEN released_at IS NOT NULL THEN 'released'
            WHEN ends_at <= pg_catalog.clock_timestamp() THEN 'ended'
            WHEN starts_at > pg_catalog.clock_timestamp() THEN 'granted'
            ELSE 'active' END AS state,
       (SELECT lease.nodes OPERATOR(pg_catalog.<@) pool.nodes AND NOT pool.closed
        FROM randflake_lease_pool AS pool) AS in_pool,
       granted_at, renewed_at, released_at,
       secrets,
       CASE stop WHEN 0 THEN '-infinity' ELSE pg_catalog.to_timestamp(stop) END AS stops_at
FROM randflake_lease AS lease,
     LATERAL (SELECT randflake_lease_stops_at(
                  NULL::randflake_lease_internal, lease.secrets,
                  (SELECT pool.secrets FROM randflake_lease_pool AS pool)) AS stop) AS stops,
     LATERAL (SELECT pg_catalog.lower(nodes) AS first_node_id, pg_catalog.upper(nodes) AS after,
                     pg_catalog.to_timestamp(pg_catalog.lower(span)) AS starts_at,
                     pg_catalog.to_timestamp(pg_catalog.upper(span)) AS ends_at) AS bounds;
COMMENT ON VIEW randflake_leases IS
'coordinator: the leases of node ids, their holders and ends; as of the snapshot of its reader';
COMMENT ON COLUMN randflake_leases.lease_id IS 'number of the lease';
COMMENT ON COLUMN randflake_leases.role IS
'role that leased them; no other may renew or release the lease';
COMMENT ON COLUMN randflake_leases.holder IS 'name the holder gave itself';
COMMENT ON COLUMN randflake_leases.first_node_id IS 'first node id';
COMMENT ON COLUMN randflake_leases.node_count IS 'number of node ids';
COMMENT ON COLUMN randflake_leases.starts_at IS
'the holder may issue identifiers from this second on';
COMMENT ON COLUMN randflake_leases.ends_at IS
'the holder may issue identifiers before this second, until it renews the lease';
COMMENT ON COLUMN randflake_leases.state IS
'granted: not begun; active; ended; released: given back by the holder';
COMMENT ON COLUMN randflake_leases.in_pool IS
'whether the lease can be renewed: false if its node ids have left the pool, or if the pool is '
'closed';
COMMENT ON COLUMN randflake_leases.granted_at IS 'when it was granted';
COMMENT ON COLUMN randflake_leases.renewed_at IS 'when it was last renewed, null when it never was';
COMMENT ON COLUMN randflake_leases.released_at IS
'when the holder gave it back, null while it has not';
COMMENT ON COLUMN randflake_leases.secrets IS
'fingerprints of the secrets that the holder named last, including future ones, as in '
'randflake_pool';
COMMENT ON COLUMN randflake_leases.stops_at IS
'when the holder''s leases must end, because the holder and the pool have different secrets from '
'then on; null if they agree, -infinity if the first secrets differ';

-- Only the owner may call the coordinator's functions, until the owner grants others this right. A
-- view calls randflake_lease_stops_at for its reader.
DO $$
DECLARE
    made regprocedure;
BEGIN
    FOR made IN
        SELECT oid FROM pg_catalog.pg_proc
        WHERE pronamespace OPERATOR(pg_catalog.=) '@extschema@'::regnamespace
          AND pg_catalog.pg_get_userbyid(proowner) OPERATOR(pg_catalog.=) CURRENT_USER
          AND proname::text OPERATOR(pg_catalog.~) '^randflake_(lease|coordinator)_'
          AND proname OPERATOR(pg_catalog.<>) 'randflake_lease_stops_at'
    LOOP
        EXECUTE pg_catalog.format('REVOKE ALL ON FUNCTION %s FROM PUBLIC', made);
    END LOOP;
END
$$;
REVOKE ALL ON randflake_lease_announcement, randflake_lease, randflake_lease_hold,
    randflake_lease_pool, randflake_leases, randflake_pool FROM PUBLIC;
GRANT EXECUTE ON FUNCTION randflake_lease_pool_state() TO pg_monitor;
GRANT SELECT ON randflake_leases, randflake_pool TO pg_monitor;
