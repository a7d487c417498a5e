#!/bin/bash
# protobufjs 8.8.1 (npm) writes 0 for a key that is a BigInt, if the message comes from create().
#
# Guess: encode() takes a BigInt for an int64, or throws.
# Seen:  every BigInt is encoded as 0, so all rows have one key. A text is exact in both ways, and
#        fromObject() makes a BigInt exact too. verify() tells, but nothing calls it.
. findings/lib.sh protobufjs@8.8.1
run cjs <<'END' | seen 3<<'SEEN'
const { root } = require('protobufjs').parse('syntax = "proto3"; message Row { int64 id = 1; }');
const Row = root.lookupType('Row');
for (const id of [9007199254740993n, '9007199254740993'])
  for (const make of ['create', 'fromObject'])
    console.log(typeof id, make, String(Row.decode(Row.encode(Row[make]({ id })).finish()).id));
console.log(Row.verify({ id: 9007199254740993n }));
END
bigint create 0
bigint fromObject 9007199254740993
string create 9007199254740993
string fromObject 9007199254740993
id: integer|Long expected
SEEN
