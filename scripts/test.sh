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

only=
logs=build/test
passed=0
failed=0

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
        libgtest-dev nlohmann-json3-dev libipc-run-perl libfaketime procps openssl valgrind
    find_postgresql
}

shell_scripts() {
    shellcheck -x -S warning scripts/*.sh .ci/run
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

assertions() {
    build_and_install PG_CPPFLAGS=-DUSE_ASSERT_CHECKING
    VECTOR_PATH=plain make tempcheck
}

# The other stages run everything under the widest path and, with assertions on, under "plain".
vector_paths() {
    local path
    for path in avx2 baseline; do
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

finish() {
    printf '\n%s passed, %s failed\n' $passed $failed
    [ $failed -eq 0 ]
    exit
}

headline "randflake: every check"
stage "packages" packages
[ $failed -eq 0 ] || finish
find_postgresql
only=${1:-}

# Versions of these tools disagree; the code follows those of Debian 12.
if clang-format --version | grep -q 'version 14\.'; then
    stage "format" make format-check
    stage "lint" make lint
else
    echo "format, lint: not checked, which takes version 14 of clang-format and clang-tidy"
fi
stage "shell scripts" shell_scripts
stage "build with clang++, -Werror" build CXX=clang++
stage "build with g++, -Werror" build
stage "symbols" make symbols
stage "unit tests" make unit
stage "install" build_and_install
stage "server tests: other languages" scripts/test_tools.sh
stage "server tests" make tempcheck
stage "server tests, other vector paths" vector_paths
stage "server tests, assertions on" assertions
stage "quickstart, twice" quickstart
stage "quickstart, closed checkout" quickstart_elsewhere
stage "fuzz" make -j2 fuzz FUZZ_SECONDS=20
stage "unit tests, threads" unit_tests SANITIZE=thread TESTS=concurrency_test
stage "unit tests, sanitizers" unit_tests_sanitized
stage "unit tests, valgrind" unit_tests_valgrind

if [ $((passed + failed)) -eq 1 ]; then # the packages alone
    echo "no stage has \"$only\" in its name"
    failed=1
fi
finish
