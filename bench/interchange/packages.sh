# shellcheck shell=bash
# Installs what the slow tools of tools.sh need.

command -v npm >/dev/null || install_packages nodejs npm
install_packages php-cli ruby jq gawk mawk datamash sqlite3 miller yq csvkit redis-server r-base-core \
    r-cran-data.table r-cran-jsonlite python3-pandas gdal-bin tcl gnumeric libreoffice-calc
export INTERCHANGE_PACKAGES=${INTERCHANGE_PACKAGES:-$work/npm}
mkdir -p "$INTERCHANGE_PACKAGES"
(cd "$INTERCHANGE_PACKAGES" && echo '{"private": true}' >package.json &&
    npm install --ignore-scripts --no-audit --no-fund csvtojson@2.0.14 d3-dsv@3.0.2 csv-parse@7.0.3 papaparse@5.7.1 \
        exceljs@4.4.0 xlsx@0.18.5 js-yaml@5.5.0 yaml@2.9.1 bson@7.3.4 parquetjs-lite@0.8.7 apache-arrow@21.2.0 \
        @duckdb/node-api@1.5.6-r.1 @msgpack/msgpack@3.1.3 cbor-x@1.6.9) >/dev/null
