#!/bin/bash
# Tests the installed extension on temporary servers.
#
#   scripts/tempcheck.sh                        everything
#   scripts/tempcheck.sh regress [NAME...]      pg_regress: sql/NAME.sql
#   scripts/tempcheck.sh tap [NAME...]          TAP:        test/t/NAME.pl
#
# NAME may include the directory and the suffix. PG_CONFIG selects the PostgreSQL installation
# (default: pg_config in PATH). PROVE_FLAGS sets the options of prove. The default is -j8 --timer:
# eight test files run at a time, because some of them wait. VECTOR_PATH sets randflake.vector_path.
# EXCEPT names TAP tests to leave out.
#
# A server refuses to run as root. As root, this script runs the tests as the user postgres, or as
# nobody if postgres does not exist. They run in a temporary directory, which stays if a test fails.

set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/lib.sh
export LANG=C.UTF-8 # sets the encoding of the tests' databases, because tests unset LC_ALL
export TSX_DISABLE_CACHE=1 # tsx, which drizzle-kit uses, would leave its cache in TMPDIR
# Sets how many seconds a test or pg_ctl waits. PostgreSQL's limits, 180 and 60 seconds, are too
# short for eight tests on a loaded machine.
export PG_TEST_TIMEOUT_DEFAULT=${PG_TEST_TIMEOUT_DEFAULT:-600} PGCTLTIMEOUT=${PGCTLTIMEOUT:-600}

kind=${1:-all}
[ $# -eq 0 ] || shift
case $kind in
    all | regress | tap) ;;
    *) sed -n '2,/^$/s/^# \{0,1\}//p' "$0" >&2; exit 2 ;;
esac
runs() { [ "$kind" = all ] || [ "$kind" = "$1" ]; }

