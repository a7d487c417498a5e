# shellcheck shell=bash
# `. lib.sh EXTENSION PACKAGE...` makes the script's database, with the extension in a schema of its
# own, and goes to a directory with these packages of npm, which is deleted at the end.
set -euo pipefail
PGDATABASE=randflake_$(basename "$0" .sh)
export PGDATABASE
psql -qX -v ON_ERROR_STOP=1 -d postgres -c "DROP DATABASE IF EXISTS $PGDATABASE" -c "CREATE DATABASE $PGDATABASE"
psql -qX -v ON_ERROR_STOP=1 <<END
CREATE SCHEMA randflake;
CREATE EXTENSION $1 SCHEMA randflake CASCADE;
ALTER DATABASE $PGDATABASE SET search_path = public, randflake;
END
directory=$(mktemp -d) server=''
trap '[ -z "$server" ] || kill "$server"; rm -r "$directory"' EXIT
cd "$directory"
echo '{"private":true}' >package.json
npm install --silent --no-audit --no-fund "${@:2}"
