#!/bin/bash
# Miller 6.6.0 (Debian bookworm) has nine remainders of 8, and rounds an integer key in abs().
#
# Guess: $id % 8 is 0 to 7, or -7 to 7 as in C, and abs() of an integer is exact.
# Seen:  a negative multiple of 8 gives 8, so a split of keys into eight files makes nine, and half of the
#        rows of file 0 are in file 8. abs(), floor(), ceil() and round() go through doubles, so
#        abs($id) % 8 is 0 for nearly all 64-bit keys. msub($id, 0, 8) and $id & 7 are right.
# shellcheck disable=SC2016  # expanded by Miller
. findings/lib.sh
unpack miller=6.6.0-2+b3
usr/bin/mlr -n put 'end {k = 9007199254740993; print (-16 % 8).";".abs(k).";".floor(k).";".ceil(k).";".round(k)}' |
    seen 3<<<'8;9007199254740992;9007199254740992;9007199254740992;9007199254740992'
# 8,000 keys over all 64 bits, 500 of each sign and each remainder
seq -4000 3999 | usr/bin/mlr --inidx --odkvp put -q 'emit {"id": $1 .* 2305843009213693}' >keys
for expression in '$id % 8' 'abs($id) % 8' 'msub($id, 0, 8)' '$id & 7'; do
    echo "$expression: $(usr/bin/mlr put -q "print $expression" keys | sort -n | uniq -c |
        awk '{print $2 ":" $1}' | paste -sd ' ')"
done | seen 3<<'END'
$id % 8: 0:500 1:1000 2:1000 3:1000 4:1000 5:1000 6:1000 7:1000 8:500
abs($id) % 8: 0:7982 2:2 4:10 5:2 6:2 7:2
msub($id, 0, 8): 0:1000 1:1000 2:1000 3:1000 4:1000 5:1000 6:1000 7:1000
$id & 7: 0:1000 1:1000 2:1000 3:1000 4:1000 5:1000 6:1000 7:1000
END
