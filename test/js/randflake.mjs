// Replaces randflake/v2 where the npm package randflake is missing, with the interface in
// docs/leases-reference.md. It follows the cipher's definition in src/core/identifier/cipher.h, not
// the extension's code, so that both implementations check each other.

const EPOCH = 1730000000;
const rotl = (value, bits) => ((value << bits) | (value >>> (16 - bits))) & 0xffff;
const add = (a, b) => (a + b) & 0xffff;

// Computes a SPECKEY round and its inverse on words [at, at + 1].
function speckey(w, at) {
  w[at] = add(rotl(w[at], 9), w[at + 1]);
  w[at + 1] = rotl(w[at + 1], 2) ^ w[at];
}
function unspeckey(w, at) {
  w[at + 1] = rotl(w[at + 1] ^ w[at], 14);
  w[at] = rotl((w[at] - w[at + 1]) & 0xffff, 7);
}

function expand(secret) {
  let k = Array.from({ length: 8 }, (_, i) => secret.readUInt16BE(2 * i));
  return Array.from({ length: 17 }, (_, group) => {
    const subkeys = k.slice(0, 6);
    speckey(k, 0);
    k[2] = add(k[2], k[0]);
    k[3] = add(k[3], k[1]);
    k[7] = add(k[7], group + 1);
    k = [k[6], k[7], ...k.slice(0, 6)];
    return subkeys;
  });
}

// Computes the linear layer between steps. Without the swap it is its own inverse.
function mix(w) {
  const t = rotl(w[0] ^ w[1], 8);
  w[2] ^= w[0] ^ t;
  w[3] ^= w[1] ^ t;
}

function words(number) {
  const bytes = Buffer.alloc(8);
  bytes.writeBigUInt64LE(BigInt.asUintN(64, number));
  return [0, 2, 4, 6].map((at) => bytes.readUInt16BE(at));
}
function number(w) {
  const bytes = Buffer.alloc(8);
  w.forEach((word, i) => bytes.writeUInt16BE(word, 2 * i));
  return bytes.readBigUInt64LE();
}

function encrypt(keys, raw) {
  let w = words(raw);
  for (let step = 0; step < 8; step++) {
    for (let round = 0; round < 3; round++)
      for (const branch of [0, 1]) {
        const key = keys[2 * step + branch];
        w[2 * branch] ^= key[2 * round];
        w[2 * branch + 1] ^= key[2 * round + 1];
        speckey(w, 2 * branch);
      }
    mix(w);
    w = [w[2], w[3], w[0], w[1]];
  }
  return number(w.map((word, i) => word ^ keys[16][i]));
}
function decrypt(keys, id) {
  let w = words(id).map((word, i) => word ^ keys[16][i]);
  for (let step = 7; step >= 0; step--) {
    w = [w[2], w[3], w[0], w[1]];
    mix(w);
    for (let round = 2; round >= 0; round--)
      for (const branch of [0, 1]) {
        const key = keys[2 * step + branch];
        unspeckey(w, 2 * branch);
        w[2 * branch] ^= key[2 * round];
        w[2 * branch + 1] ^= key[2 * round + 1];
      }
  }
  return number(w);
}

export class Generator {
  #lease;
  #last = { second: EPOCH - 1, sequence: -1 };

  constructor({ lease, secret, clock = () => Math.floor(Date.now() / 1000) }) {
    this.#lease = lease;
    this.keys = expand(secret);
    this.clock = clock;
  }

  lease() {
    return this.#lease;
  }

  extendLease({ nodeID, start, endExclusive }) {
    if (nodeID !== this.#lease.nodeID || start !== this.#lease.start) throw new Error('another lease');
    this.#lease = { nodeID, start, endExclusive: Math.max(endExclusive, this.#lease.endExclusive) };
  }

  generate() {
    const second = this.clock();
    if (second < this.#lease.start || second >= this.#lease.endExclusive) throw new Error('outside of the lease');
    if (second < this.#last.second) throw new Error('the clock stepped back');
    const sequence = second > this.#last.second ? 0 : this.#last.sequence + 1;
    if (sequence > 131071) throw new Error('every identifier of this second is used');
    this.#last = { second, sequence };
    const raw = (BigInt(second - EPOCH) << 34n) | (BigInt(this.#lease.nodeID) << 17n) | BigInt(sequence);
    return BigInt.asIntN(64, encrypt(this.keys, raw));
  }

  inspect(id) {
    const raw = decrypt(this.keys, id);
    return { timestamp: Number(raw >> 34n) + EPOCH, nodeID: Number((raw >> 17n) & 0x1ffffn), sequence: Number(raw & 0x1ffffn) };
  }
}
