#!/bin/bash
# Runs tests in stages, and installs the Debian packages that the stages need.
#
#   scripts/test.sh              the gate for every change
#   scripts/test.sh all          the gate, and long stages
#   scripts/test.sh release      all of that, and stages for a release; takes hours
#   scripts/test.sh unit         only the stages whose name contains "unit"
#
# Each line with "stage", "beside", "long" or "last" below names a stage and its command. A stage's
# output goes to build/test/, and to the terminal if the stage fails. PG_CONFIG chooses the
# PostgreSQL installation. The default is the newest one on the machine.

# shellcheck disable=SC2016,SC2317 # sed's $; stages call the functions
set -uo pipefail
cd "$(dirname "$(realpath "$0")")/.." || exit
. scripts/lib.sh

# Runs a stage only if the arguments contain "all", "release" or the stage's name.
long() { [ -z "$asked" ] || stage "$@"; }

# Runs a stage only if the arguments contain "release" or the stage's name.
last() { [ "$asked" = all ] || long "$@"; }

packages() {
    install_packages make g++ clang libclang-rt-dev clang-format clang-tidy cppcheck shellcheck \
        libgtest-dev nlohmann-json3-dev libipc-run-perl libdbd-pg-perl procps openssl valgrind
    find_postgresql
}

clean_tree() {
    git status --porcelain
    [ -z "$(git status --porcelain)" ]
}

# Checks that the release's tag does not exist, or is on this commit.
free_tag() {
    local version
    version=$(sed -n 's/^    "version": *"\(.*\)",/\1/p' META.json)
    [ "$(git rev-parse -q --verify "v$version^{commit}" || git rev-parse HEAD)" = "$(git rev-parse HEAD)" ]
}

