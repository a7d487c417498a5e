-- The only row contains the arguments of randflake_configure(), including the secret.
CREATE TABLE IF NOT EXISTS randflake.randflake_state (
    node_id      integer NOT NULL CHECK (node_id BETWEEN 0 AND 131071),
    secret       text NOT NULL,      -- lines as in a file of secrets
    valid_from   bigint[] NOT NULL,  -- first second of each secret; 0 for the first
    keys         bigint[] NOT NULL,  -- 25 of each secret, see randflake_key_schedule
    keys53       bigint[] NOT NULL,  -- 2 of each secret, see randflake_permutation_key
    fingerprints text[] NOT NULL,
    tickets      oid NOT NULL,       -- regclass would need the sequence where a row is applied
    hops         oid NOT NULL,
    leaps        oid NOT NULL,
    numbers      oid NOT NULL,
    file         text NOT NULL,      -- path of `numbers` below its tablespace; a copy has another
    identity     text NOT NULL,      -- see randflake_identity
    timeline     text,
    failover     boolean NOT NULL,
    writer       xid NOT NULL        -- the row's xmin, if randflake_configure() wrote the row
);
ALTER TABLE randflake.randflake_state ALTER COLUMN keys SET STORAGE PLAIN;
CREATE UNIQUE INDEX IF NOT EXISTS randflake_state_row ON randflake.randflake_state ((true));

-- Keeps the row from the workers of subscriptions. If others insert a row, as a restore of data
-- does, `numbers` gets a new file. So the script takes this database for a copy, even if the
-- restore then sets back all sequences.
CREATE OR REPLACE FUNCTION randflake.randflake_guard() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    here integer := (SELECT s.node_id FROM randflake.randflake_state AS s);
    numbers regclass;
BEGIN
    IF EXISTS (SELECT FROM pg_stat_subscription AS s WHERE s.pid = pg_backend_pid()) THEN
        RETURN NULL;
    ELSIF TG_OP <> 'INSERT' OR NEW.numbers = 0 THEN  -- randflake_replace() inserts 0
        RETURN CASE TG_OP WHEN 'DELETE' THEN OLD ELSE NEW END;
    END IF;
    numbers := to_regclass(format('randflake.randflake_numbers_%s', coalesce(here, NEW.node_id)));
    IF numbers IS NOT NULL THEN
        EXECUTE format('ALTER SEQUENCE %s RESTART', numbers);
    END IF;
    RETURN CASE WHEN here IS NULL THEN NEW END;
END $$;
CREATE OR REPLACE TRIGGER randflake_guard
    BEFORE INSERT OR UPDATE OR DELETE ON randflake.randflake_state
    FOR EACH ROW EXECUTE FUNCTION randflake.randflake_guard();
ALTER TABLE randflake.randflake_state ENABLE ALWAYS TRIGGER randflake_guard;
