\set ECHO none
-- Tests Snowflake identifiers: their fields, layouts by name and description, and ranges of time.
\pset format unaligned
\pset tuples_only on
SET datestyle = ISO;
SET timezone = 'UTC';

\echo '-- External identifiers: Twitter''s, and Discord''s from its documentation'
SELECT * FROM snowflake_decode(1541815603606036480, 'twitter');
SELECT generated_at, node_id >> 5 AS worker, node_id & 31 AS process, sequence
FROM snowflake_decode(175928847299117063, 'discord');

\echo '-- From pgEdge''s documentation, which shows their time, node and count'
SELECT id, d.generated_at = shown AS same_time, node_id, sequence
FROM (VALUES (136169504773242881, timestamptz '2024-01-11 13:08:59.845-05'),
             (135824181823537153, '2024-01-10 14:16:48.438-05'),
             (135824609030176769, '2024-01-10 14:18:30.292-05')) AS example (id, shown),
     snowflake_decode(id, 'time=41:1ms, sequence=12, node=10, epoch=2023-01-01') AS d;

\echo '-- Numbers that JSON preserves: up to 2^53 - 1'
SELECT * FROM snowflake_decode(9007199254740991, 'time=32:1s, node=8, sequence=13, epoch=2024-01-01');
SELECT snowflake_decode(9007199254740992, 'time=32:1s, node=8, sequence=13, epoch=2024-01-01');

\echo '-- The layouts'
SELECT * FROM snowflake_layouts();

\echo '-- The server''s own'
SELECT id > 0 AS positive, d.node_id BETWEEN 200 AND 215 AS own_node,
       d.generated_at BETWEEN now() - interval '1 min' AND clock_timestamp() AS own_time,
       d = snowflake_decode(id, 'twitter') AS is_default
FROM snowflake_generate() AS id, snowflake_decode(id) AS d;

\echo '-- The smallest identifier of a time'
SELECT d.*, snowflake_lower('2026-01-01 00:00:00.0019', 'twitter') = id AS rounded_down,
       (snowflake_decode(id - 1, 'twitter')).*
FROM snowflake_lower('2026-01-01 00:00:00.001', 'twitter') AS id, snowflake_decode(id, 'twitter') AS d;
SELECT name, snowflake_lower(epoch, name) AS first,
       snowflake_lower(last_time + unit - interval '1 us', name) + (nodes * (1 << sequence_bits) - 1) AS last
FROM snowflake_layouts();
SELECT snowflake_lower('2026-01-01') = snowflake_lower('2026-01-01', 'twitter') AS of_the_server;

\echo '-- A layout that changes from row to row'
SELECT layout, (snowflake_decode(1541815603606036480, layout)).generated_at
FROM unnest(ARRAY['twitter', 'discord', 'twitter', 'instagram', NULL]) AS layout;

\getenv source PG_ABS_SRCDIR
\set helper :source '/test/error_of.sql'
\i :helper

\echo '-- Errors'
SELECT pg_temp.error_of(format('SELECT snowflake_decode(%s, %L)', id, layout)) AS error
FROM (VALUES (-1, 'twitter'), (1::bigint << 40, 'time=20:1s, node=8, sequence=4, epoch=0'), (1, ''), (1, 'facebook'),
             (1, 'time=41:1ms, node=10, sequence=12'), (1, 'time=41:1ms, node=10, sequence=12, epoch=2021-02-29'),
             (1, 'time=41:1h, node=10, sequence=12, epoch=0'),
             (1, 'time=41:1ms, node=10, sequence=13, epoch=0')) AS v (id, layout);
SELECT pg_temp.error_of(format('SELECT snowflake_lower(%L, %L)', t, layout)) AS error
FROM (VALUES ('2010-11-04 01:42:54.656999', 'twitter'), ('2080-07-10 17:30:30.209', 'twitter'),
             ('infinity', 'twitter'), ('-infinity', 'twitter'),
             ('now', 'node=10, time=41:1ms, sequence=12, epoch=0')) AS v (t, layout);

\echo '-- A message quotes a short part of a layout, even of one whose only error is its blanks'
SELECT pg_temp.error_of(format('SELECT snowflake_decode(%s)', arguments)) AS error
FROM unnest(ARRAY[$$1, repeat('x', 100000)$$, $$-1, repeat(' ', 100000) || 'twitter'$$,
                  $$1, 'time=41:1ms, ' || repeat('x', 100000) || '=1'$$]) AS arguments;
