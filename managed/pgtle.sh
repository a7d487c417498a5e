#!/bin/sh
# Prints the statement that registers randflake.sql with pg_tle as the extension randflake_managed.
# If VERSION is the registered version, the script prints the statements that register an update
# from VERSION:
#
#   managed/pgtle.sh           | psql -X -v ON_ERROR_STOP=1 -d "$DATABASE_URL"
#   managed/pgtle.sh VERSION   | psql -X -v ON_ERROR_STOP=1 -d "$DATABASE_URL"

set -eu
case ${1-} in *[!0-9.]*) echo "pgtle.sh: not a version: $1" >&2; exit 2 ;; esac
cd "$(dirname "$0")"
[ -e randflake.sql ] || { echo 'pgtle.sh: run "make managed" first, which makes randflake.sql' >&2; exit 1; }
version=$(sed -n "s/^default_version = '\(.*\)'/\1/p" ../randflake.control)
# shellcheck disable=SC2016 # dollar quotes
quote='$_randflake_managed_$'
if [ $# -eq 0 ]; then
    echo "SELECT pgtle.install_extension('randflake_managed', '$version', 'identifiers of randflake, in SQL', $quote"
else
    echo "SELECT pgtle.install_update_path('randflake_managed', '$1', '$version', $quote"
fi
cat randflake.sql
# With this statement, a dump includes the row of the table, although an extension owns the table.
echo "SELECT pg_catalog.pg_extension_config_dump('randflake.randflake_state', '');$quote);"
[ $# -eq 0 ] || echo "SELECT pgtle.set_default_version('randflake_managed', '$version');"
