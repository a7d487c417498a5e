\set ECHO none
-- Tests Snowflake identifiers: their fields, layouts by name and description, and ranges of time.
\getenv source PG_ABS_SRCDIR
\i :source/test/sql_test.sql

\echo '-- External identifiers: Twitter''s, and Discord''s from its documentation'
SELECT * FROM snowflake_decode(1541815603606036480, 'twitter');
SELECT generated_at, node_id >> 5 AS worker, node_id & 31 AS process, sequence
FROM snowflake_decode(175928847299117063, 'discord');

\echo '-- Made by other generators, which showed time, node and count. Each ran in November 2026, and'
\echo '-- Baidu''s under a clock in March 2024. Instagram''s function stands in its engineers'' article.'
SELECT generator, bool_and(d = (at, node, count)) AS right
FROM (VALUES
    ('@sapphire/snowflake 3.5.5, TwitterSnowflake', 'twitter', 2126704580794168796,
     timestamptz '2026-11-28 15:47:38.978', 23 << 5 | 11, 1500),
    ('@sapphire/snowflake 3.5.5, TwitterSnowflake', 'twitter', 2126704580806753207, '2026-11-28 15:47:38.981', 747, 2999),
    ('@sapphire/snowflake 3.5.5, DiscordSnowflake', 'discord', 1576263311407627191, '2026-11-28 15:47:38.995', 747, 2999),
    ('insta5.next_id(), PostgreSQL 15.20', 'instagram', 4040464396709795838, '2026-11-28 15:48:31.908', 5, 1022),
    ('insta5.next_id(), PostgreSQL 15.20', 'instagram', 4040464396709795839, '2026-11-28 15:48:31.908', 5, 1023),
    ('sony/sonyflake 1.3.0', 'sonyflake', 648189886908338740, '2026-11-28 15:47:59.56', 4660, 44),
    ('sony/sonyflake/v2 2.2.0', 'time=39:10ms, sequence=8, node=16, epoch=2025-01-01', 100984210372432436,
     '2026-11-28 15:47:59.87', 4660, 44),
    ('npm sonyflake 1.1.2, epoch: Date.UTC(2025, 0, 1)', 'time=39:1ms, sequence=8, node=16, epoch=2025-01-01',
     1009842106296046132, '2026-11-28 15:48:00.025', 4660, 2),
    ('baidu/uid-generator 2fcbc13, built-in epoch', 'baidu', 8439466428570648775, '2024-03-01 12:00:00', 345678, 199),
    ('baidu/uid-generator 2fcbc13, epochStr in UTC', 'time=28:1s, node=22, sequence=13, epoch=2016-05-20',
     8438476868105650375, '2024-03-01 12:00:00', 345678, 199),
    ('pgEdge snowflake 2.6.0', 'time=41:1ms, node=10, sequence=12, epoch=2023-01-01', 517365630012997637,
     '2026-11-28 15:46:18.383', 700, 5),
    ('pgEdge snowflake 2.6.0', 'time=41:1ms, node=10, sequence=12, epoch=2023-01-01', 517365630038164480,
     '2026-11-28 15:46:18.389', 700, 1024),
    ('pgEdge snowflake 1.1', 'time=41:1ms, sequence=12, node=10, epoch=2023-01-01', 517365645310957244,
     '2026-11-28 15:46:22.031', 700, 5)) AS made (generator, layout, id, at, node, count),
     snowflake_decode(id, layout) AS d
GROUP BY generator ORDER BY generator COLLATE "C";

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
