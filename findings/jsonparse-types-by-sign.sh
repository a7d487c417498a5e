#!/bin/bash
# jsonparse 1.3.1 (npm), the parser of JSONStream, gives one column of keys three kinds of values.
#
# Guess: integers above 2^53 are rounded, as JSON.parse does.
# Seen:  positive ones become texts with all digits, negative ones become rounded numbers, and small
#        ones numbers. So a test with positive keys passes, and half of random keys are wrong.
. findings/lib.sh jsonparse@1.3.1
run cjs <<'END' | seen 3<<'SEEN'
const Parser = require('jsonparse');
const parser = new Parser();
parser.onValue = (value) => console.log(typeof value, String(value));
parser.write('9007199254740993 -9007199254740993 42 ');
END
string 9007199254740993
number -9007199254740992
number 42
SEEN
