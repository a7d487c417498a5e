#!/bin/bash
# recutils 1.9 (Debian bookworm) selects and sorts records by the low 32 bits of an integer key.
#
# Guess: a selection compares 64 bits, or doubles, or refuses what is larger than its integers.
# Seen:  `Id = 4294967297` finds the key 1, and `Id < 0` finds no negative key, without an error.
#        recfix accepts the keys as `int`, but recsel -S sorts them by the same bits. A pattern is exact.
. findings/lib.sh
unpack recutils=1.9-2 librec1=1.9-2
export LD_LIBRARY_PATH=$PWD/usr/lib/x86_64-linux-gnu
printf '%%rec: Key\n%%type: Id int\n%%key: Id\n' >keys.rec
printf '\nId: %s\n' 4294967297 1 -9223372036854775807 -4294967294 5 >>keys.rec
usr/bin/recfix keys.rec
{
    for selection in 'Id = 4294967297' 'Id < 0' "Id ~ '^4294967297\$'"; do
        echo "$selection: [$(usr/bin/recsel -t Key -e "$selection" -CP Id keys.rec | paste -sd ' ')]"
    done
    usr/bin/recsel -t Key -S Id -CP Id keys.rec | paste -sd ' '
} | seen 3<<'END'
Id = 4294967297: [4294967297 1 -9223372036854775807]
Id < 0: []
Id ~ '^4294967297$': [4294967297]
4294967297 1 -9223372036854775807 -4294967294 5
END
