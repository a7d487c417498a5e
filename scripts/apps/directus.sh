#!/bin/bash
# Runs Directus 11 with a table of 53-bit keys and a table of keys of the type randflake.
#
#   PGHOST=... PGPORT=... PGUSER=... scripts/apps/directus.sh
#
# The server at PGHOST needs the extension and a TCP address, and must trust the superuser PGUSER.
# Needs Node.js, npm, curl and a compiler. Makes a database, a Directus server, and 1 GB of files.
#
# These points need attention. Each point names the page that describes it.
#   Directus shows bigint keys as strings in JSON (docs/drivers-javascript.md).
#   A malformed key of the type randflake causes error 500 instead of 404 (docs/drivers.md, "Answer
#   malformed keys").

# shellcheck source=scripts/apps/lib.sh
. "$(dirname "$0")/lib.sh" randflake_type directus@11
export DB_CLIENT=pg DB_HOST=$PGHOST DB_PORT=${PGPORT:-5432} DB_USER=$PGUSER DB_DATABASE=$PGDATABASE DB_PASSWORD=none
export KEY=apps SECRET=apps ADMIN_EMAIL=admin@example.org ADMIN_PASSWORD=apps ADMIN_TOKEN=apps PORT=8155 TELEMETRY=false
npx directus bootstrap >log
psql -qX -v ON_ERROR_STOP=1 <<'END'
CREATE TABLE article (id bigint PRIMARY KEY DEFAULT randflake53_generate(), title text, author uuid REFERENCES directus_users);
CREATE TABLE remark (id randflake PRIMARY KEY DEFAULT randflake_next(), article bigint REFERENCES article, body text);
END
node node_modules/directus/cli.js start >log 2>&1 &
server=$!
curl -sf --retry 60 --retry-delay 1 --retry-connrefused -o ping localhost:8155/server/ping

# api METHOD PATH [BODY]: sends a request to Directus, and prints the id in the answer.
api() {
    curl -sf -X "$1" -H 'Authorization: Bearer apps' -H 'Content-Type: application/json' \
        "localhost:8155/$2" ${3:+-d "$3"} | sed 's/.*"id":"\([^"]*\)".*/\1/'
}
is() {
    echo "$1: $2"
    [ "$2" = "$3" ] || { echo "failed: $3 was expected"; exit 1; }
}
user=$(api GET users/me)
article=$(api POST items/article "{\"title\":\"One\",\"author\":\"$user\"}")
is 'an article' "$article" "$(psql -Atc 'SELECT id FROM article WHERE id > 2 ^ 32')"
is 'by its key' "$(api GET "items/article/$article")" "$article"
is 'by its author' "$(api GET "items/article?filter\[author\]\[_eq\]=$user")" "$article"
is 'changed' "$(api PATCH "items/article/$article" '{"title":"Two"}')" "$article"
remark=$(api POST items/remark "{\"article\":$article,\"body\":\"x\"}")
is 'a remark, of the type' "$(api GET "items/remark/$remark")" "$(psql -Atc 'SELECT id FROM remark')"
is 'a malformed key' "$(curl -s -o answer -w '%{http_code}' -H 'Authorization: Bearer apps' localhost:8155/items/remark/42)" 500
api DELETE "items/remark/$remark"
api DELETE "items/article/$article"
is 'left' "$(psql -Atc 'SELECT count(*) FROM article')" 0
