#!/bin/bash
# Writes tables from results into a page, from "<!-- table SUITE: METRIC -->" to an empty line.
# Metrics separated by " | " become columns. Write "SUITE: METRIC" for a metric of another suite.
# " @ CASE" at the end of a table's line appends ": CASE" to each metric. " AS HEADING" after a
# metric replaces its heading. The rows are the first suite's items.
#
#   bench/tables.sh [RESULTS [DOCUMENT]]

set -euo pipefail
bench=$(realpath "$(dirname "$0")")
results=${1:-$bench/results}
document=${2:-$bench/../docs/performance.md}

awk -F, -v document="$document" '
function print_table(spec,    suite, at, case_name, n, parts, as, i, j, column, heading, same_unit, same_base, corner, line, item) {
    suite = substr(spec, 1, index(spec, ":") - 1)
    if (at = index(spec, " @ ")) {
        case_name = substr(spec, at + 3)
        spec = substr(spec, 1, at - 1)
    }
    n = split(spec, parts, " [|] ")
    same_unit = same_base = 1
    for (j = 1; j <= n; j++) {
        split(parts[j], as, " AS ")
        column[j] = as[1] (at ? ": " case_name : "")
        if (column[j] in unit)
            sub(/^[a-z0-9]+: /, "", as[1])
        else
            column[j] = suite ": " column[j]
        if (!(column[j] in unit)) {
            print "bench/tables.sh: no results for \"" column[j] "\"" >"/dev/stderr"
            exit 1
        }
        heading[j] = as[2] ? as[2] : as[1]
        same_unit = same_unit && unit[column[j]] == unit[column[1]]
        same_base = same_base && base[column[j]] == base[column[1]]
    }
    corner = case_name (case_name && same_unit ? ", " : "") (same_unit ? unit[column[1]] : "")
    line = "| " corner (corner && same_base ? " " : "") (same_base ? "(ratio to " base[column[1]] ")" : "") " |"
    for (j = 1; j <= n; j++)
        line = line " " heading[j] (same_unit ? "" : ", " unit[column[j]]) \
            (same_base ? "" : " (ratio to " base[column[j]] ")") " |"
    print line
    gsub(/[^|]+/, "---", line)
    print line
    for (i = 1; i <= items[suite]; i++) {
        item = item_of[suite, i]
        line = ""
        for (j = 1; j <= n; j++)
            line = line " " ((column[j], item) in cell ? cell[column[j], item] : "–") " |"
        if (line ~ /[0-9]/)
            print "| " item " |" line
    }
}
NR > 1 {
    item_of[$1, ++items[$1]] = item = $2 ~ /\(\)/ ? "`" $2 "`" : $2
    for (i = 3; i < NF; i += 10) {
        group = $1 ": " $i
        unit[group] = $(i + 1)
        base[group] = $(i + 6) ~ /; / ? "one backend" : $(i + 6) ~ /\(\)/ ? "`" $(i + 6) "`" : $(i + 6)
        # Prints "≈ 1" instead of the ratio if 1 lies between the quartiles of the ratio.
        cell[group, item] = $(i + 3) ($(i + 7) == "" ? "" : $(i + 8) <= 1 && $(i + 9) >= 1 ? " (≈ 1)" : \
            sprintf($(i + 7) < 10 ? " (%.2f)" : " (%.1f)", $(i + 7)))
    }
}
END {
    while ((getline line <document) > 0) {
        if (line == "")
            inside = 0
        if (!inside)
            print line
        if (line ~ /^<!-- table /) {
            print_table(substr(line, 12, length(line) - 15))
            inside = 1
        }
    }
}' "$results/results.csv" >"$document.new"
mv "$document.new" "$document"
