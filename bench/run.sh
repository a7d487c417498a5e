#!/bin/bash
# Compares identifiers with their alternatives on a temporary server.
#
#   bench/run.sh [--quick | --publish] [SUITE...]
#
# A suite is a file of suites/ (default: all). --quick uses fewer repetitions and rows, and takes a
# few minutes.
#
# The server that PG_CONFIG names must have the extension. Prints a table, and writes results.csv
# (the summary) and environment.csv (the machine) to bench/results/. A full run also draws the
# charts in docs/charts/, and writes the tables of docs/performance.md and README.md. A quick run,
# or a run of named suites, writes only to bench/results/partial/. With --publish, named suites
# replace their earlier results, and the script updates the charts and tables. The samples of the
# last run stay in bench/results/partial/samples.csv. Do not commit this file.
#
# For suites/keys.sh, BENCH_KEYS_ROWS lists the numbers of rows, one for each repetition.

# shellcheck disable=SC2034 # the suites use what is set here
set -euo pipefail
cd "$(dirname "$0")/.."
root=$PWD bench=$PWD/bench
. scripts/lib.sh
all_suites=$(basename -s .sh "$bench"/suites/*.sh | paste -sd " ")

repetitions=31 short_repetitions=3 insert_repetitions=7 look_up_repetitions=5 copy_repetitions=11
seconds=3 traced_rows=100000 keys_rows="5000000 5000000 5000000"
copy_rows=1000000 load_rows=5000000 cold_rows=2000000 cold_megabytes=64 fleet=1000 grants=1000
suites='' quick='' publish=''
while [ $# -gt 0 ]; do
    case $1 in
    --quick)
        quick=1 repetitions=3 short_repetitions=1 insert_repetitions=1 look_up_repetitions=1 copy_repetitions=3
        seconds=1 traced_rows=20000 keys_rows=200000
        copy_rows=200000 load_rows=200000 cold_rows=100000 cold_megabytes=2 fleet=200 grants=500
        ;;
    --publish) publish=1 ;;
    -*) sed -n '2,/^$/s/^# \{0,1\}//p' "$0" && exit 2 ;;
    *) suites+=" $1" ;;
    esac
    shift
done
suites=${suites# }
[ -z "$quick" ] || [ -z "$publish" ] || die 'results of --quick are not published'
if [ -z "$suites" ]; then
    suites=$all_suites
    [ "$quick" ] || publish=1
fi
[ "$publish" ] && results=$bench/results || results=$bench/results/partial
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
samples=$work/samples.csv data=$work/data
export PGHOST=$work PGPORT=5432 PGUSER=bench PGDATABASE=bench PGOPTIONS='' PGAPPNAME=bench
# shellcheck source=bench/lib.sh
. "$bench/lib.sh"
trap 'stop_server 2>/dev/null || true; rm -rf "$work"' EXIT

chmod 755 "$work"
[ "$(id -u)" != 0 ] || chown "$server_user" "$work"
${CC:-cc} -O2 -fPIC -shared -I"$("$PG_CONFIG" --includedir-server)" \
    -o "$work/functions.so" "$bench/functions.c"
: >"$samples"
make_server
generators=$(available <"$bench/generators") keys=$(available <"$bench/keys")
load=$(cut -d' ' -f1-3 /proc/loadavg)

for suite in $suites; do
    say "$suite ..."
    "suite_$suite"
done
describe_environment "$load" >"$work/environment.csv"

mkdir -p "$results" "$bench/results/partial"
cp "$samples" "$bench/results/partial"
"$bench/summary.sh" "$work"
for file in results.csv environment.csv; do
    if [ "$publish" ]; then
        # Keeps the results of the suites that did not run.
        awk -F, -v suites=" $suites " '!index(suites, " " $1 " ")' "$results/$file" >"$work/all"
        sed 1d "$work/$file" >>"$work/all"
        mv "$work/all" "$work/$file"
    fi
    cp "$work/$file" "$results"
done
if [ "$publish" ]; then
    "$bench/plot.sh"
    "$bench/tables.sh"
    "$bench/tables.sh" "$results" README.md
fi
