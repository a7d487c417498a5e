# shellcheck shell=bash disable=SC2034,SC2154 # shares variables with run.sh and lib.sh
# Numbers lost to prefetching: one node id, 16 backends, single-row inserts. Each second's highest
# sequence number shows how many were reserved. The rest of a second's last run, fewer than 64 numbers,
# is not counted.

suite_waste() {
    stop_server
    start_server randflake.node_count=1
    sql -q -c 'CREATE TABLE waste_rows (id bigint DEFAULT randflake_generate() PRIMARY KEY)' \
        -c 'SET randflake.max_wait = 60000' -c 'SELECT randflake_generate()' >/dev/null
    PGOPTIONS='-c synchronous_commit=off' transactions_per_second 16 \
        'INSERT INTO waste_rows DEFAULT VALUES' -T $((3 * seconds)) >/dev/null

    # The first and the last second are not whole.
    sql -At -F, >>"$samples" <<'END'
WITH decoded AS (
    SELECT d.generated_at, d.sequence FROM waste_rows CROSS JOIN LATERAL randflake_decode(id) AS d
), per_second AS (
    SELECT generated_at, count(*) AS issued, max(sequence) + 1 AS reserved,
           row_number() OVER (ORDER BY generated_at) AS n, count(*) OVER () AS seconds
      FROM decoded GROUP BY generated_at
)
SELECT 'waste', item, 'one node id and 16 backends', unit, n - 1, round(value, 3), ''
  FROM per_second,
       LATERAL (VALUES ('ids issued', 'per second', issued),
                       ('numbers reserved', 'per second', reserved),
                       ('numbers lost', '% of 131072', (reserved - issued) * 100.0 / 131072))
            AS v (item, unit, value)
 WHERE n > 1 AND n < seconds ORDER BY n;
END
    sql -q -c 'DROP TABLE waste_rows'
    stop_server
    start_server
}
