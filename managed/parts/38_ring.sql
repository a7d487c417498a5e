-- Returns the 1-based index of the secret that owns a number. See src/core/secret/secret_ring.h.
CREATE OR REPLACE FUNCTION randflake.randflake_owner(raw bigint, valid_from bigint[])
RETURNS integer
LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF raw & 17179869183 = 0 THEN
        RETURN 1;
    END IF;
    FOR i IN REVERSE cardinality(valid_from)..2 LOOP
        IF (raw >> 34) & 1073741823 >= valid_from[i] THEN
            RETURN i;
        END IF;
    END LOOP;
    RETURN 1;
END $$;

-- These functions return NULL when they encrypt a skipped number, or decrypt an identifier that no
-- secret made. A 53-bit identifier belongs to the secret that is in use in the identifier's second.
--@ define owned_randflake
owned := @number@;
--@ end
--@ define owned_randflake53
owned := ((@number@ >> 23) << 34) | 1;
--@ end
--@ define encrypted_randflake
id := randflake.randflake_encrypt(raw, keys[25 * owner - 24 : 25 * owner]);
--@ end
--@ define encrypted_randflake53
id := randflake.randflake_permute(raw, keys[2 * owner - 1 : 2 * owner], false);
--@ end
--@ define decrypted_randflake
raw := randflake.randflake_decrypt(id, keys[25 * i - 24 : 25 * i]);
--@ end
--@ define decrypted_randflake53
raw := randflake.randflake_permute(id, keys[2 * i - 1 : 2 * i], true);
--@ end
--@ for name: randflake; randflake53

CREATE OR REPLACE FUNCTION randflake.@name@_ring_encrypt(
    raw bigint, valid_from bigint[], keys bigint[]) RETURNS bigint
LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    owned bigint;  -- a number that has the same owner
    owner integer;
    id bigint;
BEGIN
    --@ use owned_@name@ number=raw
    owner := randflake.randflake_owner(owned, valid_from);
    --@ use encrypted_@name@
    FOR i IN 1..owner - 1 LOOP
        --@ use decrypted_@name@
        --@ use owned_@name@ number=raw
        IF randflake.randflake_owner(owned, valid_from) = i THEN
            RETURN NULL;
        END IF;
    END LOOP;
    RETURN id;
END $$;

CREATE OR REPLACE FUNCTION randflake.@name@_ring_decrypt(
    id bigint, valid_from bigint[], keys bigint[]) RETURNS bigint
LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    owned bigint;
    raw bigint;
BEGIN
    FOR i IN 1..cardinality(valid_from) LOOP
        --@ use decrypted_@name@
        --@ use owned_@name@ number=raw
        IF randflake.randflake_owner(owned, valid_from) = i THEN
            RETURN raw;
        END IF;
    END LOOP;
    RETURN NULL;
END $$;
--@ end
