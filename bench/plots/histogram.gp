# Uniformity: identifiers per bucket, by top and by low bits, against what chance would do.
# Wants: data, heading_1, heading_2.

set terminal svg size 820, 560 font 'Helvetica,13' noenhanced background '#ffffff'
set multiplot layout 2, 1 title 'A million identifiers in 256 buckets' font ',16' textcolor rgb text_colour

mean = 1000000 / 256.0
sigma = sqrt(mean * (1 - 1 / 256.0))
set style fill solid 1.0 noborder
set xrange [-2 : 290]
set yrange [0 : mean * 1.25]
set xtics 0, 32, 255
set ytics 0, 1000
set lmargin 10
set ylabel 'identifiers per bucket' textcolor rgb text_colour
do for [k = -1 : 1] {
    set arrow from 0, mean + 3 * k * sigma to 256, mean + 3 * k * sigma nohead front \
        dashtype 2 linewidth 1.5 linecolor rgb '#D55E00'
}
set label 'mean ± 3σ' at 258, mean left textcolor rgb text_colour

do for [panel = 1 : 2] {
    set title value(sprintf('heading_%d', panel)) font ',13' textcolor rgb text_colour
    set xlabel panel == 2 ? 'bucket' : '' textcolor rgb text_colour
    plot data every ::1 using ($1 + 0.5) : 1 + panel with boxes linecolor rgb our_colour
}
unset multiplot
