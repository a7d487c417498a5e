#!/bin/bash
# Pastes the README's blocks under "Installation" and "First steps" in order, as a newcomer does. To
# run it on a bare machine: scripts/bare_test.sh SUITE -- scripts/first_steps.sh
#
# Changes the configuration of the packaged server. Needs root.

set -euo pipefail
cd "$(dirname "$(realpath "$0")")/.."
export DEBIAN_FRONTEND=noninteractive

# Runs the README's block at line $1. The shell runs it if $2 is sh, and psql runs it if $2 is sql.
paste() {
    local block
    block=$(sed -n "$(($1 + 1)),/^\`\`\`\$/p" README.md | sed '$d')
    echo "README.md, line $1:"
    sed 's/^/    /' <<<"$block"
    case $2 in
    # Skips the block that starts psql, because this script sends the next blocks to psql itself.
    sh) [[ $block == *"-c psql" ]] || bash -euo pipefail -c "$block" ;;
    sql) su postgres -c 'psql -v ON_ERROR_STOP=1' <<<"$block" ;;
    esac
}

grep -nE '^(## |```)' README.md | while IFS=: read -r line text; do
    case $text in
    '## Installation' | '## First steps') following=yes ;;
    '## '*) following= ;;
    '```sh' | '```sql') [ -z "${following-}" ] || paste "$line" "${text#'```'}" </dev/null ;;
    esac
done
