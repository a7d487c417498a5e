#!/bin/bash
# json-bigint 1.0.0 (npm) decides by characters, not by size, which integers become objects.
#
# Guess: integers up to 2^53 - 1 stay numbers, and larger ones become BigNumber objects.
# Seen:  more than 15 characters make an object. The sign counts as one of them. So most 53-bit keys
#        are objects and some are numbers, in one column; === and Map find none of the objects.
. findings/lib.sh json-bigint@1.0.0
run mjs <<'END' | seen 3<<'SEEN'
import JSONBig from 'json-bigint';
for (const text of ['450359962737049', '-450359962737049', '4503599627370497']) {
  const { id } = JSONBig.parse(`{"id": ${text}}`);
  const { id: native } = JSONBig({ useNativeBigInt: true }).parse(`{"id": ${text}}`);
  console.log(text, Number.isSafeInteger(Number(text)), typeof id, typeof native);
}
console.log(JSONBig.parse('4503599627370497') === JSONBig.parse('4503599627370497'));
END
450359962737049 true number number
-450359962737049 true object bigint
4503599627370497 true object bigint
false
SEEN
