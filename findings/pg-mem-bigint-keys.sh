#!/bin/bash
# pg-mem 3.0.14 (npm), the database that tests in JavaScript use in place of PostgreSQL, has doubles
# for bigint.
#
# Guess: bigint keys are exact, as texts or as BigInts, because the project emulates PostgreSQL.
# Seen:  a key above 2^53 is rounded when it is stored; its neighbour is a duplicate; 2^63 is no
#        error. Tests that pass with bigserial fail, or pass wrongly, with random 64-bit keys.
. findings/lib.sh pg-mem@3.0.14
run mjs <<'END' | seen 3<<'SEEN'
import { newDb } from 'pg-mem';
const { public: db } = newDb();
db.none('CREATE TABLE t (id bigint PRIMARY KEY)');
db.none('INSERT INTO t VALUES (9007199254740993)');
console.log(db.one('SELECT id::text FROM t').id, typeof db.one('SELECT id FROM t').id);
try {
  db.none('INSERT INTO t VALUES (9007199254740992)');
} catch (error) {
  console.log(error.message.match(/duplicate key/)[0]);
}
console.log(db.one('SELECT 9223372036854775808::bigint AS id').id);
END
9007199254740992 number
duplicate key
9223372036854776000
SEEN
