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
END $$;

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
END $$;

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
END $$;
