#!/bin/bash
# Runs generators of npm packages under a clock that steps (bench/peers.mjs), and this extension
# under the same steps (test/t/114_peers.pl). Writes the table of docs/snowflake.md. Needs Node.js,
# npm and the installed extension. Takes 15 minutes.

set -euo pipefail
cd "$(dirname "$(realpath "$0")")/.."
. scripts/lib.sh
page=$PWD/docs/snowflake.md directory=$(mktemp -d)
trap 'rm -r "$directory"' EXIT
touch "$directory/ours"
chmod 755 "$directory"
chmod 666 "$directory/ours"
RANDFLAKE_PEERS=$directory/ours scripts/tempcheck.sh tap 114_peers >&2
cp bench/peers.mjs "$directory"
cd "$directory"
mapfile -t packages < <(node peers.mjs)
npm install --silent --no-audit --no-fund --ignore-scripts "${packages[@]}"
{
    echo '| generator | 5 ms back | 2 s back | 1 h back | over the limit | two processes, of 1,000 |'
    echo '|---|---|---|---|---|---|'
    cat ours
    for package in "${packages[@]}"; do
        line="| $package |"
        for case in 5ms 2s 1h full; do line+=" $(node peers.mjs "$package" $case) |"; done
        node peers.mjs "$package" two >one
        node peers.mjs "$package" two >other
        echo "$line $(comm -12 <(sort one) <(sort other) | wc -l) |"
    done
} >table
fill_table "$page" peers <table
