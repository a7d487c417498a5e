# shellcheck shell=bash disable=SC2034,SC2154 # shares variables with run.sh and lib.sh
# Runs COPY into one column of tables with two columns. The other column has a default. Measures the
# time up to the commit, the backend's processor time, and WAL. The first round only warms up.

# Compares text forms of identifiers with equally long texts of a sequence's numbers.
text_keys="bigserial as text|text DEFAULT lpad(nextval('bench_sequence')::text, 13, '0')
randflake_generate_text()|text DEFAULT randflake_generate_text()"

suite_copy() {
    local repetition
    seq "$copy_rows" >"$work/copy_rows"
    for repetition in $(seq 0 "$copy_repetitions"); do
        copy_into copy "$repetition" 'without a key' '' <<<"$keys"
        copy_into copy "$repetition" 'with a primary key' 'PRIMARY KEY' <<<"$keys"
        copy_into copy "$repetition" 'text without a key' '' <<<"$text_keys"
    done | sql -qAt -F, | awk -F, '$5 > 0' >>"$samples"
    sql -q -c 'DROP TABLE copy_rows'
}

# copy_into SUITE REPETITION CASE KEY: reads lines "label|column type and default|options", of which
# the first is the baseline. For each line it prints SQL, which fills a table and returns samples.
copy_into() {
    local label column options order base=
    while IFS='|' read -r label column options order; do
        [ -z "$order" ] || continue # COPY cannot order
        : "${base:=$label}"
        echo 'RESET ALL;'
        sed 's/ *-c \([^ ]*\)=\([^ ]*\)/SET \1 = '"'\2'"';\n/g' <<<"$options"
        cat <<END
SET client_min_messages = warning;
DROP TABLE IF EXISTS copy_rows;
CREATE TABLE copy_rows (id $column $4, payload integer);
CHECKPOINT;
SELECT clock_timestamp() AS started, bench_processor_clock() AS clock, pg_current_wal_insert_lsn() AS wal \gset
COPY copy_rows (payload) FROM '$work/copy_rows';
SELECT '$1', '$label', metric || ': $3', unit, $2, round(value::numeric, 4), '$base'
  FROM (VALUES ('time', 'seconds', extract(epoch FROM clock_timestamp() - :'started')),
               ('processor time', 'seconds', bench_processor_clock() - :clock),
               ('WAL', 'MB', (pg_current_wal_insert_lsn() - :'wal') / 1e6)) AS v (metric, unit, value);
END
    done
}
