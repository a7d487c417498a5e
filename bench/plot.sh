#!/bin/bash
# Draws the charts of the documents from a run's results.
#
#   bench/plot.sh [RESULTS [OUTPUT]]
#
# Blue and bold stand for this extension, grey for the rest. Each bar and line carries its label, and lines
# differ in dashes and marks, too, so that no chart depends on colour.

set -euo pipefail
bench=$(realpath "$(dirname "$0")")
results=${1:-$bench/results}
charts=${2:-$bench/../docs/charts}
mkdir -p "$charts"

# draw NAME PROGRAM ARGUMENT...: what the program in awk prints becomes the chart. Its input are results.csv's
# lines; it has the arguments as argument[1..].
draw() {
    local name=$1 program=$2
    shift 2
    awk -F, -v arguments="$(printf '%s\n' "$@")" '
    BEGIN { arguments_given = split(arguments, argument, "\n") }
    function escape(text) {
        gsub(/&/, "\\&amp;", text)
        gsub(/</, "\\&lt;", text)
        return text
    }
    function text(x, y, words, more) {
        return sprintf("<text x=\"%d\" y=\"%d\" %s>%s</text>", x, y, more, escape(words))
    }
    # Other extensions of the name snowflake have something before that word.
    function ours(label) { return label ~ /randflake|^snowflake/ }
    function colour(label) { return ours(label) ? "#0072b2" : label ~ /empty/ ? "#595959" : "#a6a6a6" }
    function weight(label) { return ours(label) ? " font-weight=\"bold\"" : "" }
    function open_chart(width, height, title) {
        printf "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" width=\"%d\" height=\"%d\" %s>\n",
            width, height, width, height, "font-family=\"Helvetica, Arial, sans-serif\" font-size=\"13\" fill=\"#333\""
        printf "<rect width=\"%d\" height=\"%d\" fill=\"#fff\"/>\n", width, height
        print text(width / 2, 24, title, "font-size=\"16\" text-anchor=\"middle\"")
    }'"$program"'
    END { print "</svg>" }' "$results/results.csv" >"$charts/$name.svg"
}

# Horizontal bars. Arguments: title, columns, and for each panel suite, metric, heading, format of a number.
# shellcheck disable=SC2016 # awk expands it
bars='
function panel(first,    i, key, x, y, room, label, value) {
    x = (panels % columns) * 860 / columns
    y = 70 + int(panels / columns) * (26 * tallest + 50)
    panels += 1
    key = argument[first] "," argument[first + 1]
    print text(x + 12, y - 10, argument[first + 2])
    room = 860 / columns - names - 135
    for (i = 1; i <= items[key]; i++) {
        label = item[key, i]
        value = sprintf(argument[first + 3], median[key, i])
        if (ratio[key, i] != "")
            value = value "  (" ratio[key, i] ")"
        print text(x + names, y + 17, label, "text-anchor=\"end\"" weight(label)) \
            sprintf("<rect x=\"%d\" y=\"%d\" width=\"%.1f\" height=\"19\" fill=\"%s\"/>", x + names + 8, y + 3,
                    median[key, i] / most[key] * room, colour(label)) \
            text(x + names + 14 + median[key, i] / most[key] * room, y + 17, value)
        y += 26
    }
}
{
    key = $1 "," $3
    item[key, ++items[key]] = $2
    median[key, items[key]] = $6
    ratio[key, items[key]] = $2 == $9 || $10 == "" ? "" : \
        $11 <= 1 && $12 >= 1 ? "≈ 1" : sprintf($10 < 10 ? "%.2f×" : "%.1f×", $10)
    if ($6 + 0 > most[key])
        most[key] = $6 + 0
}
END {
    columns = argument[2]
    names = columns == 1 ? 210 : 155
    for (i = 3; i < arguments_given; i += 4) {
        n = items[argument[i] "," argument[i + 1]]
        tallest = n > tallest ? n : tallest
    }
    open_chart(860, 50 + int((arguments_given - 2) / 4 / columns + 0.5) * (26 * tallest + 50), argument[1])
    for (i = 3; i < arguments_given; i += 4)
        panel(i)
}'

