#!/bin/bash
# Tests of randomness over consecutive identifiers of one session, which are made while they are read
# and read once: dieharder's complete set, and ent. snowflake_generate() is the control, which must fail.
#
#   bench/randomness.sh [PSAMPLES [GIGABYTES]]
#
# PSAMPLES is dieharder's option -m, a factor for the number of samples of each test. With 0.1, the
# default, a complete set reads about 25 GB. GIGABYTES is what ent reads, 8 by default.
#
# Needs the extension installed ("make install") into the server of PG_CONFIG, and Debian's packages
# dieharder and ent. Prints how many identifiers each read, and writes all they say to
# bench/results/randomness/.

# shellcheck disable=SC2034 # lib.sh uses what is set here
set -euo pipefail
cd "$(dirname "$0")/.."
root=$PWD bench=$PWD/bench
. scripts/lib.sh
psamples=${1:-0.1} gigabytes=${2:-8}
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

mkdir -p "$results"
while IFS='|' read -r name expression; do
    say "$name: ent"
    { stream "$expression" || true; } | { head -c "${gigabytes}G" || true; } | ent >"$results/$name-ent.txt"
    say "$name: dieharder"
    { stream "$expression" || true; } |
        dieharder -a -g 200 -m "$psamples" >"$results/$name-dieharder.txt"
    say "$name: dieharder read $(cat "$work/read"):" \
        "$(grep -c PASSED "$results/$name-dieharder.txt") passed," \
        "$(grep -c WEAK "$results/$name-dieharder.txt") weak," \
        "$(grep -c FAILED "$results/$name-dieharder.txt") failed"
done <<'END'
randflake|randflake_generate()
snowflake|snowflake_generate()
END
