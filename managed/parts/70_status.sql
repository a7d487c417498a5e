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
END $$;

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
END $$;
