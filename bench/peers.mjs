// Measures what generators of npm packages do when the clock steps back, when more identifiers are
// asked for than a unit of time holds, and in two processes with default options. bench/peers.sh
// runs this script, once for each package and case, and writes the table.
//
// The clock is this script's: `now` replaces Date's. A call that reads the clock again and again
// waits, so the clock goes on by 1 ms at each further read. Timers move the clock as well.

const RealDate = Date;
let now = RealDate.UTC(2026, 5, 1), reads = 0, waited = 0;
function pass(ms) { now += ms; waited += ms; return now; }
const read = () => (++reads > 20 ? pass(1) : now);
globalThis.Date = class extends RealDate {
  constructor(...values) { super(...(values.length ? values : [read()])); }
  static now() { return read(); }
};
globalThis.setTimeout = (call, ms = 1) => { pass(Math.max(1, ms)); setImmediate(call); };

// Each package with a generator of its own defaults: the call that makes one identifier.
const generators = {
  'uuid@14.0.3': ({ v7 }) => v7,
  'ulid@3.0.2': ({ monotonicFactory }) => monotonicFactory(),
  'ulidx@2.4.1': ({ monotonicFactory }) => monotonicFactory(),
  'uuidv7@1.2.1': ({ uuidv7 }) => uuidv7,
  'typeid-js@1.2.0': ({ typeid }) => () => String(typeid('row')),
  '@sapphire/snowflake@3.5.5': ({ TwitterSnowflake }) => () => TwitterSnowflake.generate(),
  '@akashrajpurohit/snowflake-id@2.0.0': ({ SnowflakeId }) => { const s = SnowflakeId(); return () => s.generate(); },
  'snowflake-uuid@1.0.0': ({ Worker }) => { const s = new Worker(); return () => s.nextId(); },
  'flake-idgen@1.4.0': ({ default: Flake }) => { const s = new Flake(); return () => s.next().readBigUInt64BE(); },
  'nodejs-snowflake@2.0.1': ({ Snowflake }) => { const s = new Snowflake(); return () => s.getUniqueID(); },
  'snowyflake@2.0.1': ({ Snowyflake, Epoch }) => {
    const s = new Snowyflake({ workerId: 1n, epoch: Epoch.Twitter });
    return () => s.nextId();
  },
  'flakeid@1.0.1': ({ default: Flake }) => { const s = new Flake(); return () => s.gen(); },
  '@skorotkiewicz/snowflake-id@1.0.1': ({ Snowflake }) => { const s = new Snowflake(1); return () => s.generate(); },
  'snowflake-id@1.1.0': ({ default: m }) => { const s = new (m.default ?? m)(); return () => s.generate(); },
  '@nocobase/snowflake-id@2.2.15': ({ Snowflake }) => { const s = new Snowflake(); return () => s.generate(); },
  'simple-flakeid@0.0.5': ({ default: { SnowflakeIdv1 } }) => {
    const s = new SnowflakeIdv1({ workerId: 1 });
    return () => s.NextBigId();
  },
  'sonyflake@1.1.2': ({ Sonyflake }) => { const s = new Sonyflake(); return () => s.nextId(); },
  'node-snowflake@0.0.1': ({ default: { Snowflake } }) => () => Snowflake.nextId(),
};

const before = (a, b) => (/^\d+$/.test(a) ? BigInt(a) < BigInt(b) : a < b);

// Says how many of 100,000 identifiers are repeats. `clock` moves `now` to call i.
async function run(next, clock) {
  const made = new Set();
  let last = '', disorder = false;
  for (let i = 0; i < 100_000; i++) {
    clock(i);
    reads = 0;
    let id;
    try { id = String(await next()); } catch { return 'error'; }
    disorder ||= last !== '' && before(id, last);
    made.add(last = id);
  }
  const repeats = 100_000 - made.size;
  return (repeats || (disorder ? '0, out of order' : '0')) + (waited > 0 ? ', waits' : '');
}

// 10 calls a millisecond, or one in 60 ms if the step is an hour. The step comes after 60,000 calls.
const step = (back, per) => (next) => {
  return run(next, (i) => { if (i % per === 0) now += per > 1 ? 1 : 60; if (i === 60_000) now -= back; });
};
const cases = {
  '5ms': step(5, 10), '2s': step(2000, 10), '1h': step(3_600_000, 1),
  'full': (next) => run(next, (i) => { if (i % 5000 === 0) now++; }),
  'two': async (next) => {
    for (let i = 0; i < 1000; i++) { if (i % 10 === 0) now++; reads = 0; console.log(String(await next())); }
  },
};
const [name, which] = process.argv.slice(2);
if (!name) {
  console.log(Object.keys(generators).join('\n'));
} else {
  const result = await cases[which](generators[name](await import(name.replace(/(?<=.)@.*/, ''))));
  if (which !== 'two') console.log(result);
}
