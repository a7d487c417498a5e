#!/bin/bash
# Writes a summary of a run's samples to results.csv, and prints the summary as a table.
#
#   bench/summary.sh [DIRECTORY]
#
# results.csv has a line for each suite and item, with ten columns for each metric: the median and
# quartiles of the item's samples, and of the ratios of these samples to the base item's. A ratio
# compares two samples of one repetition, so it does not depend on the machine's speed. The base
# item has no ratio. The case of an item "ITEM; CASE" becomes part of the metric: "CASE: METRIC".

set -euo pipefail
directory=${1:-$(dirname "$0")/results}

awk -F, '
# Returns quantile q of values[1..n], interpolated between neighbours.
function quantile(values, n, q,    position, below) {
    position = 1 + q * (n - 1)
    below = int(position)
    return values[below] + (below < n ? (position - below) * (values[below + 1] - values[below]) : 0)
}
# Rounds the number to four digits, but keeps all digits before the decimal point.
function digits(number) {
    return sprintf(number >= 1000 ? "%.0f" : "%.4g", number)
}
function sort(values, n,    i, j, v) {
    for (i = 2; i <= n; i++) {
        v = values[i]
        for (j = i - 1; j >= 1 && values[j] > v; j--)
            values[j + 1] = values[j]
        values[j + 1] = v
    }
}
# Sorts the samples of one item into values[1..]. Returns their number.
function sorted(key, values,    n) {
    for (n = 0; n < count[key]; n++)
        values[n + 1] = value[key, repetition[key, n + 1]]
    sort(values, n)
    return n
}
# Returns the columns of one metric.
function summarize(key,    field, case_at, base_key, n, ratios, values, ratio, j, r) {
    split(key, field, ",")
    base_key = field[1] "," base[key] "," field[3] "," field[4]
    n = sorted(key, values)
    ratios = 0
    for (j = 1; j <= n; j++) {
        r = repetition[key, j]
        if (field[2] != base[key] && (base_key, r) in value && value[base_key, r] > 0)
            ratio[++ratios] = value[key, r] / value[base_key, r]
    }
    sort(ratio, ratios)
    if (case_at = index(field[2], "; "))
        field[3] = substr(field[2], case_at + 2) ": " field[3]
    return sprintf(",%s,%s,%d,%s,%s,%s,%s", field[3], field[4], n, digits(quantile(values, n, 0.5)),
                   digits(quantile(values, n, 0.25)), digits(quantile(values, n, 0.75)), base[key]) \
        (ratios ? sprintf(",%.3f,%.3f,%.3f", quantile(ratio, ratios, 0.5), quantile(ratio, ratios, 0.25),
                          quantile(ratio, ratios, 0.75)) : ",,,")
}
{
    key = $1 "," $2 "," $3 "," $4
    row = $1 "," $2
    sub(/; .*/, "", row)
    if (!(row in metrics))
        rows[++row_count] = row
    if (!(key in count))
        keys[row, ++metrics[row]] = key
    repetition[key, ++count[key]] = $5
    value[key, $5] = $6 + 0
    base[key] = $7
}
END {
    print "suite,item,metric,unit,samples,median,lower_quartile,upper_quartile,base,ratio,ratio_lower,ratio_upper,..."
    for (r = 1; r <= row_count; r++) {
        line = rows[r]
        for (m = 1; m <= metrics[rows[r]]; m++)
            line = line summarize(keys[rows[r], m])
        print line
    }
}' "$directory/samples.csv" >"$directory/results.csv"

awk -F, 'NR > 1 {
    for (i = 3; i < NF; i += 10) {
        group = $1 ": " $i ", " $(i + 1) ($(i + 6) == "" ? "" : "; ratio to " ($(i + 6) ~ /;/ ? "one backend" : $(i + 6)))
        if (!(group in lines))
            groups[++n] = group
        lines[group] = lines[group] sprintf("  %-44s %12s %12s %12s %8s %8s %8s\n", $2, $(i + 3), $(i + 4), $(i + 5),
                                            $(i + 7), $(i + 8), $(i + 9))
    }
}
END {
    for (i = 1; i <= n; i++)
        printf "\n%s\n  %-44s %12s %25s %8s %17s\n%s", groups[i], "", "median", "quartiles", "ratio", "quartiles", lines[groups[i]]
}' "$directory/results.csv"
