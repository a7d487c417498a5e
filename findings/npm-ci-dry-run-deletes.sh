#!/bin/bash
# The dry run of `npm ci` deletes installed packages, in npm 9.2.0 (Debian 12) and 9.9.4.
#
# Guess: a dry run changes nothing; it reports what the command would do.
# Seen:  the packages are gone, and the exit status is 0. The lock file in node_modules stays, so a
#        script that compares its age takes the packages for installed. npm 10.9.2 keeps them.
. findings/lib.sh ms@2.1.3
for version in 9.2.0 9.9.4 10.9.2; do
    npm ci --silent --no-audit --no-fund --ignore-scripts
    npm exec --yes "npm@$version" -- ci --dry-run --no-audit --no-fund >log 2>&1
    echo "npm $version: status $?, $(find node_modules -name .package-lock.json | wc -l) lock file, $(find node_modules/ms -name package.json 2>/dev/null | wc -l) package"
done | seen 3<<'SEEN'
npm 9.2.0: status 0, 1 lock file, 0 package
npm 9.9.4: status 0, 1 lock file, 0 package
npm 10.9.2: status 0, 1 lock file, 1 package
SEEN
