-- Prints 1,000 identifiers in five forms as CSV, the same in each run. Needs randflake.secret =
-- 00112233445566778899aabbccddeeff. The first rows are extremes and texts that look like numbers.
-- One in a million identifiers has such a text. Here, randflake_encode makes them on purpose.

WITH rare (number, id64, id53) AS (
    SELECT row_number() OVER (), id64, CASE WHEN id53 < 1::bigint << 53 THEN id53 END
    FROM unnest(
        ARRAY[-1, 1, -9223372036854775808, 9223372036854775807, 9007199254740993, -9007199254740993,
              1000000000000001, -2147483649, 4294967297, 0]
        || ARRAY(SELECT randflake_from_text(t) FROM unnest(ARRAY['12e4567890123', '98e7654321098',
              '1234567890123', '9876543210987', '1e5', '2e308', '3e1234567890', '10000000000e2',
              '123456e789012', '42']) AS t),
        ARRAY[1, 9007199254740991, 9007199254740990, 4503599627370497, 4294967297, 2147483648,
              1000000000000001, 999999999999999, 100000000000001, 0]
        || ARRAY(SELECT randflake_from_text(t) FROM unnest(ARRAY['12e45678901', '78e76543210',
              '12345678901', '76543210987', '1e5', '2e308', '3e12345678', '1000000000e', '7654e321098',
              '42']) AS t)) AS list (id64, id53)
), made AS (
    SELECT number,
        timestamptz '2026-01-01 00:00:00+00' + number * interval '71 s' AS made_at,
        (number * 7919 % 131072)::integer AS node_id, (number * 104729 % 131072)::integer AS sequence
    FROM generate_series(1, 1000) AS number
), identifier AS (
    SELECT number,
        randflake_encode(coalesce(d.generated_at, made_at), coalesce(d.node_id, made.node_id),
                         coalesce(d.sequence, made.sequence)) AS id64,
        randflake53_encode(coalesce(s.generated_at, made_at), coalesce(s.node_id, made.node_id % 256),
                           coalesce(s.sequence, made.sequence % 32768)) AS id53
    FROM made
    LEFT JOIN rare USING (number)
    LEFT JOIN randflake_decode(id64) AS d ON id64 IS NOT NULL
    LEFT JOIN randflake53_decode(id53) AS s ON id53 IS NOT NULL
)
SELECT id64, id53, randflake_to_text(id64), randflake_to_text(id64, 'cus'), id64::randflake
FROM identifier ORDER BY number;
