// Shortens package-lock.json to one line for each package that tests need, with fields of `npm ci`.

import { readFileSync, writeFileSync } from 'node:fs';

// Lists dependencies of one package or of any package ('*') that no test uses.
const leftOut = {
  '*': /^(foreground-child|jackspeak|yargs|mysql2|tsx|@esbuild-kit\/.*|@esbuild\/(?!linux-(arm64|x64)$).*)$/,
  knex: /^(commander|escalade|esm|get-package-type|getopts|interpret|rechoir|tildify)$/,
  '@prisma/dev': /^(@electric-sql\/.*|@prisma\/streams-local|find-my-way)$/,
  '@prisma/studio-core': /^(@radix-ui\/.*|@visx\/.*|d3-.*|elkjs|react|react-dom|@types\/react)$/,
};
const kinds = ['dependencies', 'optionalDependencies', 'peerDependencies'];

const lock = JSON.parse(readFileSync('package-lock.json'));
const reached = {};

// Searches node_modules of the package and of the directories above, like Node.js.
function find(path, name) {
  for (let at = path; ; at = at.replace(/(^|\/)node_modules\/(@[^/]*\/)?[^/]*$/, '')) {
    const found = `${at && `${at}/`}node_modules/${name}`;
    if (lock.packages[found] || !at) return found;
  }
}

function reach(path) {
  if (reached[path] || !lock.packages[path]) return;
  const { license, engines, funding, hasInstallScript, peerDependenciesMeta = {}, ...entry } = lock.packages[path];
  reached[path] = entry;
  const own = path.replace(/.*node_modules\//, '');
  for (const kind of kinds) {
    for (const name of Object.keys(entry[kind] ?? {})) {
      const optional = kind === 'peerDependencies' && peerDependenciesMeta[name];
      if (optional || leftOut['*'].test(name) || leftOut[own]?.test(name)) delete entry[kind][name];
      else reach(find(path, name));
    }
    if (!Object.keys(entry[kind] ?? { none: '' }).length) delete entry[kind];
  }
}

reach('');
const lines = Object.keys(lock.packages)
  .filter((path) => reached[path])
  .map((path) => `    ${JSON.stringify(path)}: ${JSON.stringify(reached[path])}`);
writeFileSync('package-lock.json', `{
  "lockfileVersion": ${lock.lockfileVersion},
  "requires": true,
  "packages": {
${lines.join(',\n')}
  }
}
`);
