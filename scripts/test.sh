#!/bin/bash
# Every check there is, each a stage; installs the Debian packages it needs.
#
#   scripts/test.sh              all stages
#   scripts/test.sh unit         only the stages whose name contains "unit"
#
# A stage is one line at the end of this file: a name and the command that does it. Its output goes
# to a file in build/test/ and is shown if the stage fails. PG_CONFIG chooses the PostgreSQL;
# default is the newest one installed.

set -uo pipefail
cd "$(dirname "$(realpath "$0")")/.." || exit
. scripts/lib.sh
. scripts/matrix_lib.sh
. scripts/roots.sh

only=
logs=build/test
passed=0
failed=0
declare -A status_of seconds_of # of each stage that ran

# stage NAME COMMAND...
stage() {
    local name=$1 log=$logs/${1//[^a-z0-9+]/-}.log status began=$SECONDS
    shift
    [[ $name = *"$only"* ]] || return 0
    printf '%s%-36s%s' "$bold" "$name" "$plain"
    mkdir -p $logs # a stage may have removed it
    # Not as a condition, where `set -e` would be ignored.
    (
        set -e
        "$@"
    ) >"$log" 2>&1
    status=$?
    status_of[$name]=$status
    seconds_of[$name]=$((SECONDS - began))
    if [ $status -eq 0 ]; then
        passed=$((passed + 1))
        printf '%spassed%s %4d s\n' "$green" "$plain" $((SECONDS - began))
    else
        failed=$((failed + 1))
        printf '%sFAILED%s %4d s, exit status %d; the end of %s:\n' "$red" "$plain" \
            $((SECONDS - began)) $status "$log"
        tail -n 200 "$log" | sed 's/^/    /'
    fi
}

packages() {
    install_packages make g++ clang clang-format clang-tidy cppcheck shellcheck \
        libgtest-dev nlohmann-json3-dev libipc-run-perl procps openssl valgrind
    find_postgresql
}

shell_scripts() {
    shellcheck -x -S warning scripts/*.sh .ci/run debian/tests/installcheck
}

unit_tests() {
    make -j"$(nproc)" -C test/unit check "$@"
}

# Without what takes long and tells a sanitizer or valgrind nothing new: simulations.
unit_tests_sanitized() {
    unit_tests SANITIZE=address,undefined FILTER='-*TenMillion*' EXCEPT="explorer_test \
        explorer_broken_test lease_simulation_test lease_simulation_broken_test"
}

unit_tests_valgrind() {
    unit_tests RUNNER='valgrind -q --error-exitcode=1 --leak-check=full' \
        FILTER='-*TenMillion*:Concurrency*:Explorer*:LeaseSimulation*'
}

# All of them, with PostgreSQL's assertions on, and counting which lines they reach.
server_tests() {
    trap build_and_install EXIT
    scripts/coverage.sh
}

# The library under the address and undefined sanitizers in a server without them. Their run-time
# libraries come with it, later than they like, so they watch over what the library does by itself,
# and not over what PostgreSQL does for it; test/asan_longjmp.c makes up for the rest. A report ends
# the process, and is looked for besides: some end when no test looks any more.
server_tests_sanitized() {
    local options flags='-fsanitize=address,undefined -fno-sanitize-recover=all'
    reports=$(mktemp -d)
    chmod 777 "$reports"
    gcc -Wall -Wextra -Werror -O1 -shared -fPIC -o build/asan_longjmp.so test/asan_longjmp.c
    install -m 755 build/asan_longjmp.so "$reports/longjmp.so"
    trap 'cat "$reports"/report* 2>/dev/null || true; rm -r "$reports"; build_and_install' EXIT
    build_and_install COPT="$flags -fno-omit-frame-pointer -g"
    options=abort_on_error=1:print_stacktrace=1:log_path=$reports/report
    ASAN_OPTIONS=verify_asan_link_order=0:detect_leaks=0:$options UBSAN_OPTIONS=$options \
        LD_PRELOAD=$reports/longjmp.so scripts/tempcheck.sh regress
    [ -z "$(find "$reports" -name 'report*')" ]
}

# The build that users get, under each path.
vector_paths() {
    local path
    for path in auto avx2 baseline; do
        if [ $path = avx2 ] && ! grep -qw avx2 /proc/cpuinfo; then
            echo "avx2: not supported by this processor"
            continue
        fi
        VECTOR_PATH=$path scripts/tempcheck.sh regress
        VECTOR_PATH=$path scripts/tempcheck.sh isolation
        VECTOR_PATH=$path scripts/tempcheck.sh tap 040_restart 050_exhaustion 070_parallel
    done
}

# As a newcomer does it, and once more on top of the server that the first run left.
quickstart() {
    trap 'scripts/quickstart.sh stop' EXIT # whatever happens
    scripts/quickstart.sh
    scripts/quickstart.sh
    scripts/quickstart.sh stop
    [ ! -e quickstart ]
}

# The same in a checkout that root's server user cannot enter, so that its folder is elsewhere.
quickstart_elsewhere() {
    closed=$(mktemp -d)
    trap '"$closed"/scripts/quickstart.sh stop; rm -r "$closed"' EXIT
    tar -c --exclude=./quickstart --exclude=./.git --exclude=node_modules . |
        tar -x --no-overwrite-dir -C "$closed"
    "$closed"/scripts/quickstart.sh
    [ "$(id -u)" -ne 0 ] || [ -L "$closed"/quickstart ]
}

# cell COLUMN STAGE [TEXT]: a cell of the matrix, from a stage above and what it says.
cell() {
    if [ "${status_of[$2]-}" = 0 ]; then
        echo "$1 ${3:-FAIL it says no number}"
    else
        echo "$1 FAIL see the stage \"$2\""
    fi
}

# tempcheck_count LABEL: how many tests of a kind the stage "server tests" says have passed.
tempcheck_count() {
    sed -n "s/^tempcheck: .*$1: \([0-9]*\) .*passed.*/\1/p" $logs/server-tests.log
}

# The row of the matrix for the PostgreSQL that the stages have tested.
own_row() {
    local row=$matrix/$own_major stage seconds=0
    local stages=('build with g++, -Werror' 'build with clang++, -Werror' 'unit tests' 'server tests')
    rm -rf "$row"
    mkdir -p "$row"
    {
        echo "version $("$PG_CONFIG" --version)"
        cell gcc "${stages[0]}" ok
        cell clang "${stages[1]}" ok
        cell unit "${stages[2]}" "$(count_passed $logs/unit-tests.log)"
        cell regress "${stages[3]}" "$(tempcheck_count regress)"
        cell isolation "${stages[3]}" "$(tempcheck_count isolation)"
        cell tap "${stages[3]}" "$(tempcheck_count TAP)"
        for stage in "${stages[@]}"; do
            seconds=$((seconds + ${seconds_of[$stage]}))
        done
        echo "seconds $seconds"
    } >"$row/cells"
}

finish() {
    if [ -n "${status_of[matrix]-}" ] && [ -z "$only" ]; then
        echo
        own_row
        scripts/matrix_table.sh "$own_major" "${other_majors[@]}" || failed=$((failed ? failed : 1))
    fi
    printf '\n%s passed, %s failed\n' $passed $failed
    [ $failed -eq 0 ]
    exit
}

headline "randflake: every check"
stage "packages" packages
[ $failed -eq 0 ] || finish
find_postgresql
only=${1:-}
own_major=$("$PG_CONFIG" --version | sed 's/[^0-9]*\([0-9]*\).*/\1/')
# scripts/matrix.sh knows more majors; these are the ones that are released.
mapfile -t other_majors < <(printf '%s\n' 17 18 | grep -vx "$own_major")

# Versions of these tools disagree; the code follows those of Debian 12.
if clang-format --version | grep -q 'version 14\.'; then
    stage "format" make format-check
    stage "lint" make lint
else
    echo "format, lint: not checked, which takes version 14 of clang-format and clang-tidy"
fi
stage "shell scripts" shell_scripts
stage "versions" scripts/check_versions.pl
stage "build with clang++, -Werror" build CXX=clang++
stage "build with g++, -Werror" build
stage "symbols" make symbols
stage "unit tests" make unit
stage "install" build_and_install
stage "server tests: other languages" scripts/test_tools.sh
stage "server tests" server_tests
stage "server tests, vector paths" vector_paths
stage "matrix" as_root scripts/matrix.sh -s "${other_majors[@]}"
stage "pg_upgrade" as_root scripts/pg_upgrade_test.sh 15 18
stage "Debian package" as_root scripts/package_test.sh
stage "archive of a release" scripts/dist_test.sh
stage "quickstart, twice" quickstart
stage "quickstart, closed checkout" quickstart_elsewhere
stage "fuzz" make -j2 fuzz FUZZ_SECONDS=20
stage "unit tests, threads" unit_tests SANITIZE=thread TESTS=concurrency_test
stage "unit tests, sanitizers" unit_tests_sanitized
stage "unit tests, valgrind" unit_tests_valgrind
stage "unit tests, aarch64 and s390x" scripts/cross_unit_test.sh
stage "server tests, sanitizers" server_tests_sanitized
stage "coverage" scripts/coverage.sh print
[[ coverage != *"$only"* ]] || cat build/coverage/report

if [ $((passed + failed)) -eq 1 ]; then # the packages alone
    echo "no stage has \"$only\" in its name"
    failed=1
fi
finish