# Throughput by the number of backends, both axes logarithmic, with quartiles.
# shellcheck disable=SC2016
lines='
function x_of(clients) { return 70 + log(clients) / log(2) * 125 }
function y_of(value) { return 430 - (log(value) / log(2) + 1) * 72 }
function mark(shape, x, y) {
    return shape == 1 ? sprintf("M%d %dm-4 0a4 4 0 1 0 8 0a4 4 0 1 0 -8 0", x, y) : \
           shape == 2 ? sprintf("M%d %dm-4 -4h8v8h-8z", x, y) : \
           shape == 3 ? sprintf("M%d %dm0 -5l5 9h-10z", x, y) : \
           shape == 4 ? sprintf("M%d %dm0 -5l5 5l-5 5l-5 -5z", x, y) : sprintf("M%d %dm0 5l5 -9h-10z", x, y)
}
$1 == "backends" {
    split($2, part, "; ")
    if (!(part[1] in shape)) {
        order[++n] = part[1]
        shape[part[1]] = ours(part[1]) ? ++of_ours : of_others++ % 5 + 1
    }
    x = x_of(part[2])
    line[part[1]] = line[part[1]] (line[part[1]] == "" ? "M" : "L") sprintf("%d %d", x, y_of($6))
    spread[part[1]] = spread[part[1]] sprintf("M%d %dV%d", x, y_of($7), y_of($8))
    marks[part[1]] = marks[part[1]] mark(shape[part[1]], x, y_of($6))
    last[part[1]] = y_of($6)
}
END {
    open_chart(860, 500, argument[1])
    for (value = 0.5; value <= 16; value *= 2)
        printf "<path d=\"M60 %dH575\" stroke=\"#e5e5e5\"/>%s\n", y_of(value),
            text(52, y_of(value) + 4, value, "text-anchor=\"end\"")
    for (clients = 1; clients <= 16; clients *= 2)
        print text(x_of(clients), 465, clients, "text-anchor=\"middle\"")
    print text(320, 488, "concurrent backends", "text-anchor=\"middle\"")
    print text(12, 50, argument[2])
    # Labels from the top down, moved apart where they would overlap.
    for (i = 1; i <= n; i++)
        for (j = i; j > 1 && last[order[j]] < last[order[j - 1]]; j--) {
            swap = order[j]; order[j] = order[j - 1]; order[j - 1] = swap
        }
    split("none 8,4 2,3", dashes, " ")
    for (i = 1; i <= n; i++) {
        label = order[i]
        y = i > 1 && last[label] < y + 18 ? y + 18 : last[label]
        printf "<g fill=\"none\" stroke=\"%s\"><path d=\"%s\" stroke-width=\"2\"%s/>", colour(label), line[label],
            ours(label) ? " stroke-dasharray=\"" dashes[shape[label]] "\"" : ""
        printf "<path d=\"%sM578 %dL606 %d\"/>", spread[label], last[label], y
        printf "<path d=\"%s\" fill=\"%s\"/></g>%s\n", marks[label] mark(shape[label], 615, y),
            ours(label) ? colour(label) : "#fff", text(628, y + 5, label, weight(label))
    }
}'

draw calls "$bars" 'One call per row, the executor included' 1 \
    calls time 'nanoseconds per row: SELECT count(f()) FROM generate_series(1, 2000000)' '%.0f ns'
draw keys "$bars" 'Primary keys of 5 million rows' 2 \
    keys 'insert: 5000000 rows by 1 session' 'seconds, one session' '%.1f s' \
    keys 'insert: 5000000 rows by 8 sessions' 'seconds, eight sessions' '%.1f s' \
    keys 'index size: 5000000 rows by 8 sessions' 'index size' '%.0f MB' \
    keys 'WAL after a checkpoint: 5000000 rows by 8 sessions' 'WAL of 4 % more after a checkpoint' '%.0f MB'
draw backends "$lines" 'Throughput of many backends, the executor included (both axes logarithmic)' \
    'million calls per second'
