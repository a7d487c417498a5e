#!/bin/bash
# Takes 1,000 identifiers of each form through tools and back, and compares them.
#
#   bench/interchange/run.sh              all tools; writes the table of docs/interchange.md
#   bench/interchange/run.sh quick KEYS   the quick tools; reads identifiers from the file KEYS, as
#                                         keys.sql prints them, and prints lines of the table
#   bench/interchange/run.sh one TOOL     one tool, by its label
#
# A line of the table has the tool and its version, and the results for bigint, 53 bits, text, text
# with a prefix and the type. A result is "exact", or "error" if the tool fails or refuses, or how
# many of the identifiers come back changed without an error.

# shellcheck disable=SC1091 # beside this file
set -euo pipefail
cd "$(dirname "$(realpath "$0")")/../.."
. scripts/lib.sh
here=$PWD/bench/interchange
. "$here/tools.sh"

make_keys() {
    local user
    user=$(server_user)
    PATH=$("$PG_CONFIG" --bindir):$PATH
    chown "$user" "$work"
    as_user "$user" "$(command -v initdb)" -D "$work/data" -U bench -A trust >/dev/null
    cat >>"$work/data/postgresql.conf" <<END
listen_addresses = ''
unix_socket_directories = '$work'
shared_preload_libraries = 'randflake'
randflake.node_id = 0
randflake.secret = '00112233445566778899aabbccddeeff'
END
    as_user "$user" "$(command -v pg_ctl)" -D "$work/data" -l "$work/log" -w start >/dev/null
    psql -Xq -h "$work" -U bench -d postgres -c 'CREATE EXTENSION randflake_type CASCADE'
    psql -XAtq -F, -v ON_ERROR_STOP=1 -h "$work" -U bench -d postgres -f "$here/keys.sql" >"$work/keys"
    as_user "$user" "$(command -v pg_ctl)" -D "$work/data" -m immediate stop >/dev/null
}

# Installs what the slow tools need.
install_tools() {
    command -v npm >/dev/null || install_packages nodejs npm
    install_packages php-cli ruby jq gawk mawk datamash sqlite3 miller yq csvkit redis-server r-base-core \
        r-cran-data.table r-cran-jsonlite python3-pandas gdal-bin tcl gnumeric libreoffice-calc
    export INTERCHANGE_PACKAGES=$work/npm
    mkdir "$INTERCHANGE_PACKAGES"
    # shellcheck disable=SC2046 # packages
    npm install --silent --prefix "$INTERCHANGE_PACKAGES" --ignore-scripts --no-audit --no-fund \
        $(node "$here/npm.mjs" | cut -d '|' -f 2) >/dev/null
}

# trip SCRIPT FORM ROWS: takes a form's last ROWS identifiers through the script. Sets `result`.
trip() {
    local csv json scratch status=0 quote=
    scratch=$(mktemp -d -p "$work") csv=$scratch/csv json=$scratch/json
    tail -n "$3" "$work/keys" | cut -d, -f "$2" >"$scratch/sent"
    [ "$2" -le 2 ] || quote='"'
    { echo id; cat "$scratch/sent"; } >"$csv"
    sed "s/.*/$quote&$quote/" "$scratch/sent" | paste -sd, | sed 's/.*/[&]/' >"$json"
    (set -e; eval "$1") >"$scratch/back" 2>"$scratch/errors" </dev/null || status=$?
    result=$(paste -d '\n' "$scratch/sent" <(tr -d '\r"' <"$scratch/back" | head -n "$3") |
        awk 'NR % 2 { x = $0; next } (x "") != ($0 "") { n++ } END { print n ? n : "exact" }')
    [ $status -eq 0 ] || result=error
    [ -z "$only" ] || [ "$result" = exact ] || head -n 3 "$scratch/errors"
    [ -z "$only" ] || paste "$scratch/sent" "$scratch/back" | awk -F '\t' '($1 "") != ($2 "")' | head -n 4 || true
}

# tool LABEL VERSION SCRIPT: takes each form through the tool, and prints the line of the table.
tool() {
    local i line result
    [[ -z $only || $only = "$1" ]] || return 0
    line="| $1 $(eval "$2" | head -n 1 | grep -oE '[0-9]+(\.[0-9A-Za-z]+)+' | head -n 1) |"
    for i in 1 2 3 4 5; do
        trip "$3" $i 1000
        # A tool that refuses extremes may still change the others.
        [ "$result" != error ] || trip "$3" $i 980
        [[ $result = e* ]] || result="**silently changed**: $result"
        line+=" $result |"
    done
    echo "$line"
}

mode=${1-} only=''
[ "$mode" != one ] || only=$2
work=$(mktemp -d)
chmod 755 "$work"
trap 'rm -rf "$work"' EXIT
if [ "$mode" = quick ]; then
    cp "$2" "$work/keys"
else
    find_postgresql
    make_keys
    install_tools
    PATH=/usr/bin:$PATH # Debian's Python has pandas
fi
if [ "$mode" = quick ]; then
    quick
elif [ -n "$only" ]; then
    quick
    slow
else
    {
        echo '| tool, version | bigint | 53 bits | text | text with a prefix | the type |'
        echo '|---|---|---|---|---|---|'
        quick
        slow
    } >"$work/table"
    fill_table docs/interchange.md table <"$work/table"
fi
