#!/bin/bash
# Runs LoopBack's connector 8.0.7 with bigint keys and the model of docs/drivers.md. Shows what it
# does without the model's useDefaultIdType.
#
#   PGHOST=... PGUSER=... scripts/apps/loopback.sh
#
# The server at PGHOST needs the extension, and the role must be a superuser. Needs Node.js and npm.
# Makes the database randflake_loopback, and a directory of 60 MB.

page=$(realpath "$(dirname "$0")/../../docs/drivers.md")
# shellcheck source=scripts/apps/lib.sh
. "$(dirname "$0")/lib.sh" randflake loopback-connector-postgresql@8.0.7 loopback-datasource-juggler@6.0.6
psql -qX -c 'CREATE TABLE customer (id bigint PRIMARY KEY DEFAULT randflake_generate(), name text)'
{
    cat <<'END'
const assert = require('node:assert');
const { DataSource } = require('loopback-datasource-juggler');
const db = new DataSource({ connector: require('loopback-connector-postgresql'), url: 'postgres:///', host: process.env.PGHOST,
  port: process.env.PGPORT ?? 5432, user: process.env.PGUSER, database: process.env.PGDATABASE });
END
    # shellcheck disable=SC2016 # backticks of the page
    sed -n '/^```.*loopback.sh runs it$/,/^```$/p' "$page" | sed '1d;$d'
    cat <<'END'
(async () => {
  // Of 50 rows, how many have the right key after create(), and are found and updated by it?
  async function right(model) {
    const counts = { created: 0, found: 0, updated: 0 };
    for (let i = 0; i < 50; i++) {
      const name = `${model.modelName} ${i}`;
      const { id: key } = await model.create({ name });
      const [{ id }] = await db.execute('SELECT id::text FROM customer WHERE name = $1', [name]);
      counts.created += String(key) === id;
      counts.found += String((await model.findById(id))?.id) === id;
      await model.updateAll({ id }, { name: `${name} new` });
      counts.updated += (await db.execute('SELECT FROM customer WHERE name = $1', [`${name} new`])).length;
    }
    return counts;
  }
  const options = { postgresql: { table: 'customer' } };
  const Default = db.define('default', { id: { ...id, useDefaultIdType: undefined }, name: 'string' }, options);
  console.log('without useDefaultIdType, of 50:', await right(Default));
  assert.deepEqual(await right(Customer), { created: 50, found: 50, updated: 50 });
  console.log('with the model of docs/drivers.md: all right');
  await db.disconnect();
})();
END
} >app.js
node app.js
