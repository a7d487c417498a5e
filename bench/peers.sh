#!/bin/bash
# Runs generators of npm packages under a clock that steps (bench/peers.mjs), and this extension
# under the same steps (test/t/114_peers.pl). Writes bench/results/peers.csv and the table of
# docs/snowflake.md. Needs Node.js, npm and the installed extension. Takes 15 minutes.
#
#   bench/peers.sh
#   bench/peers.sh table [DOCUMENT]    only writes the table

set -euo pipefail
bench=$(realpath "$(dirname "$0")")
results=$bench/results/peers.csv
document=$bench/../docs/snowflake.md

run() {
    local package case cells ours
    directory=$(mktemp -d)
    trap 'rm -r "$directory"' EXIT
    cp "$bench/peers.mjs" "$directory"
    cd "$directory"
    mapfile -t packages < <(node peers.mjs)
    npm install --silent --no-audit --no-fund --ignore-scripts "${packages[@]}"
    ours=$directory/ours
    touch "$ours"
    chmod 755 "$directory"
    chmod 666 "$ours"
    RANDFLAKE_PEERS=$ours "$bench/../scripts/tempcheck.sh" tap 114_peers >&2
    echo 'generator;5 ms back;2 s back;1 h back;over the limit;two processes, of 1,000'
    cat "$ours"
    for package in "${packages[@]}"; do
        cells=$package
        for case in 5ms 2s 1h full; do
            cells+=";$(node peers.mjs "$package" $case)"
        done
        node peers.mjs "$package" two >one
        node peers.mjs "$package" two >other
        echo "$cells;$(comm -12 <(sort one) <(sort other) | wc -l)"
    done
}

if [ "${1-}" = table ]; then
    document=${2:-$document}
else
    run >"$results.new"
    mv "$results.new" "$results"
fi
awk -F';' -v results="$results" '
    /^<!-- end -->$/ { inside = 0 }
    !inside
    /^<!-- peers -->$/ {
        for (inside = 1; (getline line <results) > 0; n++) {
            gsub(/;/, " | ", line)
            print "| " line " |" (n ? "" : "\n|---|---|---|---|---|---|")
        }
    }' "$document" >"$document.new"
cat "$document.new" >"$document"
rm "$document.new"
