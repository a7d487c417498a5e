#!/bin/bash
# Checks that all copies of the version agree. META.json has X.Y.Z, and the control files have X.Y.
#
#   scripts/check_versions.sh             while working
#   scripts/check_versions.sh --release   at a release: dates and status, too

set -euo pipefail
cd "$(dirname "$(realpath "$0")")/.."
controls=(randflake*.control) spec=packaging/rpm/randflake.spec
version=$(sed -n "s/^default_version = '\(.*\)'$/\1/p" "${controls[0]}")
release=$(sed -n 's/^    "version": "\(.*\)",$/\1/p' META.json)
homepage=$(sed -n 's/.*"homepage": "\(.*\)".*/\1/p' META.json)
status=0

# expect WHERE TEXT PATTERN [COUNT]: checks that the text has COUNT matching lines, by default one.
expect() {
    [ "$(grep -cE "$3" <<<"$2")" = "${4-1}" ] || { echo "$1: not ${4-1} × $3" && status=1; }
}

expect META.json "$release" "^$version\.[0-9]+$"
expect META.json "$(<META.json)" "^( {4}| {12})\"version\": \"$release\",?$" 4
expect META.json "$(<META.json)" "\"file\": \"extension/[a-z_]+--[0-9.]+\.sql\"" 3
expect 'control files' "$(cat "${controls[@]}")" "^default_version = '$version'$" 3
expect CHANGELOG.md "$(grep -m 1 '^## ' CHANGELOG.md)" "^## $release \(([0-9-]{10}|not released yet)\)$"
expect debian/changelog "$(head -n 1 debian/changelog)" "^randflake \($release-[0-9]+\) "
expect $spec "$(<$spec)" "^Version: +$release$"
expect $spec "$(grep -A 1 '^%changelog' $spec)" "^\* .* - $release-[0-9]+$"
for file in debian/control.in debian/copyright debian/watch $spec; do
    expect "$file" "$(<"$file")" "^(Homepage:|Source:|URL:|https).*$homepage|^$homepage"
done
perl -MJSON::PP -0777 -ne 'decode_json($_)' META.json
if [ "${1-}" = --release ]; then
    expect CHANGELOG.md "$(grep -m 1 '^## ' CHANGELOG.md)" '[0-9]\)$'
    expect META.json "$(<META.json)" '"release_status": "stable"'
    expect debian/changelog "$(head -n 1 debian/changelog)" UNRELEASED 0
fi
exit $status
