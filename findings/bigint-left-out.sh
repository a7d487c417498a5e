#!/bin/bash
# json5 2.2.3, hjson 3.2.2, SheetJS 0.18.5 and OpenTelemetry 2.12.1 (npm) lose each BigInt silently.
#
# Guess: a BigInt throws a TypeError as in JSON.stringify, or is written with its digits.
# Seen:  JSON5 leaves the key out. Hjson writes a bare `undefined`, which it reads as a text, so all keys
#        are equal. json_to_sheet() of SheetJS makes an empty cell, aoa_to_sheet() an exact text. A span
#        of OpenTelemetry lacks the attribute. Texts are exact in each.
. findings/lib.sh json5@2.2.3 hjson@3.2.2 xlsx@0.18.5 @opentelemetry/api@1.9.1 @opentelemetry/sdk-trace-base@2.12.1
run mjs <<'END' | seen 3<<'SEEN'
import { BasicTracerProvider } from '@opentelemetry/sdk-trace-base';
import Hjson from 'hjson';
import JSON5 from 'json5';
import XLSX from 'xlsx';
const span = (attributes) => new BasicTracerProvider().getTracer('t').startSpan('s', { attributes });
for (const id of [9007199254740993n, '9007199254740993']) {
  console.log(JSON5.stringify({ id, n: 1 }), Hjson.parse(Hjson.stringify({ id })), span({ id, n: 1 }).attributes,
    [XLSX.utils.json_to_sheet([{ id, n: 1 }]), XLSX.utils.aoa_to_sheet([[id, 1]])].map((s) => XLSX.utils.sheet_to_csv(s)));
}
END
{n:1} { id: 'undefined' } { n: 1 } [ 'id,n\n,1', '9007199254740993,1' ]
{id:'9007199254740993',n:1} { id: '9007199254740993' } { id: '9007199254740993', n: 1 } [ 'id,n\n9007199254740993,1', '9007199254740993,1' ]
SEEN
