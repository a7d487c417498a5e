#!/bin/bash
# Writes a summary of a run's samples to results.csv, and prints the summary as a table.
#
#   bench/summary.sh [DIRECTORY]
#
# results.csv contains the median and quartiles of each item's samples, and of the ratios of these
# samples to the base item's. Each ratio compares two samples of one repetition, so it does not
# depend on the machine's speed.

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
function summarize(key,    field, base_key, n, ratios, values, ratio, j, r) {
    split(key, field, ",")
    base_key = field[1] "," base[key] "," field[3] "," field[4]
    n = sorted(key, values)
    ratios = 0
    for (j = 1; j <= n; j++) {
        r = repetition[key, j]
        if ((base_key, r) in value && value[base_key, r] > 0)
            ratio[++ratios] = value[key, r] / value[base_key, r]
    }
    sort(ratio, ratios)
    printf "%s,%d,%s,%s,%s,%s", key, n, digits(quantile(values, n, 0.5)), digits(quantile(values, n, 0.25)),
           digits(quantile(values, n, 0.75)), base[key]
    if (ratios)
        printf ",%.3f,%.3f,%.3f\n", quantile(ratio, ratios, 0.5), quantile(ratio, ratios, 0.25),
               quantile(ratio, ratios, 0.75)
    else
        print ",,,"
}
{
    key = $1 "," $2 "," $3 "," $4
    if (!(($1, $3) in groups))
        groups[$1, $3] = ++group_count
    if (!(key in count))
        keys[groups[$1, $3], ++items[groups[$1, $3]]] = key
    count[key]++
    repetition[key, count[key]] = $5
    value[key, $5] = $6 + 0
    base[key] = $7
}
END {
    print "suite,item,metric,unit,samples,median,lower_quartile,upper_quartile,base,ratio,ratio_lower,ratio_upper"
    for (g = 1; g <= group_count; g++)
        for (i = 1; i <= items[g]; i++)
            summarize(keys[g, i])
}' "$directory/samples.csv" >"$directory/results.csv"

awk -F, 'NR > 1 {
    if ($1 "," $3 != group) {
        group = $1 "," $3
        printf "\n%s: %s, %s%s\n", $1, $3, $4, $9 == "" ? "" : "; ratio to " ($9 ~ /;/ ? "one backend" : $9)
        printf "  %-44s %12s %25s %8s %17s\n", "", "median", "quartiles", "ratio", "quartiles"
    }
    printf "  %-44s %12s %12s %12s %8s %8s %8s\n", $2, $6, $7, $8, $10, $11, $12
}' "$directory/results.csv"
