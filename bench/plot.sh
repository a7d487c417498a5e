#!/bin/bash
# Draws the charts of the documents from a run's results.
#
#   bench/plot.sh [RESULTS [OUTPUT]]

set -euo pipefail
bench=$(realpath "$(dirname "$0")")
results=${1:-$bench/results}
charts=${2:-$bench/../docs/charts}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$charts"

# bars NAME TITLE COLUMNS [SUITE METRIC HEADING FORMAT]...
bars() {
    local name=$1 panel=0 variables=("title=$2" "columns=$3")
    shift 3
    while [ $# -gt 0 ]; do
        panel=$((panel + 1))
        awk -F, -v suite="$1" -v metric="$2" -v number="$4" '$1 == suite && $3 == metric {
            ratio = $9 == $2 ? "" : sprintf($10 < 10 ? "  (%.2f×)" : "  (%.1f×)", $10)
            printf "%s,%s,\"" number "%s\"\n", $2, $6, $6, ratio }' \
            "$results/results.csv" >"$work/$name.$panel"
        variables+=("data_$panel=$work/$name.$panel" "heading_$panel=$3")
        shift 4
    done
    draw bars "$name" "panels=$panel" "${variables[@]}"
}

# draw SCRIPT NAME [VARIABLE=VALUE]...
draw() {
    local script=$1 name=$2 variable
    shift 2
    {
        echo "set output '$charts/$name.svg'"
        for variable; do
            echo "${variable%%=*} = '${variable#*=}'"
        done
        echo "load '$bench/plots/style.gp'"
        echo "load '$bench/plots/$script.gp'"
    } | gnuplot
}

# Blocks for lines.gp. Labels that would overlap are moved apart, from the top down.
throughput_lines() {
    awk -F'[,;]' '$1 == "backends" {
        if (!($2 in last))
            order[++n] = $2
        last[$2] = $7
        block[$2] = block[$2] $3 + 0 "," $7 "," $8 "," $9 "@" $2 "\n"
    }
    END {
        for (i = 1; i <= n; i++)
            for (j = i; j > 1 && last[order[j]] > last[order[j - 1]]; j--) {
                swap = order[j]; order[j] = order[j - 1]; order[j - 1] = swap
            }
        for (i = 1; i <= n; i++) {
            at = last[order[i]]
            if (i > 1 && at > above / 1.18)
                at = above / 1.18
            above = at
            gsub("@", "," at ",", block[order[i]])
            printf "%s%s", (i > 1 ? "\n\n" : ""), block[order[i]]
        }
    }' "$results/results.csv"
}

# result ITEM METRIC
result() {
    awk -F, -v item="$1" -v metric="$2" '$2 == item && $3 == metric { print $6 }' "$results/results.csv"
}

uniformity_heading() {
    echo "by $1: χ² = $(result "$1" 'chi-square of 256 buckets') with 255 degrees of freedom, p = $(result "$1" p-value)"
}

bars calls 'One call per row, the executor included' 1 \
    calls time 'nanoseconds per row: SELECT count(f()) FROM generate_series(1, 2000000)' '%.0f ns'
bars set 'Five million identifiers' 1 \
    set time 'nanoseconds per identifier' '%.0f ns'
bars decode 'Looking into two million identifiers of a table' 1 \
    decode time 'nanoseconds per row' '%.0f ns'
bars inserts 'Single-row inserts, pgbench with 8 clients' 1 \
    inserts 'synchronous_commit on' 'rows per second with synchronous_commit = on: more is better' '%.0f' \
    inserts 'synchronous_commit off' 'rows per second with synchronous_commit = off: more is better' '%.0f'
bars keys 'Primary keys of 5 million rows' 2 \
    keys 'insert: 5000000 rows by 1 session' 'seconds, one session' '%.1f s' \
    keys 'insert: 5000000 rows by 8 sessions' 'seconds, eight sessions' '%.1f s' \
    keys 'index size: 5000000 rows by 8 sessions' 'index size' '%.0f MB' \
    keys 'WAL after a checkpoint: 5000000 rows by 8 sessions' 'WAL of 4 % more after a checkpoint' '%.0f MB'
bars copy 'COPY of a million rows' 2 \
    copy 'time: without a key' 'seconds, without a key' '%.2f s' \
    copy 'time: with a primary key' 'seconds, with a primary key' '%.2f s' \
    copy 'WAL: without a key' 'WAL, without a key' '%.0f MB' \
    copy 'WAL: with a primary key' 'WAL, with a primary key' '%.0f MB'
bars joins 'Hash joins and grouping by keys made at 1,000 a second' 2 \
    joins 'hash join: 300000 rows' 'hash join of 300,000 rows, ns per row' '%.0f ns' \
    joins 'hash join: 2000000 rows' 'hash join of 2 million rows, ns per row' '%.0f ns' \
    joins 'grouping: 300000 rows' 'grouping of 300,000 rows, ns per row' '%.0f ns' \
    joins 'grouping: 2000000 rows' 'grouping of 2 million rows, ns per row' '%.0f ns'
bars cipher 'SPARX-64/128 alone' 1 \
    cipher 'processor time' 'nanoseconds per identifier' '%.1f ns'
throughput_lines >"$work/lines"
draw lines backends data="$work/lines" \
    unit='million calls per second' \
    title='Throughput of many backends, the executor included (both axes logarithmic)'
draw histogram uniformity data="$results/uniformity.csv" \
    heading_1="$(uniformity_heading 'top 8 bits')" heading_2="$(uniformity_heading 'low 8 bits')"
