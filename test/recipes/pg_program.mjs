import { pool } from './pg.mjs';
import { fromText, toText } from './text_form.mjs';

const first = async (query, ...values) => (await pool.query(query, values)).rows[0];

// Inserts a row, gets its key, and finds the row by its key.
const { id } = await first('INSERT INTO customer (name) VALUES ($1) RETURNING id', 'Ada');
const { name } = await first('SELECT name FROM customer WHERE id = $1', fromText(toText(id)));
console.log('customer', id, toText(id), name);

const pen = await first('INSERT INTO purchase (item) VALUES ($1) RETURNING id', 'pen');
const { item } = await first('SELECT item FROM purchase WHERE id = $1', pen.id);
console.log('purchase', pen.id, item);

const bob = await first('INSERT INTO customer (name) VALUES ($1) RETURNING id', 'Bob');
const ink = await first('INSERT INTO purchase (item) VALUES ($1) RETURNING id', 'ink');
const customers = await first(
  'SELECT array_agg(id ORDER BY name) AS ids FROM customer WHERE id = ANY ($1)', [id, bob.id]);
const purchases = await first(
  'SELECT array_agg(id ORDER BY item) AS ids FROM purchase WHERE id = ANY ($1)', [pen.id, ink.id]);
console.log('arrays', customers.ids.join(), purchases.ids.join());

// A malformed key must raise an error.
await first('SELECT item FROM purchase WHERE id = $1', '42')
  .catch((error) => console.log('malformed', /^22/.test(error.code) && 404));
await pool.end();
