#!/bin/bash
# Tests of randomness over the identifiers of one session: ent, TestU01 and dieharder.
#
#   bench/randomness.sh [ent] [testu01] [dieharder]
#
# One COPY makes the identifiers, and all programs read them side by side from the first one on. Nothing
# is stored or read again: each test of a program goes on where the one before it stopped, except for at
# most 4 KiB that were in the program's buffer, since dieharder is started anew for each of its tests.
#
# ent reads 8 GiB. TestU01 runs SmallCrush and Alphabit, of which each test reads 1 GiB. dieharder runs
# its complete set, in three parts side by side. It takes the default number of samples, because with
# fewer it finds fault with good generators, except in the 33 tests of lagged sums: 10,000 sums a sample
# instead of a million, with which these alone would read 224 GB.
#
# snowflake_generate() is the control, of which each program reads as much as it takes to fail. The exit
# status tells whether randflake_generate() failed no test, and the control at least one of each program.
#
# Needs the extension installed ("make install") into the server of PG_CONFIG, and Debian's packages ent,
# dieharder and libtestu01-0-dev. The last is in the component non-free: where neither it nor that
# component is there, all but TestU01 is run. Writes what the programs say to bench/results/randomness/.
# Takes a quarter of an hour of processor time.

# shellcheck disable=SC2034 # lib.sh uses what is set here
set -euo pipefail
cd "$(dirname "$0")/.."
root=$PWD bench=$PWD/bench
. scripts/lib.sh
results=$bench/results/randomness

programs=${*:-ent testu01 dieharder}
for program in $programs; do
    [[ $program =~ ^(ent|testu01|dieharder)$ ]] || { sed -n '2,/^$/s/^# \{0,1\}//p' "$0" && exit 2; }
done
install_packages ent dieharder gcc libc6-dev
if [[ " $programs " = *' testu01 '* ]]; then
    testu01=libtestu01-0-dev
    if [ -e /usr/include/testu01/bbattery.h ] || [ -n "$(apt-cache madison $testu01 2>/dev/null)" ]; then
        install_packages $testu01
    else
        echo "TestU01 is not run: no source of packages here has $testu01, of Debian's component non-free" >&2
        programs=${programs/testu01/}
        [ "${programs// /}" ] || exit 1
    fi
fi

find_postgresql
PATH=$("$PG_CONFIG" --bindir):$PATH
server_user=$(server_user)
work=$(mktemp -d "${TMPDIR:-/tmp}/randflake-bench.XXXXXX")
export PGHOST=$work PGPORT=5432 PGUSER=bench PGDATABASE=postgres PGOPTIONS='' PGAPPNAME=bench
. "$bench/lib.sh"
trap 'stop_server 2>/dev/null || true; rm -rf "$work"' EXIT
chmod 755 "$work"
[ "$(id -u)" != 0 ] || chown "$server_user" "$work"
[[ $programs != *testu01* ]] ||
    gcc -Wall -Wextra -Werror -O2 -o "$work/batteries" bench/testu01.c -ltestu01
as_server initdb -D "$work/data" -U bench -A trust -E UTF8 --no-locale >/dev/null
server_settings | as_server tee -a "$work/data/postgresql.conf" >/dev/null
start_server
sql -q -c 'CREATE EXTENSION randflake'

