# Horizontal bars, one panel below or beside the other. Wants: title, columns, panels, and for each
# panel data_N and heading_N. Data: label,value,value in words.

rows = (panels + columns - 1) / columns

# One height for all panels: that of the longest.
bars = 0
do for [panel = 1 : panels] {
    stats value(sprintf('data_%d', panel)) using 2 nooutput
    bars = STATS_records > bars ? STATS_records : bars
}

set terminal svg size 860, rows * (70 + 26 * bars) + 40 font 'Helvetica,13' noenhanced background '#ffffff'
set multiplot layout rows, columns title title font ',16' textcolor rgb text_colour

set style fill solid 1.0
label_width = columns > 1 ? 20 : 36
set lmargin label_width
set rmargin 2
set bmargin 1
set tmargin 3
unset xtics
set ytics scale 0
set border 0

do for [panel = 1 : panels] {
    data = value(sprintf('data_%d', panel))
    set autoscale
    stats data using 2 nooutput
    set xrange [0 : STATS_max * (columns > 1 ? 2.8 : 1.45)]
    set yrange [bars - 0.4 : -0.6]
    set label 1 value(sprintf('heading_%d', panel)) at graph 0, graph 1.06 left \
        offset 2 - label_width, 0 textcolor rgb text_colour
    plot data using (0) : 0 : (0) : 2 : ($0 - 0.36) : ($0 + 0.36) : (colour(strcol(1))) : yticlabels(1) \
             with boxxyerror linecolor rgb variable, \
         data using 2 : 0 : 3 \
             with labels left offset 0.5, 0 textcolor rgb text_colour
}
unset multiplot
