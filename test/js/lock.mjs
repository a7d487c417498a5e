// Shortens package-lock.json: a line for each package, without what an installation does not need.

import { readFileSync, writeFileSync } from 'node:fs';

const lock = JSON.parse(readFileSync('package-lock.json'));
const lines = Object.entries(lock.packages).map(([path, entry]) => {
  const { license, engines, funding, hasInstallScript, peerDependenciesMeta = {}, ...rest } = entry;
  for (const name of Object.keys(peerDependenciesMeta)) delete rest.peerDependencies?.[name];
  if (!Object.keys(rest.peerDependencies ?? { none: '' }).length) delete rest.peerDependencies;
  return `    ${JSON.stringify(path)}: ${JSON.stringify(rest)}`;
});
writeFileSync('package-lock.json', `{
  "lockfileVersion": ${lock.lockfileVersion},
  "requires": true,
  "packages": {
${lines.join(',\n')}
  }
}
`);
