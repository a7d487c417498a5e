#!/bin/bash
# The unit tests for other processors, in QEMU: one with other vector registers, and one with the other
# byte order. Simulations are left out, since they depend on neither.
#
#   scripts/cross_unit_test.sh [PROCESSOR...]    default: aarch64 and s390x

set -euo pipefail
cd "$(dirname "$(realpath "$0")")/.."
. scripts/lib.sh

[ $# -gt 0 ] || set -- aarch64 s390x
compilers=("${@/#/g++-}")
install_packages make libgtest-dev nlohmann-json3-dev qemu-user "${compilers[@]/%/-linux-gnu}"
for processor; do
    make -s -j"$(nproc)" -C test/unit check CROSS="$processor" FILTER='-*TenMillion*' \
        EXCEPT='explorer_test explorer_broken_test lease_simulation_test lease_simulation_broken_test'
done
