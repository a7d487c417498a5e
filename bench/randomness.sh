#!/bin/bash
# Tests of randomness over consecutive identifiers of one session, which are made while they are read
# and read once: dieharder's complete set, and ent. snowflake_generate() is the control, which must fail.
#
#   bench/randomness.sh [GIGABYTES]
#
# GIGABYTES, 8 by default, is what ent reads. dieharder takes the default number of samples of each
# test, because with fewer it finds fault with good generators, and 10,000 sums a sample instead of a
# million in the 33 tests of lagged sums, which would read five times as much as all others.
#
# Needs the extension installed ("make install") into the server of PG_CONFIG, and Debian's packages
# dieharder and ent. Prints how many identifiers each read, and writes all they say to
# bench/results/randomness/.

# shellcheck disable=SC2034 # lib.sh uses what is set here
set -euo pipefail
cd "$(dirname "$0")/.."
root=$PWD bench=$PWD/bench
. scripts/lib.sh
gigabytes=${1:-8}
results=$bench/results/randomness
install_packages dieharder ent

find_postgresql
PATH=$("$PG_CONFIG" --bindir):$PATH
server_user=$(server_user)
work=$(mktemp -d "${TMPDIR:-/tmp}/randflake-bench.XXXXXX")
export PGHOST=$work PGPORT=5432 PGUSER=bench PGDATABASE=postgres PGOPTIONS='' PGAPPNAME=bench
. "$bench/lib.sh"
trap 'stop_server 2>/dev/null || true; rm -rf "$work"' EXIT
chmod 755 "$work"
[ "$(id -u)" != 0 ] || chown "$server_user" "$work"
as_server initdb -D "$work/data" -U bench -A trust -E UTF8 --no-locale >/dev/null
server_settings | as_server tee -a "$work/data/postgresql.conf" >/dev/null
start_server
sql -q -c 'CREATE EXTENSION randflake'

# The identifiers of one session, 8 bytes each, for as long as somebody reads. Each row of the COPY has
# a million; the filter leaves out what the binary format puts around them, and counts.
stream() {
    local expression=$1
    sql -q -c "COPY (SELECT (SELECT string_agg(int8send($expression), '')
                             FROM generate_series(1, 1000000 + 0 * batch))
                     FROM generate_series(1, 1000000) AS batch) TO STDOUT (FORMAT binary)" |
        perl -e '
            my ($sent, $data) = (0);
            sub take { local $_; read(STDIN, $_, $_[0]) == $_[0] or exit; $_ }
            sub told { printf STDERR "%.1f GB\n", $sent / 1e9; exit }
            $SIG{PIPE} = \&told;
            take(19);
            while (unpack("n", take(2)) == 1) {
                $data = take(unpack("N", take(4)));
                print($data) or told();
                $sent += length $data;
            }' 2>"$work/read"
}

# What `dieharder -a` runs, one test after the other on the same input.
all_tests() {
    local test n
    for test in {0..17} 100 101 102 {204..209}; do
        dieharder -g 200 -d "$test"
    done
    for n in {1..12}; do
        dieharder -g 200 -d 200 -n "$n"
    done
    for n in {2..5}; do
        dieharder -g 200 -d 201 -n "$n"
        dieharder -g 200 -d 202 -n "$n"
    done
    for n in {0..32}; do
        dieharder -g 200 -d 203 -n "$n" -t 10000
    done
}

mkdir -p "$results"
while IFS='|' read -r name expression; do
    say "$name: ent"
    { stream "$expression" || true; } | { head -c "${gigabytes}G" || true; } | ent >"$results/$name-ent.txt"
    say "$name: dieharder"
    { stream "$expression" || true; } | { all_tests | grep -E 'PASSED|WEAK|FAILED' >"$results/$name-dieharder.txt"; }
    say "$name: dieharder read $(cat "$work/read"):" \
        "$(grep -c PASSED "$results/$name-dieharder.txt") passed," \
        "$(grep -c WEAK "$results/$name-dieharder.txt") weak," \
        "$(grep -c FAILED "$results/$name-dieharder.txt") failed"
done <<'END'
randflake|randflake_generate()
snowflake|snowflake_generate()
END
