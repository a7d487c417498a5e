#!/bin/bash
# hashids 2.3.0 (npm) gives every negative key the same text, the empty one, and no error.
#
# Guess: encode('-5') throws, as sqids 0.3.0 does, or gives a text of its own.
# Seen:  texts with a sign and numbers above 2^53 become '', and decode('') is []. A negative BigInt
#        throws a TypeError about codePointAt. Positive BigInts are exact up to 63 bits.
#        Drivers return bigint keys as texts, so each URL of a negative key is the same.
. findings/lib.sh hashids@2.3.0
run mjs <<'END' | seen 3<<'SEEN'
import Hashids from 'hashids';
const hashids = new Hashids('salt');
const seen = (key) => {
  try {
    const text = hashids.encode(key);
    return `${JSON.stringify(text)} ${hashids.decode(text).join()}`;
  } catch (error) {
    return error.name;
  }
};
for (const key of ['-5', '-9223372036854775807', 2 ** 53 + 2, -5, -5n, 9223372036854775807n])
  console.log(`${typeof key} ${key}: ${seen(key)}`);
END
string -5: "" 
string -9223372036854775807: "" 
number 9007199254740994: "" 
number -5: "" 
bigint -5: TypeError
bigint 9223372036854775807: "x9jv4Xod02Go9" 9223372036854775807
SEEN