shell_scripts() {
    shellcheck -x -S warning scripts/*.sh scripts/apps/*.sh managed/*.sh test/unit/run.sh bench/*.sh bench/suites/*.sh bench/interchange/*.sh .ci/run debian/tests/installcheck
}

# Checks that the tables and charts in the pages match bench/results.
benchmarks_published() {
    copy=$(mktemp -d)
    trap 'rm -r "$copy"' EXIT
    cp README.md docs/performance.md "$copy"
    bench/tables.sh bench/results "$copy/README.md"
    bench/tables.sh bench/results "$copy/performance.md"
    bench/plot.sh bench/results "$copy/charts"
    diff README.md "$copy/README.md"
    diff docs/performance.md "$copy/performance.md"
    diff -r docs/charts "$copy/charts"
}

unit_tests() { make -j"$(nproc)" -C test/unit check "$@"; }

# The sanitized and emulated stages skip these tests, which are slow and find nothing new there.
simulations='explorer_test explorer_mutants_test fleet_simulation_test fleet_mutants_test outage_test sequence_server_test'

# Runs 500,000 random schedules of the simulated fleet, and records the seed of one that fails. The
# explorer's cases have their full width.
unit_tests_many_schedules() {
    RANDFLAKE_FIRST_SEED=$(od -An -v -N6 -tu8 /dev/urandom | tr -d ' ') RANDFLAKE_SCHEDULES=56000 \
        RANDFLAKE_RECORD=1 unit_tests FILTER='FleetSimulation.*:*ExplorerCase.*'
}

unit_tests_sanitized() {
    unit_tests SANITIZE=address,undefined FILTER='-Feistel.*' EXCEPT="$simulations"
}

unit_tests_valgrind() {
    unit_tests RUNNER='valgrind -q --error-exitcode=1 --leak-check=full' \
        FILTER='-Concurrency*:Explorer*:FleetSimulation*:Outage*'
}

# Runs unit tests for aarch64, which has other vector registers than x86, and for big-endian s390x.
unit_tests_emulated() {
    install_packages qemu-user g++-{aarch64,s390x}-linux-gnu
    for processor in aarch64 s390x; do
        unit_tests CROSS="$processor" EXCEPT="$simulations"
    done
}

# Runs all tests with PostgreSQL's assertions. This stage builds a copy of the sources. At its end
# it installs the usual library again, without a second build.
server_tests() {
    trap build_and_install EXIT
    rm -rf build/assertions
    copy_source build/assertions
    (cd build/assertions && build_and_install ROOMS=1 PG_CPPFLAGS=-DUSE_ASSERT_CHECKING COPT=-O1)
    # scripts/test_tools.sh has installed the drivers, so a test fails if its driver is missing. If
    # npm reached no registry, tests of Node.js are skipped.
    [ ! -e "$no_registry" ] || export RANDFLAKE_WITHOUT_NPM=1
    EXCEPT=$unchanged RANDFLAKE_DRIVERS=light scripts/tempcheck.sh
}

# Groups of tests, and the files that they test, beside those of `shared`.
declare -A groups=(
    [core]='src/core test/unit test/fuzz'
    [languages]='README.md docs/drivers* docs/staging.md docs/leases-reference.md extension managed test/js test/recipes test/t/*driver* test/t/220*'
    [coordinator]='extension src/core test/unit test/t/23*'
    [sql_editions]='src extension managed migrate docs/m* test/t/4[34]*')
shared='Makefile scripts test/t/lib'

# Sets `tested` to a hash of each group's files and of the tools. Without git, sets nothing.
hash_groups() {
    local group tools
    declare -gA tested=()
    git rev-parse -q --verify HEAD >/dev/null 2>&1 || return 0
    tools=$("$PG_CONFIG" --version; g++ --version; clang++ --version)
    # shellcheck disable=SC2086 # paths
    for group in "${!groups[@]}"; do
        tested[$group]=$({ echo "$tools"; git ls-files -coz --exclude-standard -- $shared ${groups[$group]} |
            xargs -0 sha256sum; } 2>/dev/null | sha256sum)
    done
}

# changed GROUP: returns false if a gate that passed in this checkout tested the same files with the
# same tools. With an argument of this script, returns true.
changed() { [ -n "$asked" ] || [ -z "${tested[$1]-}" ] || [ "${tested[$1]}" != "$(cat "$logs/tested_$1" 2>/dev/null)" ]; }

# Keeps the hashes for the next run, if this one left nothing out but what was tested before.
keep_hashes() {
    local group
    [ -z "$only" ] && [ $failed -eq 0 ] || return 0
    for group in "${!tested[@]}"; do
        [ "$group" = languages ] && [ -e "$no_registry" ] || echo "${tested[$group]}" >"$logs/tested_$group"
    done
}

# Prints the server tests whose subjects have not changed.
unchanged_server_tests() {
    changed languages || echo 220_lease_js 320_drivers
    changed coordinator || echo 230_lease_model 232_lease_pool
    changed sql_editions || (cd test/t && basename -s .pl -a 4[34]*.pl)
}

no_registry=build/no_npm_registry
other_languages() {
    scripts/test_tools.sh
    [ ! -e "$no_registry" ] || not_run "Node.js programs of test/t/320_drivers.pl" "$(<"$no_registry")"
    [ ! -e "$no_registry" ] || not_run "Node.js program of test/t/220_lease_js.pl" "$(<"$no_registry")"
}

built_drivers() {
    scripts/test_tools.sh built
    RANDFLAKE_DRIVERS=built scripts/tempcheck.sh tap 324_drivers_built
}

server_tests_of_many_rounds() {
    RANDFLAKE_ROUNDS=15 scripts/tempcheck.sh tap 100_crash 142_handover 207_lease_outlives \
        230_lease_model 232_lease_pool 240_lease_handover 346_hostile 432_managed_numbers
}

coverage() {
    trap build_and_install EXIT
    install_packages gcovr
    scripts/coverage.sh
}

# Tests the library under AddressSanitizer and UndefinedBehaviorSanitizer. The server is built
# without the sanitizers, so they check only the library (see test/asan_longjmp.c). A report ends
# the process. The stage also searches the logs, because a process may end after its test.
sanitized() {
    local options flags='-fsanitize=address,undefined -fno-sanitize-recover=all'
    reports=$(mktemp -d)
    chmod 777 "$reports"
    gcc -Wall -Wextra -Werror -O1 -shared -fPIC -o build/asan_longjmp.so test/asan_longjmp.c
    install -m 755 build/asan_longjmp.so "$reports/longjmp.so"
    trap 'cat "$reports"/report* 2>/dev/null || true; rm -r "$reports"; build_and_install' EXIT
    build_and_install COPT="$flags -fno-omit-frame-pointer -g"
    options=abort_on_error=1:print_stacktrace=1:log_path=$reports/report
    (
        export ASAN_OPTIONS=verify_asan_link_order=0:detect_leaks=0:$options UBSAN_OPTIONS=$options
        export LD_PRELOAD=$reports/longjmp.so
        "$@"
    )
    [ -z "$(find "$reports" -name 'report*')" ]
}

server_tests_of_sanitizers() {
    scripts/tempcheck.sh regress
    scripts/tempcheck.sh tap 217_lease_hostile
}

# Tests the build that users get, with each vector path.
vector_paths() {
    local path
    for path in auto avx2 baseline; do
        if [ "$path" = avx2 ] && ! grep -qw avx2 /proc/cpuinfo; then
            echo "avx2: not supported by this processor"
            continue
        fi
        VECTOR_PATH=$path scripts/tempcheck.sh regress
        VECTOR_PATH=$path scripts/tempcheck.sh tap 055_wait 350_type
    done
}

# Counts the instructions of each function. They may exceed the published count by 3 %.
instructions_per_call() {
    install_packages valgrind
    bench/run.sh --quick instructions
    awk -F, '$1 == "instructions" { FNR == NR ? was[$2] = $6 : now[$2] = $6 }
        END { for (name in now) if (name in was) { n++; if (now[name] > 1.03 * was[name]) {
                print name ": " now[name] " instructions instead of " was[name]; bad = 1 } }
            exit bad || !n }' bench/results/results.csv bench/results/partial/results.csv
}

# Starts the quickstart, and a second time as a new user may do, and stops it.
quickstart() {
    trap 'scripts/quickstart.sh stop' EXIT # whatever happens
    scripts/quickstart.sh
    ! changed languages || scripts/quickstart.sh
    scripts/quickstart.sh stop
    [ ! -e quickstart ]
}

# Runs the quickstart in a checkout that the server's user cannot read.
quickstart_elsewhere() {
    closed=$(mktemp -d)
    trap '"$closed"/scripts/quickstart.sh stop; rm -r "$closed"' EXIT
    copy_source "$closed"
    "$closed"/scripts/quickstart.sh
}

# Makes the archives of a release. Checks that PGXN and the checkout install the same files.
archives() {
    local archives release
    install_packages git unzip pgxnclient
    work=$(mktemp -d)
    trap 'rm -rf "$work"' EXIT
    make dist
    archives=(build/randflake-*.tar.gz build/randflake-*.zip)
    sha256sum "${archives[@]}" | tee "$work/sums"
    make -s dist
    sha256sum -c "$work/sums"

    tar -x -C "$work" -f "${archives[0]}"
    unzip -q -d "$work/zip" "${archives[1]}"
    release=$(basename "${archives[1]}" .zip)
    diff -r "$work/$release" "$work/zip/$release"
    "$work/$release/scripts/check_versions.sh"
    build all
    build install DESTDIR="$work/checkout"
    DESTDIR=$work/archive pgxn install --yes --nosudo --pg_config "$PG_CONFIG" "$PWD/${archives[1]}"
    diff <(cd "$work/checkout" && find . -type f | sort) <(cd "$work/archive" && find . -type f | sort)
}

asked=${1:-}
if [[ ! $asked =~ ^(|all|release)$ ]]; then
    mapfile -t stages < <(sed -nE 's/^[^#]*(stage|beside|long|last|\$with_clang) "([^"$]*)".*/\2/p' scripts/test.sh)
    [[ $(printf '%s\n' "${stages[@]}") = *"$asked"* ]] || none_such stage "$asked" "${stages[@]}"
fi
headline "randflake: ${asked:-what every change must pass}"
rm -f $logs/not_run
stage "packages" packages
[ $failed -eq 0 ] || finish
find_postgresql
[[ $asked =~ ^(all|release)$ ]] || only=$asked

hash_groups
last "clean tree" clean_tree
last "release: versions, dates, META.json" scripts/check_versions.sh --release
last "release: tag is free" free_tag
# The results depend on the versions of these tools, so the stages need Debian 12's versions.
if clang-format --version | grep -q 'version 14\.'; then
    stage "format" make format-check
    with_lint=1
    long "lint, static analysis" make lint
    with_clang=long # its warnings were reviewed
else
    not_run "format, lint" "That takes clang-format and clang-tidy 14, of Debian 12."
    with_clang=stage with_lint=
fi
stage "shell scripts" shell_scripts
stage "versions" scripts/check_versions.sh
stage "tables and charts of benchmarks" benchmarks_published
$with_clang "build with clang++, -Werror" build CXX=clang++ COPT=-O0
stage "build with g++, -Werror" build
stage "install" build_and_install
stage "quickstart" quickstart
if changed languages; then
    stage "server tests: other languages" other_languages
else
    not_run "second quickstart" "What it tests has not changed since it passed."
fi
unchanged=$(unchanged_server_tests | paste -sd ' ')
[ -z "$unchanged" ] || not_run "server tests $unchanged" "What they test has not changed since they passed."
# Some server tests wait, so other stages run beside them.
beside "server tests" server_tests
[ -z "$with_lint" ] || stage "lint" make lint TIDY_CHECKS=-clang-analyzer-* ROOMS=1
if changed core; then
    stage "unit tests" unit_tests
    stage "unit tests, threads" unit_tests SANITIZE=thread TESTS=concurrency_test
    stage "unit tests, sanitizers" unit_tests_sanitized
    stage "fuzz" make -j2 fuzz FUZZ_SECONDS=5
else
    not_run "unit tests, fuzz" "What they test has not changed since they passed."
fi
meet
long "server tests: drivers that are built" built_drivers
long "server tests, many rounds" server_tests_of_many_rounds
long "server tests, coverage" coverage
long "server tests, vector paths" vector_paths
long "server tests, sanitizers" sanitized server_tests_of_sanitizers
long "instructions per call" instructions_per_call
long "unit tests, 500,000 schedules" unit_tests_many_schedules
long "unit tests, valgrind" unit_tests_valgrind
long "unit tests, aarch64 and s390x" unit_tests_emulated
long "quickstart, closed checkout" quickstart_elsewhere
long "other PostgreSQL, pg_upgrade" as_root scripts/matrix.sh -s 17 18
long "Debian package" as_root scripts/package_test.sh 15
long "RPM package" scripts/rpm_test.sh
last "archives" archives
last "both commands on bare Debian" as_root scripts/bare_test.sh
last "snapshots of file systems" as_root scripts/snapshot_test.sh
last "whole matrix" as_root scripts/matrix.sh
last "packages of all majors" as_root scripts/package_test.sh
last "tree is still clean" clean_tree
keep_hashes
finish
