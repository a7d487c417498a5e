// Two packages of Node.js that make Snowflake identifiers with any epoch, for
// test/t/322_snowflake_packages.pl.
//
//   node snowflake.mjs EPOCH generate       lines "id milliseconds node_id sequence"
//   node snowflake.mjs EPOCH decode ID...   the same of these identifiers

import { Snowflake } from '@sapphire/snowflake';
import FlakeId from 'flake-idgen';

const [epoch, mode, ...ids] = process.argv.slice(2);
const sapphire = new Snowflake(BigInt(epoch));

function show(id) {
  const { timestamp, workerId, processId, increment } = sapphire.deconstruct(id);
  console.log(`${id} ${timestamp} ${workerId << 5n | processId} ${increment}`);
}

if (mode === 'decode') {
  ids.forEach((id) => show(BigInt(id)));
} else {
  for (const [timestamp, workerId, processId, increment] of [
    [Number(epoch), 0n, 0n, 0n],
    [Date.now(), 31n, 31n, 4095n],
    [Date.now(), 1n, 2n, 3n],
    [Number(epoch) + 2 ** 41 - 1, 31n, 0n, 1n],
  ]) {
    const id = sapphire.generate({ timestamp, workerId, processId, increment });
    console.log(`${id} ${timestamp} ${workerId << 5n | processId} ${increment}`);
  }
  // This one reads the clock itself; the other one tells what it read.
  const flakes = new FlakeId({ datacenter: 9, worker: 7, epoch: Number(epoch) });
  for (let i = 0; i < 100; i++) {
    show(flakes.next().readBigUInt64BE());
  }
}
