#!/bin/bash
# thrift 0.24.0 (npm) makes Infinity of every i64 above 2^53, as a number and as a text.
#
# Guess: the object of an i64 rounds as a number and prints all digits as a text.
# Seen:  String(), a template and Number() of two keys give Infinity for both, so they are equal as
#        keys of a map or parts of a URL. new Int64(text) reads the text as hexadecimal.
#        toOctetString() is exact, and so is Buffer.readBigInt64BE of its buffer.
. findings/lib.sh thrift@0.24.0
run cjs <<'END' | seen 3<<'SEEN'
const { TBufferedTransport, TBinaryProtocol, Int64 } = require('thrift');
const transport = new TBufferedTransport();
const received = ['7fffffffffffff01', '5123456789abcdef', '001fffffffffffff'].map((key) => {
  transport.inBuf = Buffer.from(key, 'hex');
  transport.readCursor = 0;
  transport.writeCursor = 8;
  return new TBinaryProtocol(transport).readI64();
});
for (const key of received)
  console.log(`${key}`, Number(key), key.toOctetString(), key.buffer.readBigInt64BE(key.offset));
console.log(new Set(received.map(String)).size, 'of', received.length, Number(new Int64('10')));
END
Infinity Infinity 7fffffffffffff01 9223372036854775553n
Infinity Infinity 5123456789abcdef 5846593052250721775n
9007199254740991 9007199254740991 001fffffffffffff 9007199254740991n
2 of 3 16
SEEN
