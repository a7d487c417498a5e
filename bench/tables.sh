#!/bin/bash
# Writes the tables of docs/performance.md anew from a run's results: each stands between
# "<!-- table SUITE: METRIC -->" and "<!-- end -->".
#
#   bench/tables.sh [RESULTS [DOCUMENT]]

set -euo pipefail
bench=$(realpath "$(dirname "$0")")
results=${1:-$bench/results}
document=${2:-$bench/../docs/performance.md}

awk -F, -v document="$document" '
# Whether a table has ratios; not all have.
function has_ratios(group,    i) {
    for (i = 1; i <= rows[group]; i++)
        if (ratio[group, i] != "")
            return 1
    return 0
}
function print_table(group,    i, with_ratio) {
    if (!rows[group]) {
        print "bench/tables.sh: no results for \"" group "\"" >"/dev/stderr"
        exit failed = 1
    }
    with_ratio = has_ratios(group)
    printf "| %s | %s | quartiles |%s\n", metric[group], unit[group], with_ratio ? " ratio to " base[group] " |" : ""
    print "|---|---|---|" (with_ratio ? "---|" : "")
    for (i = 1; i <= rows[group]; i++)
        printf "| %s | %s | %s |%s\n", item[group, i], median[group, i], quartiles[group, i],
               with_ratio ? " " ratio[group, i] " |" : ""
}
NR > 1 {
    group = $1 ": " $3
    i = ++rows[group]
    metric[group] = $3
    unit[group] = $4
    item[group, i] = $2 ~ /\(\)/ ? "`" $2 "`" : $2
    median[group, i] = $6
    quartiles[group, i] = $5 > 1 ? $7 " – " $8 : "one sample"
    ratio[group, i] = $10
    if ($9 != "")
        base[group] = $9 ~ /;/ ? "one backend" : $9
}
END {
    while ((getline line <document) > 0) {
        if (line == "<!-- end -->")
            inside = 0
        if (!inside)
            print line
        if (line ~ /^<!-- table /) {
            group = substr(line, 12, length(line) - 15)
            print_table(group)
            inside = 1
        }
    }
    exit failed
}' "$results/results.csv" >"$document.new"
mv "$document.new" "$document"
