#!/bin/bash
# Runs Payload 3 with 53-bit keys, which a hook makes before each insert.
#
#   PGHOST=... PGUSER=... scripts/apps/payload.sh
#
# The server at PGHOST needs the extension, and the role must be a superuser. Needs Node.js 20.9 or
# later and npm. Makes the database randflake_payload, and a directory of 400 MB.
#
# These points need attention. Each point names the page that describes it.
#   If the extension is in "public", Payload stops, and asks whether a new table of Payload is the
#   table randflake_key under another name (docs/drivers.md, "The database").
#   A field "id" has no default in the database (docs/drivers.md, "Make keys before the insert").

# shellcheck source=scripts/apps/lib.sh
. "$(dirname "$0")/lib.sh" randflake payload@3 @payloadcms/db-postgres@3 graphql
cat >app.mjs <<'END'
import assert from 'node:assert';
import { postgresAdapter } from '@payloadcms/db-postgres';
import { buildConfig, getPayload } from 'payload';

const batch = [];
async function next({ pool }) {
  if (!batch.length) {
    const { rows } = await pool.query('SELECT randflake53_generate(1000) AS id');
    batch.push(...rows.map((row) => Number(row.id)));
  }
  return batch.pop();
}
const id = { name: 'id', type: 'number' };
const hooks = { beforeChange: [async ({ data, operation, req }) => (
  operation === 'create' ? { ...data, id: await next(req.payload.db) } : data)] };
const payload = await getPayload({ config: buildConfig({
  secret: 'apps', telemetry: false, typescript: { autoGenerate: false }, db: postgresAdapter({ pool: {} }),
  collections: [
    { slug: 'users', auth: true, hooks, fields: [id] },
    { slug: 'posts', hooks, fields: [id, { name: 'title', type: 'text' },
      { name: 'author', type: 'relationship', relationTo: 'users' },
      { name: 'tags', type: 'array', fields: [{ name: 'word', type: 'text' }] }] },
  ],
}) });

const login = { email: `${Date.now()}@example.org`, password: 'apps' };
const user = await payload.create({ collection: 'users', data: login });
const post = await payload.create({ collection: 'posts',
  data: { title: 'One', author: user.id, tags: [{ word: 'a' }, { word: 'b' }] } });
assert(Number.isSafeInteger(post.id) && post.id > 2 ** 32);
assert.equal((await payload.login({ collection: 'users', data: login })).user.id, user.id);
const { docs } = await payload.find({ collection: 'posts', where: { author: { equals: user.id } } });
assert.deepEqual([docs[0].id, docs[0].author.id, docs[0].tags.length], [post.id, user.id, 2]);
await payload.update({ collection: 'posts', id: post.id, data: { title: 'Two' } });
await payload.delete({ collection: 'posts', id: post.id });
await payload.delete({ collection: 'users', id: user.id });
console.log(`user ${user.id}, post ${post.id}: made, found, changed, deleted`);
process.exit();
END
for time in first second; do # the second compares tables that exist
    echo "$time start"
    node app.mjs </dev/null
done
