#!/bin/bash
# Draws the charts in docs/charts/ from results. The chart calls.svg contains a bar for each
# function. The charts uniform.svg and outsiders.svg show the results of suites/shape.sh.
#
#   bench/plot.sh [RESULTS [OUTPUT]]
#
# Blue and bold mark this extension, and grey marks all other generators.

set -euo pipefail
bench=$(realpath "$(dirname "$0")")
results=${1:-$bench/results}
charts=${2:-$bench/../docs/charts}
mkdir -p "$charts"

awk -F, '
function escape(text) {
    gsub(/&/, "\\&amp;", text)
    gsub(/</, "\\&lt;", text)
    return text
}
function text(x, y, words, more) {
    return sprintf("<text x=\"%d\" y=\"%d\" %s>%s</text>", x, y, more, escape(words))
}
# A label that begins with "snowflake" is ours. Labels of other extensions begin differently.
function ours(label) { return label ~ /randflake|^snowflake/ }
function colour(label) { return ours(label) ? "#0072b2" : label ~ /empty/ ? "#595959" : "#a6a6a6" }
function weight(label) { return ours(label) ? " font-weight=\"bold\"" : "" }
$1 == "calls" { # its only metric is the time
    item[++items] = $2
    median[items] = $6
    ratio[items] = $10 == "" ? "" : \
        "  (" ($11 <= 1 && $12 >= 1 ? "≈ 1" : sprintf($10 < 10 ? "%.2f×" : "%.1f×", $10)) ")"
    if ($6 + 0 > most)
        most = $6 + 0
}
END {
    height = 100 + 26 * items
    printf "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 860 %d\" width=\"860\" height=\"%d\" %s>\n",
        height, height, "font-family=\"Helvetica, Arial, sans-serif\" font-size=\"13\" fill=\"#333\""
    printf "<rect width=\"860\" height=\"%d\" fill=\"#fff\"/>\n", height
    print text(430, 24, "One call per row, the executor included", "font-size=\"16\" text-anchor=\"middle\"")
    print text(12, 60, "nanoseconds per row: SELECT count(f()) FROM generate_series(1, 2000000)")
    for (i = 1; i <= items; i++) {
        y = 44 + 26 * i
        width = median[i] / most * 515
        print text(210, y + 17, item[i], "text-anchor=\"end\"" weight(item[i])) \
            sprintf("<rect x=\"218\" y=\"%d\" width=\"%.1f\" height=\"19\" fill=\"%s\"/>", y + 3, width,
                    colour(item[i])) \
            text(224 + width, y + 17, sprintf("%.0f ns", median[i]) ratio[i])
    }
    print "</svg>"
}' "$results/results.csv" >"$charts/calls.svg"

# Draws each line of shape.csv as an SVG path. Counts become bars, and positions become points.
awk -F, -v charts="$charts" '
function open(file, title, left, right,    head) {
    head = "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 860 250\" width=\"860\" height=\"250\" " \
        "font-family=\"Helvetica, Arial, sans-serif\" font-size=\"13\" fill=\"#333\" text-anchor=\"middle\">\n" \
        "<rect width=\"860\" height=\"250\" fill=\"#fff\"/>\n<text x=\"430\" y=\"24\" font-size=\"16\">%s</text>\n"
    printf head "<text x=\"225\" y=\"240\">%s</text><text x=\"635\" y=\"240\">%s</text>\n", title, left, right >file
}
$1 == "ranges" {
    file = charts "/uniform.svg"
    for (i = 2; i <= NF; i++) {
        bars = bars sprintf("M%.1f 215v-%.1fh10.4v%.1fz", 10 + 13.1 * (i - 2), $i / 100, $i / 100)
        sum += $i
        squares += $i ^ 2
    }
    n = NF - 1
    chance = sqrt(sum / n * (1 - 1 / n))
    open(file, "A million identifiers in 64 equal ranges", sprintf("expected in each: %d", sum / n),
        sprintf("standard deviation: %.0f; by chance, 19 times in 20: %.0f to %.0f",
            sqrt(squares / n - (sum / n) ^ 2), chance * (1 - 2 / sqrt(2 * n)), chance * (1 + 2 / sqrt(2 * n))))
    print "<path fill=\"#0072b2\" d=\"" bars "\"/></svg>" >file
    next
}
{
    file = charts "/outsiders.svg"
    if (!x)
        open(file, "300 rows in the order of their inserts (across), and their keys (up)", $1, "snowflake_generate()")
    points = ""
    for (i = 2; i <= NF; i++)
        points = points sprintf("M%.1f %.1fh0", x + 20 + (i - 2) * 1.37, 220 - $i / 5.4)
    print "<path stroke=\"" (x ? "#a6a6a6" : "#0072b2") "\" stroke-width=\"4\" stroke-linecap=\"round\" d=\"" points "\"/>" >file
    x += 410
}
END { print "</svg>" >file }' "$results/shape.csv"
