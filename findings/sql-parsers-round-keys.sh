#!/bin/bash
# SQL parsers for JavaScript change 64-bit keys when they write a statement that they have read.
#
# Guess: node-sql-parser 5.4.0 keeps integer literals, of both signs; pgsql-ast-parser 12.0.2 keeps
#        them or raises an error.
# Seen:  node-sql-parser keeps positive ones and rounds negative ones. pgsql-ast-parser rounds both.
#        A proxy that adds a condition to a statement then finds another row, or none.
. findings/lib.sh node-sql-parser@5.4.0 pgsql-ast-parser@12.0.2
run mjs <<'END' | seen 3<<'SEEN'
import nodeSqlParser from 'node-sql-parser';
import { parseFirst, toSql } from 'pgsql-ast-parser';
const parser = new nodeSqlParser.Parser();
const postgresql = { database: 'postgresql' };
const written = {
  'node-sql-parser': (sql) => parser.sqlify(parser.astify(sql, postgresql), postgresql),
  'pgsql-ast-parser': (sql) => toSql.statement(parseFirst(sql)),
};
for (const [name, write] of Object.entries(written))
  for (const key of ['9007199254740993', '-9007199254740993'])
    console.log(name, key, write(`DELETE FROM t WHERE id = ${key}`).match(/-?\d+/)[0]);
END
node-sql-parser 9007199254740993 9007199254740993
node-sql-parser -9007199254740993 -9007199254740992
pgsql-ast-parser 9007199254740993 9007199254740992
pgsql-ast-parser -9007199254740993 -9007199254740992
SEEN
