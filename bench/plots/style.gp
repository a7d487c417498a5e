# What all charts share. Blue stands for this extension, grey for the rest: told apart without colour
# vision, and every bar and line carries its label.

our_colour = 0x0072B2
other_colour = 0xA6A6A6
base_colour = 0x595959
text_colour = '#333333'

set datafile separator ','
set encoding utf8
set tics nomirror textcolor rgb text_colour
set border 0 linecolor rgb '#999999'
unset key

# Others' Snowflake identifiers have a name before that word.
colour(label) = strstrt(label, 'randflake') || strstrt(label, 'snowflake') == 1 ? our_colour : \
    strstrt(label, 'empty') || strstrt(label, 'SELECT 1') ? base_colour : other_colour
