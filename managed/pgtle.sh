#!/bin/sh
# Prints the statement that registers randflake.sql with pg_tle as the extension randflake_managed:
#
#   managed/pgtle.sh | psql -X -v ON_ERROR_STOP=1 -d "$DATABASE_URL"

set -eu
cd "$(dirname "$0")"
version=$(sed -n "s/^default_version = '\(.*\)'/\1/p" ../randflake.control)
echo "SELECT pgtle.install_extension('randflake_managed', '$version', 'identifiers of randflake, in SQL', \$_randflake_managed_\$"
cat randflake.sql
# shellcheck disable=SC2016 # dollar quotes
echo '$_randflake_managed_$);'
