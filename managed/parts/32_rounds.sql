-- This block has the cipher's rounds, unrolled. Constants select words, or bits of each word:
-- 281470681808895 the x words, 279275953520128 their upper 7 bits, 2194728288767 their lower 9
-- bits, -1125895612137472 and 844424930328576 the upper 14 and lower 2 bits of the y words. The
-- cipher swaps the two bytes of each word. Each third round ends with the linear layer, in which
-- the left branch changes the right one, and both change places.
--@ define encrypt
z := (((z << 8) & -71777214294589696) | ((z >> 8) & 71777214294589695)) # @k@[1];
--@ for a b c: 2 3 4; 5 6 7; 8 9 10; 11 12 13; 14 15 16; 17 18 19; 20 21 22; 23 24 25
--@ for i: @a@; @b@
t := ((((z << 9) & 279275953520128) | ((z >> 7) & 2194728288767))
    + ((z >> 16) & 281470681808895)) & 281470681808895;
z := (((z << 2) & -1125895612137472) | ((z >> 14) & 844424930328576))
    # (t << 16) # t # @k@[@i@];
--@ end
t := ((((z << 9) & 279275953520128) | ((z >> 7) & 2194728288767))
    + ((z >> 16) & 281470681808895)) & 281470681808895;
z := (((z << 2) & -1125895612137472) | ((z >> 14) & 844424930328576)) # (t << 16) # t;
z := ((z << 32) | (((z >> 32) # z # ((((((z # (z >> 16)) & 65535) * 65537) >> 8) & 65535)
    * 65537)) & 4294967295)) # @k@[@c@];
--@ end
RETURN ((z << 8) & -71777214294589696) | ((z >> 8) & 71777214294589695);
--@ end

CREATE OR REPLACE FUNCTION randflake.randflake_encrypt(z bigint, k bigint[]) RETURNS bigint
LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    t bigint;
BEGIN
    --@ use encrypt k=k
END $$;

CREATE OR REPLACE FUNCTION randflake.randflake_decrypt(z bigint, k bigint[]) RETURNS bigint
LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    t bigint;
BEGIN
    z := ((z << 8) & -71777214294589696) | ((z >> 8) & 71777214294589695);
    FOR round IN REVERSE 24..1 LOOP
        z := z # k[round + 1];
        IF round % 3 = 0 THEN
            z := (z << 32) | ((z >> 32) & 4294967295);
            t := (((((z # (z >> 16)) & 65535) * 65537) >> 8) & 65535) * 65537;
            z := z # ((z # t) << 32);
        END IF;
        t := ((z >> 16) # z) & 281470681808895;
        t := ((t >> 2) | (t << 14)) & 281470681808895;
        z := ((z & 281470681808895) + 281474976776192 - t) & 281470681808895;
        z := (((z >> 9) | (z << 7)) & 281470681808895) | (t << 16);
    END LOOP;
    z := z # k[1];
    RETURN ((z << 8) & -71777214294589696) | ((z >> 8) & 71777214294589695);
END $$;
