# shellcheck shell=bash disable=SC2034,SC2154 # shares variables with run.sh and the suites
# Defines functions that start the benchmark's server, run SQL, and record samples.
#
# A sample is a line of $samples with the fields suite,item,metric,unit,repetition,value,base. The
# summary divides the value by the value of the item `base` in the same repetition.

say() { echo "$*" >&2; }
as_server() { as_user "$server_user" "$@"; }

server_settings() {
    cat <<END
listen_addresses = ''
unix_socket_directories = '$work'
shared_buffers = 2GB
work_mem = 1GB
maintenance_work_mem = 256MB
max_wal_size = 16GB
checkpoint_timeout = 1h
autovacuum = off
jit = off
max_parallel_workers_per_gather = 0
shared_preload_libraries = 'randflake'
randflake.node_id = 0
randflake.node_count = 256
randflake.secret = '00112233445566778899aabbccddeeff'
snowflake.node = 1
END
}

# Prints the machine and its load as CSV, with a heading and a line for each suite.
describe_environment() {
    local machine suite
    machine="$(date -u +%Y-%m-%d),$(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | sort -u | tr -d ,),$(nproc)"
    machine+=",$(awk '/^MemTotal/ { printf "%.0f GB", $2 / 1e6 }' /proc/meminfo),$(uname -s) $(uname -r | cut -d. -f1,2)"
    machine+=",PostgreSQL $(value 'SHOW server_version')"
    machine+=",$(value "SELECT extversion FROM pg_extension WHERE extname = 'randflake'")"
    echo 'suite,date,processor,cores,memory,system,server,randflake,load at the start,load at the end'
    for suite in $suites; do
        echo "$suite,$machine,$1,$(cut -d' ' -f1-3 /proc/loadavg)"
    done
}

# make_server [LINE...]: makes a server in $data, with these further lines of configuration.
make_server() {
    as_server initdb -D "$data" -U bench -A trust -E UTF8 --no-locale >"$work/initdb.log" ||
        die "initdb failed: $(cat "$work/initdb.log")"
    { server_settings; printf '%s\n' "$@"; } | as_server tee -a "$data/postgresql.conf" >/dev/null
    start_server
    createdb bench
    sql -q -v library="$work/functions" -f "$bench/setup.sql"
}

# start_server [SETTING=VALUE...]
start_server() {
    local options=
    for setting; do options+=" -c $setting"; done
    as_server pg_ctl -D "$data" -l "$work/server.log" -o "$options" -w start >/dev/null ||
        die "the server did not start: $(tail -5 "$work/server.log")"
}

stop_server() { as_server pg_ctl -D "$data" -m fast -w stop >/dev/null; }
sql() { psql -X -v ON_ERROR_STOP=1 "$@"; }
value() { sql -At -c "$1"; }
has() { [ "$(value "SELECT bench_has('$1')")" = t ]; }

# sample SUITE ITEM METRIC UNIT REPETITION VALUE BASE: records a sample.
sample() {
    local IFS=,
    echo "$*" >>"$samples"
}

# Reads lines "label|signature|rest". Prints "label|rest" if a function with the signature exists.
available() {
    local label signature rest
    grep -v '^#' | while IFS='|' read -r label signature rest; do
        if has "$signature"; then
            echo "$label|$rest"
        else
            say "$label: not installed, skipped"
        fi
    done
}

# time_queries SUITE ROWS BASE: reads lines "label|query". Each query has ROWS rows. Records the
# nanoseconds per row. One session runs all queries in turn. The first round only warms up.
time_queries() {
    local suite=$1 rows=$2 base=$3 label query repetition queries
    queries=$(cat)
    for repetition in $(seq 0 "$repetitions"); do
        while IFS='|' read -r label query; do
            echo "SELECT '$suite', '$label', 'time', 'ns per row', $repetition," \
                "round(((bench_seconds(\$query\$$query\$query\$)).elapsed * 1e9 / $rows)::numeric, 2)," \
                "'$base';"
        done <<<"$queries"
    done | sql -At -F, | awk -F, '$5 > 0' >>"$samples"
}

# transactions_per_second CLIENTS SCRIPT [pgbench option...]: runs pgbench and prints its rate.
transactions_per_second() {
    local clients=$1 script=$2
    shift 2
    pgbench -n -M prepared -c "$clients" -j 2 -f <(echo "$script") "$@" 2>"$work/pgbench.log" |
        sed -n 's/^tps = \([0-9.]*\) .*/\1/p' | grep . || die "pgbench failed: $(cat "$work/pgbench.log")"
}
