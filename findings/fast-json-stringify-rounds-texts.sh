#!/bin/bash
# fast-json-stringify 7.3.10 (npm), which writes Fastify's responses, rounds keys as pg returns them.
#
# Guess: a text under `type: integer` is an error, or its digits are written as they are.
# Seen:  the text becomes a rounded number without an error. A BigInt is exact, and so is either
#        under `type: string`.
. findings/lib.sh fast-json-stringify@7.3.10
run cjs <<'END' | seen 3<<'SEEN'
const build = require('fast-json-stringify');
for (const type of ['integer', 'string']) {
  const write = build({ type: 'object', properties: { id: { type } } });
  for (const id of ['-9007199254740993', -9007199254740993n]) console.log(type, typeof id, write({ id }));
}
END
integer string {"id":-9007199254740992}
integer bigint {"id":-9007199254740993}
string string {"id":"-9007199254740993"}
string bigint {"id":"-9007199254740993"}
SEEN
