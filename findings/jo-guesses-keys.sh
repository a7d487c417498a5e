#!/bin/bash
# jo 1.9 (Debian bookworm), which shell scripts use to write JSON, changes keys of both kinds.
#
# Guess: jo keeps the digits of an integer, and leaves a value with a letter or a leading zero a text.
# Seen:  integers above 2^53 are rounded, texts of digits lose their leading zeros, and digits, one e
#        and digits become a number, all with exit status 0. `jo -- -s id=…` keeps each of them.
. findings/lib.sh
unpack jo=1.9-1
keys=(9007199254740993 -9223372036854775807 0000000000123 4923e012)
for key in "${keys[@]}"; do
    echo "$key $(usr/bin/jo id="$key") $(usr/bin/jo -- -s id="$key")"
done | seen 3<<'END'
9007199254740993 {"id":9007199254740992} {"id":"9007199254740993"}
-9223372036854775807 {"id":-9.223372036854776e+18} {"id":"-9223372036854775807"}
0000000000123 {"id":123} {"id":"0000000000123"}
4923e012 {"id":4923000000000000} {"id":"4923e012"}
END