# stream FUNCTION FIFO...: its identifiers, 8 bytes each, into each FIFO for as long as somebody reads
# there; prints how much that was. Each row of the COPY has a million; the filter leaves out what the
# binary format puts around them. It is an error if the server stops first.
stream() {
    local function=$1
    shift
    { sql -q -c "COPY (SELECT (SELECT string_agg(int8send($function()), '')
                               FROM generate_series(1, 1000 + 0 * batch) AS a, generate_series(1, 1000) AS b)
                       FROM generate_series(1, 1000000) AS batch) TO STDOUT (FORMAT binary)" || true; } |
        perl -e '
            use strict;
            use warnings;
            use constant { piece => 1 << 18, pipe_size => 1 << 20, F_SETPIPE_SZ => 1031 };
            $SIG{PIPE} = "IGNORE";
            my %written = map { $_ => 0 } @ARGV;
            my %file = map { open(my $file, ">", $_) or die "$_: $!\n"; $_ => $file } @ARGV;
            # So that the programs wait for each other as little as may be.
            fcntl($_, F_SETPIPE_SZ, pipe_size) or die "$!\n" for *STDIN, values %file;

            sub take {
                my $size = shift;
                (read(STDIN, my $data, $size) // 0) == $size or die "the identifiers ended\n";
                return $data;
            }

            sub give {
                my ($name, $data) = @_;
                while ($data ne "") {
                    my $size = syswrite($file{$name}, $data);
                    if (!defined $size) {
                        $!{EPIPE} or die "$name: $!\n";
                        printf "%s read %.1f GB\n", $name =~ s{.*/}{}r, $written{$name} / 1e9;
                        delete $file{$name};
                        return;
                    }
                    $written{$name} += $size;
                    substr($data, 0, $size, "");
                }
            }

            take(19);
            while (unpack("n", take(2)) == 1) {
                for (my $left = unpack("N", take(4)); $left > 0; ) {
                    my $data = take($left < piece ? $left : piece);
                    $left -= length $data;
                    give($_, $data) for sort keys %file;
                    exit if !%file;
                }
            }
            die "the identifiers ended\n"' "$@"
}

# Each of these reads a stream. ent has no verdict: it fails what fits random bytes worse, or
# better, than all but one in 10,000 streams of them.
read_ent() {
    local said
    case $1 in
    randflake) said=$(head -c 8G | ent) ;;
    snowflake) said=$(head -c 1G | ent) ;;
    esac
    echo "$said"
    if [[ $said =~ 'exceed this value '(less|more)' than' ]]; then echo FAILED; else echo PASSED; fi
}

read_testu01() {
    case $1 in
    randflake) "$work/batteries" smallcrush alphabit=$((1 << 33)) ;;
    snowflake) "$work/batteries" smallcrush alphabit=$((1 << 27)) ;;
    esac
}

# Together what `dieharder -a` runs; of the control, tests that read little.
read_dieharder() {
    local test n
    {
        case $1-$2 in
        randflake-1)
            for test in {0..16}; do dieharder -g 200 -d "$test"; done
            ;;
        randflake-2)
            for test in 17 100 101 102 {204..209}; do dieharder -g 200 -d "$test"; done
            ;;
        randflake-3)
            for n in {1..12}; do dieharder -g 200 -d 200 -n "$n"; done
            for n in {2..5}; do
                dieharder -g 200 -d 201 -n "$n"
                dieharder -g 200 -d 202 -n "$n"
            done
            for n in {0..32}; do dieharder -g 200 -d 203 -n "$n" -t 10000; done
            ;;
        snowflake-1)
            for test in 0 2 3 15; do dieharder -g 200 -d "$test"; done
            ;;
        snowflake-2)
            for test in 100 101 102; do dieharder -g 200 -d "$test"; done
            ;;
        snowflake-3)
            for n in {1..3}; do dieharder -g 200 -d 200 -n "$n"; done
            ;;
        esac
    } | grep --line-buffered -E 'PASSED|WEAK|FAILED'
}

mkdir -p "$results"
wrong=0
for name in randflake snowflake; do
    say "$(date -u +%T) $name"
    readers=() fifos=()
    for program in ${programs/dieharder/dieharder-1 dieharder-2 dieharder-3}; do
        mkfifo "$work/$program"
        "read_${program%-*}" $name "${program#*-}" <"$work/$program" >"$results/$name-$program.txt" &
        readers+=($!) fifos+=("$work/$program")
    done
    stream "${name}_generate" "${fifos[@]}"
    for reader in "${readers[@]}"; do
        wait "$reader"
    done
    rm "${fifos[@]}"
    for program in $programs; do
        said=$(cat "$results/$name-$program"*.txt)
        failed=$(grep -c FAILED <<<"$said" || true)
        say "$(date -u +%T) $name, $program: $(grep -c PASSED <<<"$said") passed," \
            "$(grep -c WEAK <<<"$said") weak, $failed failed"
        if [ $name = randflake ]; then [ "$failed" = 0 ]; else [ "$failed" != 0 ]; fi || wrong=1
    done
done
exit $wrong
