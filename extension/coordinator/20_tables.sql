CREATE TABLE randflake_lease_pool (
    singleton boolean PRIMARY KEY DEFAULT true CHECK (singleton), -- keeps the table at one row
    nodes int4range NOT NULL DEFAULT pg_catalog.int4range(0, 131072) -- node ids to lease
        CHECK (NOT pg_catalog.isempty(nodes)
               AND nodes OPERATOR(pg_catalog.<@) pg_catalog.int4range(0, 131072)),
    -- No lease lasts longer than this number of seconds.
    --@ use max_duration
    -- The clocks of two coordinators may differ by this many seconds.
    --@ use max_clock_skew
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
-- An UPDATE that changes only the cells updates no index.
CREATE TABLE randflake_lease_chunk (
    first integer PRIMARY KEY, -- first node id
    size integer NOT NULL CHECK (size IN (1, 64)), -- number of node ids
    -- The number of node ids of each cell. An empty chunk has 0.
    class integer NOT NULL CHECK (class = 0 OR size % class = 0),
    -- One bit for each cell, or a single bit for an empty chunk. 1 means that the cell seems free.
    free bit varying NOT NULL,
    -- Equals the column "first" while the chunk has a free cell, and is null otherwise.
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
--@ use dumped
