\set ECHO none
-- The generator's views, and the reset of their counters, on a server that generates. TAP tests
-- have the cases without a window, lease or secret; test/t/340_roles.pl has the privileges.
\pset format unaligned
\pset footer off

\echo '-- A new session has no numbers from before the reset.'
SELECT randflake_generate() IS NOT NULL AS generated;
\c -
SELECT randflake_status_reset();
SELECT ids_issued, waits, wait_ms, slots_exhausted, clock_steps_back, window_extensions,
       stats_reset BETWEEN now() - interval '1 hour' AND now() AS reset_just_now
FROM randflake_status;
SELECT sum(ids_issued) FROM randflake_slots;

\echo '-- The configuration, in the one row'
SELECT mode, first_node_id, node_count, key_fingerprint, lease_id, lease_error, lease_error_at,
       vector_path IN ('avx512', 'avx2', 'baseline', 'plain') AS has_vector_path
FROM randflake_status;

\echo '-- A slow session''s numbers are all counted; a fast one may leave prefetched numbers unused.'
SELECT randflake_generate() IS NOT NULL AS generated;
SELECT ids_issued FROM randflake_status;
SELECT count(*) FROM randflake_generate(10000);
SELECT ids_issued BETWEEN 10001 AND 20000 AS counted FROM randflake_status;
SELECT (SELECT sum(ids_issued) FROM randflake_slots) = ids_issued AS slots_add_up
FROM randflake_status;

\echo '-- The window contains every second in use, and at most a few more.'
SELECT window_start <= (SELECT min(last_second) FROM randflake_slots) AS starts_before,
       window_end > (SELECT max(last_second) FROM randflake_slots) AS ends_after,
       window_end < clock_timestamp() + interval '10 s' AS ends_soon
FROM randflake_status;

\echo '-- Slots: one for each node id, of which a single session uses one'
SELECT count(*), min(node_id), max(node_id), count(*) FILTER (WHERE ids_issued > 0) AS used
FROM randflake_slots;

\echo '-- The identifier has the last reserved number.'
SELECT randflake_generate() AS id \gset
SELECT (last_second, slot.sequence) >= (generated_at, made.sequence) AS reserved
FROM randflake_slots AS slot JOIN randflake_decode(:id) AS made USING (node_id);

\echo '-- The fingerprint is not the secret.'
SELECT key_fingerprint ~ '^[0-9a-f]{16}$' AS well_formed,
       position(key_fingerprint IN '000102030405060708090a0b0c0d0e0f') AS within_secret
FROM randflake_status;
