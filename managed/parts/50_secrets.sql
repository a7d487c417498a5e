-- Configuration

-- Revokes what the owner's default privileges may have granted on the tables and sequences.
CREATE OR REPLACE FUNCTION randflake.randflake_keep_private() RETURNS void
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    grant_ record;
BEGIN
    FOR grant_ IN
        SELECT c.relname,
            CASE a.grantee WHEN 0 THEN 'PUBLIC' ELSE a.grantee::regrole::text END AS grantee
        FROM pg_class AS c, aclexplode(c.relacl) AS a
        WHERE c.relnamespace = 'randflake'::regnamespace AND c.relkind IN ('r', 'S')
            AND a.grantee <> c.relowner
    LOOP
        EXECUTE format('REVOKE ALL ON randflake.%I FROM %s', grant_.relname, grant_.grantee);
    END LOOP;
END $$;

-- Parses the lines of secrets into keys and fingerprints, as src/core/secret/secret_file.h does.
CREATE OR REPLACE FUNCTION randflake.randflake_parse_secrets(
    secret text, OUT valid_from bigint[], OUT keys bigint[], OUT keys53 bigint[],
    OUT fingerprints text[])
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    line text;
    number integer := 0;
    parts text[];
    at timestamptz;
    second bigint;
    seen text[];
    fingerprint bytea := '';
    problem text;
BEGIN
    FOREACH line IN ARRAY string_to_array(secret, chr(10)) LOOP
        number := number + 1;
        line := rtrim(line, chr(9) || chr(13) || ' ');
        CONTINUE WHEN line = '' OR left(line, 1) = '#';
        parts := regexp_match(line, '^([0-9A-Fa-f]{32})([ \t]+from[ \t]+(.*))?$');
        problem := NULL;
        second := 0;
        IF parts IS NULL THEN
            problem := CASE WHEN line ~ '^[0-9A-Fa-f]{32}[ \t]' AND seen IS NOT NULL
                THEN 'After the first, a secret is followed by "from" and a time.'
                ELSE 'A secret is exactly 32 hexadecimal digits.' END;
        ELSIF lower(parts[1]) = ANY (seen) THEN
            problem := 'No secret may come twice.';
        ELSIF cardinality(seen) = 16 THEN
            problem := 'There may be at most 16 secrets.';
        ELSIF seen IS NULL THEN
            IF parts[2] IS NOT NULL THEN
                problem := 'The first secret has no time.';
            END IF;
        ELSIF parts[2] IS NULL THEN
            problem := 'After the first, a secret is followed by "from" and a time.';
        ELSIF parts[3] !~ ('^\d{4}-\d\d-\d\d[Tt ]([01]\d|2[0-3]):[0-5]\d:[0-5]\d(\.\d+)?'
            || '([Zz]|[+-]\d\d(:?[0-5]\d)?)$') THEN
            problem := 'A time is written as in 2027-01-01T00:00:00Z, with its offset from UTC.';
        ELSIF parts[3] ~ '\.\d*[1-9]' THEN
            problem := 'A time must be a full second.';
        ELSE
            second := date_part('epoch', parts[3]::timestamptz)::bigint - 1730000000;
            IF second NOT BETWEEN 1 AND 1073741823 THEN
                problem := 'A time must be one that identifiers can hold.';
            ELSIF second <= valid_from[cardinality(valid_from)] THEN
                problem := 'A time must be later than that of the secret before.';
            END IF;
        END IF;
        IF problem IS NOT NULL THEN
            RAISE invalid_parameter_value USING
                MESSAGE = format('invalid secret in line %s', number), DETAIL = problem;
        END IF;

        fingerprint := substr(randflake.randflake_hmac(parts[1],
            convert_to('randflake key check', 'UTF8') || fingerprint
            || CASE WHEN seen IS NULL THEN '' ELSE int4send(second::integer) END), 1, 8);
        seen := seen || lower(parts[1]);
        valid_from := valid_from || second;
        keys := keys || randflake.randflake_key_schedule(decode(parts[1], 'hex'));
        keys53 := keys53 || randflake.randflake_permutation_key(parts[1], 'randflake 53', '');
        fingerprints := fingerprints || encode(fingerprint, 'hex');
    END LOOP;
    IF seen IS NULL THEN
        RAISE invalid_parameter_value USING MESSAGE = 'invalid secret',
            DETAIL = 'There must be a secret.';
    END IF;
END $$;
