# shellcheck shell=bash disable=SC2154 # shares variables with run.sh and lib.sh
# Measures the processor time of grants and renewals, for several placements of leases. One session
# makes all calls, each in its own transaction. Also measures how long a fleet takes to restart.

lease_fill() { # ROWS SECOND_OF_END [SELECT of first node id and number of node ids]
    sql -q -o /dev/null <<END
TRUNCATE randflake_lease, randflake_lease_role;
INSERT INTO randflake_lease (lease_id, role, holder, incarnation, nodes, span, secrets) OVERRIDING SYSTEM VALUE
SELECT i, 'bench', 'bench', lpad(i::text, 32, '0')::uuid, int4range(first, first + count),
       int8range(now - 1000, now + $2), '0123456789abcdef'
FROM (SELECT extract(epoch FROM clock_timestamp())::bigint) AS clock (now),
     (SELECT row_number() OVER (), place.* FROM ($3) AS place) AS lease (i, first, count);
SELECT FROM setval('randflake_lease_lease_id_seq', $1), randflake_lease_configure();
DELETE FROM randflake_lease_hold;
UPDATE randflake_lease_pool SET high_water = 0;
VACUUM ANALYZE randflake_lease, randflake_lease_chunk;
CHECKPOINT;
END
}

lease_sample() { # ITEM REPETITION
    local call results median most worst wal
    for call in renewal grant; do
        results=$(value "CALL bench_leases($grants, '$call')")
        IFS='|' read -r median most worst wal <<<"$results"
        sample coordinator "$1" "a $call" ms "$2" "$median" '100 leases'
        if [ $call = grant ]; then
            sample coordinator "$1" '99th percentile' ms "$2" "$most" '100 leases'
            sample coordinator "$1" 'the worst' ms "$2" "$worst" '100 leases'
        else
            sample coordinator "$1" 'WAL of a renewal' bytes "$2" "$wal" '100 leases'
        fi
    done
}

lease_restart() { # ITEM CLIENTS SCRIPT REPETITION
    lease_fill 100 -10 'SELECT 256 + i, 1 FROM generate_series(0, 99) AS i'
    sample coordinator "$1" "$fleet holders restart" seconds "$4" \
        "$( { TIMEFORMAT=%R; time pgbench -n -C -c "$2" -j 2 -t $((fleet / $2)) \
            -f <(printf '%s\n' "$3" "SELECT randflake_lease_acquire('bench', gen_random_uuid(), 1, 60, '0123456789abcdef')") \
            >"$work/restart.log" 2>&1; } 2>&1)" '8 connections'
    sample coordinator "$1" 'connecting' ms "$4" "$(awk '/average connection time/ { print $5 }' "$work/restart.log")" '8 connections'
}

suite_coordinator() {
    local repetition item rows places holder clients
    sql -q -o /dev/null <<'SQL'
CREATE EXTENSION randflake_coordinator;
SELECT randflake_lease_configure(max_duration => 86400, max_clock_skew => 0, never_leased => true);
SELECT pg_sleep(1.5), randflake_lease_configure(secrets => '0123456789abcdef');
SELECT format('CREATE ROLE role%s LOGIN', i) FROM generate_series(0, 31) AS i \gexec
SELECT format('GRANT EXECUTE ON FUNCTION %s TO %s', oid::regprocedure, string_agg('role' || i, ', '))
FROM pg_proc, generate_series(0, 31) AS i WHERE proname = 'randflake_lease_acquire' GROUP BY oid \gexec
CREATE PROCEDURE bench_leases(number integer, call text, INOUT median float8 DEFAULT NULL, INOUT most float8 DEFAULT NULL,
                              INOUT worst float8 DEFAULT NULL, INOUT wal float8 DEFAULT NULL)
LANGUAGE plpgsql AS $$
DECLARE
    started float8;
    times float8[] := '{}';
    leases bigint := (SELECT last_value FROM randflake_lease_lease_id_seq);
    lease bigint;
    before pg_lsn;
BEGIN
    FOR i IN 1 .. number LOOP
        IF i = 101 THEN -- Each page of a lease was written whole before.
            before := pg_current_wal_insert_lsn();
        END IF;
        lease := 1 + i * 7919 % 100 * (leases / 100);
        started := bench_processor_clock();
        IF call = 'grant' THEN
            PERFORM randflake_lease_acquire('bench', gen_random_uuid(), 1, 600, '0123456789abcdef');
        ELSE
            PERFORM randflake_lease_renew(lease, lpad(lease::text, 32, '0')::uuid, extract(epoch FROM now())::bigint + 100, 60, '0123456789abcdef');
        END IF;
        times := times || 1000 * (bench_processor_clock() - started);
        COMMIT;
    END LOOP;
    wal := (pg_current_wal_insert_lsn() - before) / (number - 100);
    SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY t), percentile_cont(0.99) WITHIN GROUP (ORDER BY t), max(t)
    INTO median, most, worst FROM unnest(times[21:]) AS t;
END $$;
SQL
    for repetition in $(seq 1 "$short_repetitions"); do
        while IFS='|' read -r item rows places; do
            lease_fill "$rows" 50000 "$places"
            lease_sample "$item" "$repetition"
            psql -X -q -o /dev/null -c 'BEGIN ISOLATION LEVEL REPEATABLE READ' -c 'SELECT 1' -c 'SELECT pg_sleep(3600)' 2>/dev/null &
            holder=$!
            lease_fill "$rows" 50000 "$places"
            lease_sample "$item and a snapshot kept" "$repetition"
            value "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE query ~ '^SELECT pg_sleep\(3600'" >/dev/null
            wait $holder || true
        done <<'END'
100 leases|100|SELECT 256 + i, 1 FROM generate_series(0, 99) AS i
100000 side by side|100000|SELECT 256 + i, 1 FROM generate_series(0, 99999) AS i
100000 spread|100000|SELECT 256 + i * 130 / 100, 1 FROM generate_series(0, 99999) AS i
of 1 to 64 node ids|1900|SELECT 256 + i * 64, (ARRAY[1, 3, 5, 16, 33, 64])[1 + i % 6] FROM generate_series(0, 1899) AS i
125000 of 131072|125000|SELECT 256 + i, 1 FROM generate_series(0, 124999) AS i
END
        # All holders request leases, over 8 or 32 connections at a time.
        for clients in 8 32; do
            lease_restart "$clients connections" "$clients" 'SET SESSION AUTHORIZATION role:client_id;' "$repetition"
        done
        lease_restart '8 connections with one role' 8 'SET SESSION AUTHORIZATION role0;' "$repetition"
    done
    sql -q -c 'DROP EXTENSION randflake_coordinator' -c 'DROP PROCEDURE bench_leases'
}
