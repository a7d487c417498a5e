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
       granted_at, renewed_at, released_at, secrets,
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
