#!/bin/bash
# Writes tables from results into a page, from "<!-- table SUITE: METRIC -->" to an empty line.
# Metrics separated by " | " become columns. Write "SUITE: METRIC" for a metric of another suite. A
# table with several columns has no quartiles. " @ CASE" at the end of a table's line appends ":
# CASE" to each metric. " AS HEADING" after a metric replaces its heading. An item "ITEM; CASE" goes
# to the row ITEM and the column CASE.
#
#   bench/tables.sh [RESULTS [DOCUMENT]]

set -euo pipefail
bench=$(realpath "$(dirname "$0")")
results=${1:-$bench/results}
document=${2:-$bench/../docs/performance.md}

awk -F, -v document="$document" '
function fail(group) {
    print "bench/tables.sh: no results for \"" group "\"" >"/dev/stderr"
    exit failed = 1
}
function add_row(table, item) {
    if (!((table, item) in known)) {
        known[table, item] = 1
        row[table, ++rows[table]] = item
    }
}
# Prints one metric and its quartiles. If there is a base, shows ratios. If the values have
# different units, shows the unit of each value.
function print_metric(group,    i, item, ratio_to, one_unit) {
    ratio_to = base[group] == "" ? "" : " ratio to " base[group] " |"
    one_unit = units[group] == 1
    printf "| %s | %s | quartiles |%s\n", metric[group], one_unit ? unit[group] : "median", ratio_to
    print "|---|---|---|" (ratio_to == "" ? "" : "---|")
    for (i = 1; i <= rows[group]; i++) {
        item = row[group, i]
        printf "| %s | %s | %s |%s\n", item, median[group, item] (one_unit ? "" : " " unit[group, item]),
               quartiles[group, item], ratio_to == "" ? "" : " " ratio[group, item] " |"
    }
}
# Prints columns 1 .. n. `heading` and `column` have an entry for each column.
function print_columns(corner, n,    i, j, item, same, line) {
    same = 1
    for (j = 2; j <= n; j++)
        same = same && base[column[j]] == base[column[1]]
    if (same && base[column[1]] != "")
        corner = corner (corner == "" ? "" : " ") "(ratio to " base[column[1]] ")"
    line = "| " corner " |"
    for (j = 1; j <= n; j++)
        line = line " " heading[j] (same ? "" : " (ratio to " base[column[j]] ")") " |"
    print line
    line = "|---|"
    delete seen
    items = 0
    for (j = 1; j <= n; j++) {
        line = line "---|"
        for (i = 1; i <= rows[column[j]]; i++)
            if (!seen[item = row[column[j], i]]++)
                all[++items] = item
    }
    print line
    for (i = 1; i <= items; i++) {
        line = "| " all[i] " |"
        for (j = 1; j <= n; j++)
            line = line " " cell(column[j], all[i]) " |"
        print line
    }
}
function cell(group, item) {
    if (!((group, item) in median))
        return "–"
    return median[group, item] (ratio[group, item] == "" ? "" : " (" ratio[group, item] ")")
}
function print_table(spec,    n, parts, j, at, as, name, case_name, suite) {
    at = index(spec, " @ ")
    if (at) {
        case_name = substr(spec, at + 3)
        spec = substr(spec, 1, at - 1)
    }
    suite = substr(spec, 1, index(spec, ":") - 1)
    n = split(spec, parts, " [|] ")
    for (j = 1; j <= n; j++) {
        as = index(parts[j], " AS ")
        name = as ? substr(parts[j], as + 4) : ""
        if (as)
            parts[j] = substr(parts[j], 1, as - 1)
        column[j] = parts[j] (at ? ": " case_name : "")
        if (!(column[j] in rows) && !(column[j] in cases))
            column[j] = suite ": " column[j]
        if (!(column[j] in rows) && !(column[j] in cases))
            fail(column[j])
        if (!as)
            name = at ? substr(metric[column[j]], 1, length(metric[column[j]]) - length(case_name) - 2) \
                      : metric[column[j]]
        heading[j] = name ", " unit[column[j]]
    }
    if (column[1] in cases) {
        spec = column[1]
        n = cases[spec]
        for (j = 1; j <= n; j++)
            column[j] = spec "; " (heading[j] = case_of[spec, j])
        print_columns(metric[spec] ", " unit[spec], n)
    } else if (n > 1) {
        print_columns(case_name, n)
    } else {
        print_metric(column[1])
    }
}
NR > 1 {
    group = $1 ": " $3
    item = $2
    metric[group] = $3
    unit[group] = $4
    if (split(item, part, "; ") == 2) {
        item = part[1]
        if (!((group, part[2]) in known_case)) {
            known_case[group, part[2]] = 1
            case_of[group, ++cases[group]] = part[2]
        }
        group = group "; " part[2]
    }
    if (item ~ /\(\)/)
        item = "`" item "`"
    add_row(group, item)
    units[group] += unit_seen[group, $4]++ == 0
    unit[group] = unit[group, item] = $4
    median[group, item] = $6
    quartiles[group, item] = $5 > 1 ? $7 " – " $8 : "one sample"
    # Prints "≈ 1" instead of the ratio if 1 lies between the quartiles of the ratio.
    ratio[group, item] = $10 == "" || $2 == $9 ? "" : $11 <= 1 && $12 >= 1 ? "≈ 1" : \
        sprintf($10 < 10 ? "%.2f" : "%.1f", $10)
    if ($9 != "")
        base[group] = $9 ~ /;/ ? "one backend" : $9 ~ /\(\)/ ? "`" $9 "`" : $9
}
END {
    if (failed)
        exit failed
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