# Sets `tests` to the given names, or to all names in a directory. Strips directory and suffix.
choose() {
    local directory=$1 suffix=$2 name there
    there=("$directory"/*"$suffix")
    shift 2
    [ $# -gt 0 ] || set -- "${there[@]}"
    there=("${there[@]##*/}")
    tests=()
    for name; do
        name=$(basename "$name" "$suffix")
        [ -e "$directory/$name$suffix" ] || none_such "test in $directory" "$name" "${there[@]%"$suffix"}"
        tests+=("$name")
    done
}
tests=()
! runs regress || choose sql .sql "$@"
regress_tests=("${tests[@]}")
# Prints all TAP tests, the longest first. A test counts by its last duration, or else by its size.
tap_times=$PWD/build/test/tap_times
by_time() {
    { cat "$tap_times" 2>/dev/null || true; echo; wc -c test/t/*.pl; } | awk -v except=" ${EXCEPT-} " '
        NF == 0 { sizes = 1 }
        NF && !sizes { time[$2] = $1 }
        /\.pl$/ && sizes && !index(except, " " substr($2, 8, length($2) - 10) " ") { print ($2 in time ? time[$2] : $1), $2 }' | sort -rn | cut -d ' ' -f 2
}
longest_first=()
[ $# -gt 0 ] || mapfile -t longest_first < <(by_time)
! runs tap || choose test/t .pl "$@" "${longest_first[@]}"
tests=("${tests[@]/#/test/t/}")
tap_tests=("${tests[@]/%/.pl}")

# --- the installation ---------------------------------------------------------------------------

PG_CONFIG=${PG_CONFIG:-pg_config}
bindir=$("$PG_CONFIG" --bindir) || die "cannot run $PG_CONFIG"
testdir=$(realpath "$(dirname "$("$PG_CONFIG" --pgxs)")/../test")
pg_regress=$testdir/regress/pg_regress

for control in *.control; do
    [ -e "$("$PG_CONFIG" --sharedir)/extension/$control" ] || die "$control is not installed: run make install"
done
[ -x "$pg_regress" ] || die "$pg_regress is missing"
if runs tap; then
    [ -e "$testdir/perl/PostgreSQL/Test/Cluster.pm" ] ||
        die "PostgreSQL's test modules are missing below $testdir/perl"
    perl -MIPC::Run -e 1 2>/dev/null || die "Perl's IPC::Run is missing (Debian: libipc-run-perl)"
    perl -MDBD::Pg -e 1 2>/dev/null || die "Perl's DBD::Pg is missing (Debian: libdbd-pg-perl)"
fi

# --- directory and user ------------------------------------------------------------------------

work=$(mktemp -d "${TMPDIR:-/tmp}/randflake-tempcheck.XXXXXX")
chmod 755 "$work"
make -s managed # no test may read the files of an earlier state
# Copies the checkout, because pages link to its files. Copies node_modules only if a test uses it.
leave_out=(./.git ./build ./quickstart)
[[ " ${tap_tests[*]-} " =~ \ test/t/(220_lease_js|320_drivers)\.pl\  ]] || leave_out+=(node_modules)
tar -c "${leave_out[@]/#/--exclude=}" . | tar -x -C "$work"
cd "$work"
if [ -n "${VECTOR_PATH-}" ]; then
    echo "randflake.vector_path = '$VECTOR_PATH'" >vector_path.conf
    cat vector_path.conf >>test/temp.conf
    export TEMP_CONFIG=$work/vector_path.conf # read by PostgreSQL::Test::Cluster
fi

if [ "$(id -u)" = 0 ]; then
    user=nobody
    ! id postgres >/dev/null 2>&1 || user=postgres
    chown -R "$user" .
    # Makes secret files named OWNER-MODE. Their group is that of the server's user.
    mkdir foreign
    for file in root-0640 root-0440 root-0660 root-0644 daemon-0640; do
        od -An -v -N16 -tx1 /dev/urandom | tr -d ' ' >"foreign/$file"
        chown "${file%-*}:$(id -g "$user")" "foreign/$file"
        chmod "${file#*-}" "foreign/$file"
    done
    for mode in 0400 0444; do # of root's group
        install -m "$mode" foreign/root-0640 "foreign/root-root-$mode"
    done
    export RANDFLAKE_FOREIGN_SECRETS=$work/foreign
    # Gives tests a /dev/shm of their own, where root may mount one. Servers leave files there.
    private=(unshare --mount sh -c 'mount -t tmpfs -o mode=1777 tmpfs /dev/shm && exec "$@"' sh)
    "${private[@]}" true 2>/dev/null || private=()
    as_user() { "${private[@]}" runuser -u "$user" -- "$@"; }
else
    as_user() { "$@"; }
fi
as_user mkdir tmp
export TMPDIR=$work/tmp # for the tests
find /dev/shm -type f >shm_before

# --- the two kinds -----------------------------------------------------------------------------

# Adds a line about one kind of test to `summary`. The file `failed` exists once a test has failed.
report() { echo "$1" >>summary; }

run_regress() {
    as_user mkdir output_regress
    if as_user "$pg_regress" --bindir="$bindir" --inputdir=. --outputdir=output_regress \
        --temp-instance=output_regress/instance --temp-config=test/temp.conf \
        --no-locale --encoding=UTF8 --load-extension=randflake --load-extension=randflake_type \
        --load-extension=randflake_coordinator "${regress_tests[@]}"; then
        report "regress: ${#regress_tests[@]} passed"
        return
    fi
    report "regress: FAILED"
    touch failed
    if [ -e output_regress/regression.diffs ]; then
        cat output_regress/regression.diffs
    else
        tail -n 30 output_regress/log/*.log
    fi
}

# Makes a substitute for initdb that copies a prepared cluster, because the real initdb takes a
# second of CPU time. PostgreSQL 16's test modules also do this. Copies have one small WAL segment.
copy_initdb() {
    as_user mkdir initdb
    as_user "$bindir/initdb" -D initdb/data -A trust -N --wal-segsize=1 >/dev/null
    cat >initdb/initdb <<END
#!/bin/sh
case "\$*" in
"-D \$2 -A trust -N") mkdir -p "\$2" && exec cp -a "$work/initdb/data/." "\$2" ;;
*) exec "$bindir/initdb" "\$@" ;;
esac
END
    chmod 755 initdb/initdb
}

run_tap() {
    copy_initdb
    # PostgreSQL 15's test modules read TESTDIR. Later versions read TESTLOGDIR and TESTDATADIR.
    # shellcheck disable=SC2086  # PROVE_FLAGS holds several words
    if as_user env PATH="$work/initdb:$bindir:$PATH" PERL5LIB="$testdir/perl:$work/test/t/lib" \
        PG_REGRESS="$pg_regress" TESTDIR="$work" TESTDATADIR="$work/tmp_check" \
        TESTLOGDIR="$work/tmp_check/log" prove ${PROVE_FLAGS--j8 --timer} "$@" 2>&1 | tee tap.out; then
        keep_times
        report "TAP: $(sed -n 's/^Files=\([0-9]*\), Tests=\([0-9]*\),.*/\2 in \1 files passed/p' tap.out)"
        return
    fi
    report "TAP: FAILED"
    touch failed
    show_tap_logs
    # Prints the failures again at the end, because a truncated output may show only its end.
    grep -hE -A 8 '^([^ ]* )?not ok |Bail out!' tmp_check/log/regress_log_* | cut -c -300 |
        head -n 60 || true
    sed -n '/^Test Summary Report/,$p' tap.out
}

# Keeps the tests' durations for by_time. Names the tests that exceed their budget of 60 seconds.
keep_times() {
    mkdir -p "${tap_times%/*}"
    touch "$tap_times"
    sed -nE 's/.*(test\/t\/\w+\.pl) \.+ ok +([0-9]+) ms.*/\2 \1/p' tap.out >new_times
    awk '$1 > 60000 { printf "tempcheck: %s took %d s of its 60\n", $2, $1 / 1000 }' new_times
    cat "$tap_times" new_times | awk '{ time[$2] = $1 } END { for (name in time) print time[name], name }' >all_times
    cp all_times "$tap_times"
}

# Fails if the tests have left processes, or files in the temporary directory. Only names files in
# /dev/shm, because other programs of this user may have made them.
check_remains() {
    local process
    find /dev/shm -type f -user "${user:-$(id -un)}" 2>/dev/null | grep -vxFf shm_before >left_shm || true
    [ ! -s left_shm ] || report "$(wc -l <left_shm) new files in /dev/shm"
    for _ in {1..10}; do # a process may still be about to end
        {
            find tmp -mindepth 1
            for process in /proc/[0-9]*; do
                [[ $(readlink "$process/cwd") != "$work"* || ${process#/proc/} = "$$" ]] || tr '\0' ' ' <"$process/cmdline" | cut -c -200
            done
        } >left 2>/dev/null || true
        [ -s left ] || return 0
        sleep 1
    done
    report "tests have LEFT $(wc -l <left) files or processes"
    touch failed
    head -n 20 left
    # The tests' logs name their socket directories, and what could not be removed.
    sed -n 's/^tmp\/\([^/]*\).*/\1/p' left | sort -u | grep -rFf - tmp_check/log | cut -c -300 | head -n 20 || true
}

# Prints the end of each failed test's log, and the errors in its servers' logs.
show_tap_logs() {
    local test log
    {
        sed -n 's/^test\/t\/\([^ ]*\)\.pl .*(Wstat.*/\1/p' tap.out
        grep -l 'Bail out!' tmp_check/log/regress_log_* | sed 's/.*regress_log_//' || true
    } | sort -u | while read -r test; do
        for log in tmp_check/log/"regress_log_$test" tmp_check/log/"$test"_*.log; do
            [ -e "$log" ] || continue
            echo "--- $log"
            case $log in
                */regress_log_*) tail -n 40 "$log" ;;
                *)
                    grep -E 'ERROR|FATAL|PANIC|TRAP|DETAIL|HINT' "$log" | tail -n 20 |
                        cut -c -1000 || true
                    ;;
            esac
        done
    done
}

# The regression tests mostly wait for one server, so the TAP tests run at the same time.
if runs tap && runs regress; then
    run_regress >regress.out 2>&1 &
    run_tap "${tap_tests[@]}"
    wait $! || touch failed
    cat regress.out
elif runs tap; then
    run_tap "${tap_tests[@]}"
else
    run_regress
fi

[ -e failed ] || check_remains
echo "tempcheck: $("$PG_CONFIG" --version)${VECTOR_PATH:+, $VECTOR_PATH}: $(paste -sd ';' summary | sed 's/;/; /g')"
if [ -e failed ]; then
    echo "tempcheck: everything is left in $work"
    exit 1
fi
cd /
rm -rf "$work"
