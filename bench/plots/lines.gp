# Throughput by number of backends. Wants: title, unit, data. Data, in
# blocks of one line each: clients,value,lower,upper,label position,label.

set terminal svg size 820, 520 font 'Helvetica,13' noenhanced background '#ffffff'
set title title font ',16' textcolor rgb text_colour
set xlabel 'concurrent backends' textcolor rgb text_colour
set ylabel unit textcolor rgb text_colour
set logscale xy 2
set xrange [0.9 : 50]
set xtics (1, 2, 4, 8, 16)
set ytics (0.25, 0.5, 1, 2, 4, 8, 16, 32)
set grid ytics linecolor rgb '#e5e5e5'

stats data using 2 nooutput
plot for [block = 0 : STATS_blocks - 1] data index block \
         using 1 : 2 : (colour(strcol(6))) with lines linewidth 2 linecolor rgb variable, \
     for [block = 0 : STATS_blocks - 1] data index block \
         using 1 : 2 : 3 : 4 : (colour(strcol(6))) with yerrorbars pointtype 7 pointsize 0.6 linecolor rgb variable, \
     for [block = 0 : STATS_blocks - 1] data index block every ::4::4 \
         using 1 : 5 : 6 with labels left offset 1.5, 0 textcolor rgb text_colour
