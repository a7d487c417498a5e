# shellcheck shell=bash disable=SC2154 # shares variables with run.sh and lib.sh
# A coordinator of leases: grants and renewals with many leases in force, and a fleet that restarts.
# Also with fsync off, which shows the disk's share.

lease_fill() { # ROWS SECOND_OF_END [SELECT of first node id and number of node ids]
    sql -q -o /dev/null <<END
TRUNCATE randflake_lease, randflake_lease_role;
INSERT INTO randflake_lease (lease_id, role, holder, incarnation, nodes, span, secrets) OVERRIDING SYSTEM VALUE
SELECT i, 'role' || i % 8, 'bench', lpad(i::text, 32, '0')::uuid, int4range(first, first + count),
       int8range(now - 1000, now + $2), '0123456789abcdef'
FROM (SELECT extract(epoch FROM clock_timestamp())::bigint) AS clock (now),
     (SELECT row_number() OVER (), place.*
      FROM (${3:-SELECT 1024 + (i * 1.2)::integer, 1 FROM generate_series(1, $1) AS i}) AS place) AS lease (i, first, count);
SELECT FROM setval('randflake_lease_lease_id_seq', $1), randflake_lease_configure();
VACUUM ANALYZE randflake_lease, randflake_lease_chunk;
CHECKPOINT;
END
}

lease_grant="SELECT randflake_lease_acquire('bench', gen_random_uuid(), 1, 60, '0123456789abcdef')"

# A role and a session for each client, as servers have.
lease_clients() { # SECONDS SCRIPT [pgbench option...]
    local seconds=$1 script=$2
    shift 2
    pgbench -n -M simple -c 8 -j 2 -T "$seconds" -D known=0 "$@" \
        -f <(printf '%s\n' '\if :known = 0' 'SET SESSION AUTHORIZATION role:client_id;' '\set known 1' '\endif' "$script") \
        2>"$work/pgbench.log" | awk '/^tps/ { print $3 }' >"$work/tps" || true
}

lease_run() { # ITEM METRIC REPETITION SCRIPT
    local item=$1 metric=$2 repetition=$3
    rm -f "$work"/latency*
    lease_clients "$seconds" "$4" --log --log-prefix="$work/latency"
    [ -s "$work/tps" ] || die "pgbench failed: $(cat "$work/pgbench.log")"
    sample coordinator "$item" "$metric" 'per second' "$repetition" "$(cat "$work/tps")" 100
    sample coordinator "$item" "99th percentile of $metric" ms "$repetition" \
        "$(cat "$work"/latency* | awk '{ print $3 / 1000 }' | sort -n | awk '{ v[NR] = $1 } END { print v[int(NR * 0.99)] }')" 100
}

lease_restart() { # ITEM CLIENTS SCRIPT REPETITION
    sample coordinator "$1" "$fleet holders restart" seconds "$4" \
        "$( { TIMEFORMAT=%R; time pgbench -n -C -c "$2" -j 2 -t $((fleet / $2)) \
            -f <(printf '%s\n' "$3" "$lease_grant") >"$work/restart.log" 2>&1; } 2>&1)" '8 connections'
    sample coordinator "$1" 'connecting' ms "$4" "$(awk '/average connection time/ { print $5 }' "$work/restart.log")" '8 connections'
}

lease_renewal() { # ROWS
    echo "\\set i random(0, $1 / 8 - 2) * 8 + 8 + :client_id
SELECT randflake_lease_renew(:i, lpad(':i', 32, '0')::uuid, extract(epoch FROM now())::bigint + 100, 60, '0123456789abcdef')"
}

# 10,000 holders renew every 30 s under default autovacuum: whether the table stays small.
lease_bloat() {
    local part
    sql -q -c 'ALTER SYSTEM SET autovacuum = on' -c 'SELECT pg_reload_conf()' >/dev/null
    lease_fill 10000 50000
    for part in 0 1 2 3; do
        [ $part = 0 ] || lease_clients "$bloat_seconds" "$(lease_renewal 10000)" -R 333
        sample coordinator "after $((part * bloat_seconds)) seconds" 'size of 10000 leases' MB 1 \
            "$(value "SELECT pg_total_relation_size('randflake_lease') / 1e6")" 'after 0 seconds'
    done
    sql -q -c 'ALTER SYSTEM RESET autovacuum' -c 'SELECT pg_reload_conf()' >/dev/null
}

suite_coordinator() {
    local repetition rows fsync clients
    sql -q -o /dev/null <<'END'
CREATE EXTENSION randflake_coordinator;
SELECT FROM randflake_lease_configure(max_duration => 86400, max_clock_skew => 0, never_leased => true);
SELECT FROM pg_sleep(1.5), randflake_lease_configure(secrets => '0123456789abcdef');
SELECT format('CREATE ROLE role%s LOGIN', i) FROM generate_series(0, 31) AS i \gexec
SELECT format('GRANT EXECUTE ON FUNCTION %s TO %s', oid::regprocedure, string_agg('role' || i, ', '))
FROM pg_proc, generate_series(0, 31) AS i WHERE proname IN ('randflake_lease_acquire', 'randflake_lease_renew') GROUP BY oid \gexec
END
    for repetition in $(seq 1 "$short_repetitions"); do
        for rows in 100 10000 100000; do
            lease_fill $rows 50000
            for fsync in off on; do
                sql -q -c "ALTER SYSTEM SET fsync = $fsync" -c 'SELECT pg_reload_conf()' >/dev/null
                lease_run $rows "grants with fsync $fsync" "$repetition" "$lease_grant"
                lease_run $rows "renewals with fsync $fsync" "$repetition" "$(lease_renewal $rows)"
            done
        done
        # All holders ask at once over separate connections, so many at a time.
        for clients in 8 32; do
            lease_fill 100 -10
            lease_restart "$clients connections" "$clients" "SET SESSION AUTHORIZATION role:client_id;" "$repetition"
        done
        lease_fill 100 -10
        lease_restart '8 connections with one role' 8 'SET SESSION AUTHORIZATION role0;' "$repetition"
    done
    lease_bloat
    sql -q -c 'DROP EXTENSION randflake_coordinator'
}
