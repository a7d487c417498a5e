# shellcheck shell=bash disable=SC2154 # shares variables with run.sh and lib.sh
# Processor time of granting one node id, for several places of leases: one session, one transaction
# a grant.

. "$bench/suites/coordinator.sh"

grants_sample() { # ITEM REPETITION
    local median most worst
    IFS='|' read -r median most worst <<<"$(value "CALL bench_grants($grants)")"
    sample grants "$1" 'a grant' ms "$2" "$median" '100 leases'
    sample grants "$1" '99th percentile' ms "$2" "$most" '100 leases'
    sample grants "$1" 'the worst' ms "$2" "$worst" '100 leases'
}

suite_grants() {
    local repetition item holder
    sql -q -o /dev/null <<'SQL'
CREATE EXTENSION randflake_coordinator;
SELECT randflake_lease_configure(max_duration => 86400, max_clock_skew => 0, never_leased => true);
SELECT pg_sleep(1.5), randflake_lease_configure(secrets => '0123456789abcdef');
CREATE PROCEDURE bench_grants(number integer, INOUT median float8 DEFAULT NULL, INOUT most float8 DEFAULT NULL, INOUT worst float8 DEFAULT NULL)
LANGUAGE plpgsql AS $$
DECLARE
    started float8;
    times float8[] := '{}';
BEGIN
    FOR i IN 1 .. number LOOP
        started := bench_processor_clock();
        PERFORM randflake_lease_acquire('bench', gen_random_uuid(), 1, 600, '0123456789abcdef');
        times := times || 1000 * (bench_processor_clock() - started);
        COMMIT;
    END LOOP;
    SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY t), percentile_cont(0.99) WITHIN GROUP (ORDER BY t), max(t)
    INTO median, most, worst FROM unnest(times[21:]) AS t;
END $$;
SQL
    for repetition in $(seq 1 "$short_repetitions"); do
        while IFS='|' read -r item rows places; do
            lease_fill "$rows" 50000 "$places"
            grants_sample "$item" "$repetition"
            psql -X -q -o /dev/null -c 'BEGIN ISOLATION LEVEL REPEATABLE READ' -c 'SELECT 1' -c 'SELECT pg_sleep(3600)' 2>/dev/null &
            holder=$!
            lease_fill "$rows" 50000 "$places"
            grants_sample "$item and a snapshot kept" "$repetition"
            # Otherwise the session sleeps on.
            value "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE query ~ '^SELECT pg_sleep\(3600'" >/dev/null
            wait $holder || true
        done <<'END'
100 leases|100|SELECT i, 1 FROM generate_series(0, 99) AS i
100000 side by side|100000|SELECT i, 1 FROM generate_series(0, 99999) AS i
100000 spread|100000|SELECT i * 131 / 100, 1 FROM generate_series(0, 99999) AS i
of 1 to 64 node ids|1900|SELECT i * 64, (ARRAY[1, 3, 5, 16, 33, 64])[1 + i % 6] FROM generate_series(0, 1899) AS i
125000 of 131072|125000|SELECT i, 1 FROM generate_series(0, 124999) AS i
END
    done
    sql -q -c 'DROP EXTENSION randflake_coordinator' -c 'DROP PROCEDURE bench_grants'
}
