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
    s     varbit;
    swaps varbit[];
BEGIN
    FOR i IN 0..5 LOOP
        s := ('x' || CASE i WHEN 0 THEN '55' WHEN 1 THEN '33'
            ELSE repeat('0', 1 << (i - 2)) || repeat('f', 1 << (i - 2)) END)::varbit;
        WHILE length(s) < size << i LOOP
            s := s || s;
        END LOOP;
        s := s || (s # s);
        WHILE length(s) < size << 6 LOOP
            s := s || s;
        END LOOP;
        swaps[i] := s;
    END LOOP;
    RETURN swaps;
END $$;

--@ define exchange
FOR i IN 0..5 LOOP
    s := (all_ # (all_ << ((size - 1) << i))) & swaps[i];
    all_ := all_ # s # (s >> ((size - 1) << i));
END LOOP;
--@ end
-- A round turns x and y into u and v, and adds its key: to x, and to the sum of x and y.
--@ define added
carry := ones[0];
key := k[@round@ + 1];
sum := key # (key >> 16);
FOR i IN 0..15 LOOP
    s := @x@[(i + 7) & 15] # @y@[i];
    @u@[i] := s # carry # ones[((key >> i) & 1) | ((key >> (31 + i)) & 2)];
    @v@[i] := @y@[(i + 14) & 15] # @u@[i] # ones[((sum >> i) & 1) | ((sum >> (31 + i)) & 2)];
    carry := @y@[i] # (s & (@y@[i] # carry));
END LOOP;
--@ end
CREATE OR REPLACE FUNCTION randflake.randflake_encrypt_many(numbers bigint[], k bigint[])
RETURNS bigint[]
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
        RETURN ARRAY(SELECT randflake.randflake_encrypt(z, k) FROM unnest(numbers) AS z);
    END IF;
    swaps := randflake.randflake_swaps(size);
    SELECT ('x' || rpad(encode(string_agg(int8send(z), ''), 'hex'), 16 * size, '0'))::varbit
    INTO all_ FROM unnest(numbers) AS z;
    --@ use exchange
    FOR i IN 0..3 LOOP
        ones[i] := ('x' || repeat(CASE i & 1 WHEN 1 THEN 'f' ELSE '0' END, size / 4)
            || repeat(CASE i & 2 WHEN 2 THEN 'f' ELSE '0' END, size / 4))::varbit;
    END LOOP;
    FOR i IN 0..15 LOOP  -- the cipher swaps the two bytes of each word
        t := substring(all_, (63 - ((i + 8) & 15)) * size + 1, size);
        x[i] := (t || substring(all_, (31 - ((i + 8) & 15)) * size + 1, size))
            # ones[((k[1] >> i) & 1) | ((k[1] >> (31 + i)) & 2)];
        t := substring(all_, (47 - ((i + 8) & 15)) * size + 1, size);
        y[i] := (t || substring(all_, (15 - ((i + 8) & 15)) * size + 1, size))
            # ones[((k[1] >> (16 + i)) & 1) | ((k[1] >> (47 + i)) & 2)];
    END LOOP;

    FOR round IN 3..24 BY 3 LOOP  -- three rounds and a linear layer
        --@ use added x=x y=y u=u v=v round=round-2
        --@ use added x=u y=v u=x v=y round=round-1
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
        t := CASE (i >> 4) & 1 WHEN 0 THEN y[(7 - i) & 15] ELSE x[(7 - i) & 15] END;
        all_ := all_ || substring(t, CASE i >> 5 WHEN 0 THEN size + 1 ELSE 1 END, size);
    END LOOP;
    --@ use exchange
    RETURN ARRAY(SELECT substring(all_, 64 * i + 1, 64)::bigint
        FROM (SELECT generate_series(0, cardinality(numbers) - 1) AS i OFFSET 0) AS states);
END $$;
