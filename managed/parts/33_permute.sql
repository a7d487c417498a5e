-- Permutes the 53-bit numbers: a Feistel network of 10 rounds, with SipHash-2-4 as its function.
-- The additions handle the lower 62 and the upper 2 bits separately, because PostgreSQL raises an
-- error on overflow.
--@ define sip_add
s := (@x@ & 4611686018427387903) + (@y@ & 4611686018427387903);
@x@ := (s & 4611686018427387903) | (((@x@ >> 62) + (@y@ >> 62) + (s >> 62)) << 62);
--@ end
CREATE OR REPLACE FUNCTION randflake.randflake_permute(number bigint, k bigint[], inverse boolean)
RETURNS bigint
LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    l bigint := number >> 27;
    r bigint := number & 134217727;
    m bigint;
    s bigint;
    a bigint; b bigint; c bigint; d bigint;
BEGIN
    FOR i IN 0..9 LOOP
        m := CASE WHEN inverse THEN 9 - i ELSE i END;
        m := (m << 32) | CASE m & 1 WHEN 0 THEN r ELSE l END;
        a := k[1] # 8317987319222330741;
        b := k[2] # 7237128888997146477;
        c := k[1] # 7816392313619706465;
        d := k[2] # 8387220255154660723 # m;
        FOR turn IN 1..8 LOOP
            IF turn = 3 THEN
                a := a # m;
                d := d # 576460752303423488;
            ELSIF turn = 5 THEN
                a := a # 576460752303423488;
                c := c # 255;
            END IF;
            --@ use sip_add x=a y=b
            b := ((b << 13) | ((b >> 51) & 8191)) # a;
            --@ use sip_add x=c y=d
            d := ((d << 16) | ((d >> 48) & 65535)) # c;
            a := (a << 32) | ((a >> 32) & 4294967295);
            --@ use sip_add x=c y=b
            b := ((b << 17) | ((b >> 47) & 131071)) # c;
            --@ use sip_add x=a y=d
            d := ((d << 21) | ((d >> 43) & 2097151)) # a;
            c := (c << 32) | ((c >> 32) & 4294967295);
        END LOOP;
        IF (m >> 32) & 1 = 0 THEN
            l := l # ((a # b # c # d) & 67108863);
        ELSE
            r := r # ((a # b # c # d) & 134217727);
        END IF;
    END LOOP;
    RETURN (l << 27) | r;
END $$;
