#!/bin/bash
# Measures identifiers against their alternatives, side by side on a server of its own.
#
#   bench/run.sh [--quick] [SUITE...]
#
# Suites: calls set backends inserts keys connect decode waste uniformity cipher instructions profile.
# The default is all of them. --quick takes about two minutes: fewer repetitions, fewer rows.
#
# Needs the extension installed ("make install") into the server of PG_CONFIG. Prints a table and
# writes to bench/results/: a description of the machine (environment.txt), every sample (samples.csv),
# the summary (results.csv). A full run then draws the charts in docs/charts/ and writes the tables of
# docs/performance.md. A quick run, or one of some suites, writes its results to bench/results/partial/
# and does neither.
#
# BENCH_KEYS_ROWS lists the numbers of rows that the suite keys inserts, one for each repetition.

# shellcheck disable=SC2034 # the suites use what is set here
set -euo pipefail
cd "$(dirname "$0")/.."
root=$PWD bench=$PWD/bench
. scripts/lib.sh
all_suites="calls set backends inserts keys connect decode waste uniformity cipher instructions profile"

repetitions=31 short_repetitions=3 insert_repetitions=7 look_up_repetitions=5
seconds=3 connections=300 traced_rows=100000 keys_rows="5000000 5000000 5000000 20000000"
results=$bench/results
while [ $# -gt 0 ]; do
    case $1 in
    --quick)
        repetitions=3 short_repetitions=1 insert_repetitions=1 look_up_repetitions=1
        seconds=1 connections=100 traced_rows=20000 keys_rows=200000
        results=$bench/results/partial
        ;;
    -*) sed -n '2,/^$/s/^# \{0,1\}//p' "$0" && exit 2 ;;
    *) suites+=" $1" results=$bench/results/partial ;;
    esac
    shift
done
: "${suites:=$all_suites}"
keys_rows=${BENCH_KEYS_ROWS:-$keys_rows}

for suite in $suites; do
    [ -f "$bench/suites/$suite.sh" ] || die "there is no suite \"$suite\"; there are: $all_suites"
    # shellcheck source=/dev/null
    . "$bench/suites/$suite.sh"
done

find_postgresql
PATH=$("$PG_CONFIG" --bindir):$PATH
server_user=$(server_user)
work=$(mktemp -d "${TMPDIR:-/tmp}/randflake-bench.XXXXXX")
samples=$work/samples.csv
export PGHOST=$work PGPORT=5432 PGUSER=bench PGDATABASE=bench PGOPTIONS='' PGAPPNAME=bench
. "$bench/lib.sh"
trap 'stop_server 2>/dev/null || true; rm -rf "$work"' EXIT

chmod 755 "$work"
[ "$(id -u)" != 0 ] || chown "$server_user" "$work"
${CC:-cc} -O2 -fPIC -shared -I"$("$PG_CONFIG" --includedir-server)" \
    -o "$work/empty.so" "$bench/empty.c"
: >"$samples"
make_server
describe_environment >"$work/environment.txt"
say "$(cat "$work/environment.txt")"

for suite in $suites; do
    say "$suite ..."
    "suite_$suite"
done
echo "load average at the end: $(cut -d' ' -f1-3 /proc/loadavg)" >>"$work/environment.txt"

mkdir -p "$results"
cp "$work"/environment.txt "$work"/*.csv "$results"
"$bench/summary.sh" "$results"
if [ "$results" = "$bench/results" ]; then
    "$bench/plot.sh"
    "$bench/tables.sh"
fi
