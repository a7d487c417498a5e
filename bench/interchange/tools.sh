# shellcheck shell=bash disable=SC2016,SC2154 # run.sh sets the variables
# Lists tools that take identifiers and give them back:
#
#   tool LABEL VERSION SCRIPT
#
# VERSION prints the tool's version. SCRIPT reads $csv (the heading "id", then one value a line) or
# $json (an array: numbers, or strings for the forms with letters), may write to the directory
# $scratch, and prints one value a line. A tool that compares prints, for each value, the first
# value in the file that it calls equal. run.sh compares what SCRIPT prints with the file.

# Needs no package beyond those of scripts/test_tools.sh.
quick() {
    tool 'Node.js, JSON.parse' 'node --version' 'node -e "for (const x of JSON.parse(fs.readFileSync(process.argv[1]))) console.log(String(x))" $json'
    tool 'Python, json' 'python3 --version' 'python3 -c "import json, sys; [print(x) for x in json.load(open(sys.argv[1]))]" $json'
    tool 'Ruby, YAML' 'ruby --version' 'ruby -ryaml -rjson -e "puts YAML.load(YAML.dump(JSON.parse(File.read(ARGV[0]))))" $json'
    tool 'PHP, json_decode' 'php -r "echo PHP_VERSION;"' 'php -r "foreach (json_decode(file_get_contents(\$argv[1])) as \$x) echo \$x, \"\\n\";" $json'
    tool 'PHP, ==' 'php -r "echo PHP_VERSION;"' 'php -r "\$a = file(\$argv[1], 2); array_shift(\$a); foreach (\$a as \$x) foreach (\$a as \$y) if (\$x == \$y) { echo \$y, \"\\n\"; break; }" $csv'
    tool 'Perl, JSON::PP' 'perl -MJSON::PP -e "print JSON::PP->VERSION"' 'perl -MJSON::PP -e "local \$/; print qq(\$_\n) for @{decode_json(encode_json(decode_json(<>)))}" $json'
    tool 'gawk, == of fields' 'gawk --version | head -n 1' 'gawk "NR > 1 { v[NR] = \$1 } END { for (i = 2; i <= NR; i++) for (j = 2; j <= NR; j++) if (v[i] == v[j]) { print v[j]; break } }" $csv'
    tool 'mawk, == of fields' 'mawk -W version 2>&1 | head -n 1' 'mawk "NR > 1 { v[NR] = \$1 } END { for (i = 2; i <= NR; i++) for (j = 2; j <= NR; j++) if (v[i] == v[j]) { print v[j]; break } }" $csv'
    tool 'jq' 'jq --version' 'jq -r ".[]" $json'
    tool 'SQLite, a column bigint' 'sqlite3 --version' 'sqlite3 :memory: "CREATE TABLE t (id bigint)" ".mode csv" ".import --skip 1 $csv t" ".mode list" "SELECT id FROM t ORDER BY rowid"'
    tool 'GNU datamash, max' 'datamash --version | head -n 1' 'sed 1d $csv | datamash -g 1 max 1 | cut -f 2'
}

# Needs packages that run.sh installs.
slow() {
    tool 'Miller, sorted by -nf' 'mlr --version' 'mlr --icsv --onidx sort -nr id then cat $csv >$scratch/sorted; sed 1d $csv | while read -r x; do grep -xFe "$x" $scratch/sorted || echo none; done'
    tool 'yq (Python), YAML' 'dpkg-query -W -f "\${Version}" yq' 'yq -y . $json >$scratch/yaml; yq -r ".[]" $scratch/yaml'
    tool 'csvkit, csvjson' 'csvjson --version' 'csvjson $csv >$scratch/j; python3 -c "import json, sys; [print(int(x[\"id\"]) if type(x[\"id\"]) is float else x[\"id\"]) for x in json.load(open(sys.argv[1]))]" $scratch/j'
    tool 'Redis, Lua with cjson' 'redis-server --version' 'redis_with "EVAL" "local r = {} for _, x in ipairs(cjson.decode(ARGV[1])) do r[#r + 1] = tostring(cjson.decode(cjson.encode({x}))[1]) end return r" 0 "$(cat $json)"'
    tool 'Redis, key made in Lua' 'redis-server --version' 'redis_with "EVAL" "local r = {} for _, x in ipairs(cjson.decode(ARGV[1])) do r[#r + 1] = string.sub(\"k:\" .. x, 3) end return r" 0 "$(cat $json)"'
    tool 'R, read.csv' 'R --version | head -n 1' 'Rscript -e "x <- read.csv(commandArgs(TRUE)[1])\$id; writeLines(if (is.numeric(x)) format(x, scientific = FALSE, trim = TRUE, digits = 22) else x)" $csv'
    tool 'R, data.table fread and fwrite' 'Rscript -e "cat(format(packageVersion(\"data.table\")))"' 'Rscript -e "library(data.table); a <- commandArgs(TRUE); fwrite(fread(a[1]), a[2])" $csv $scratch/f >/dev/null; sed 1d $scratch/f'
    tool 'R, read.csv and fwrite' 'Rscript -e "cat(format(packageVersion(\"data.table\")))"' 'Rscript -e "a <- commandArgs(TRUE); data.table::fwrite(read.csv(a[1]), a[2])" $csv $scratch/f; sed 1d $scratch/f'
    tool 'R, jsonlite' 'Rscript -e "cat(format(packageVersion(\"jsonlite\")))"' 'Rscript -e "a <- commandArgs(TRUE); cat(jsonlite::toJSON(jsonlite::fromJSON(a[1]), digits = NA))" $json >$scratch/j; python3 -c "import json, sys; [print(x) for x in json.load(open(sys.argv[1]))]" $scratch/j'
    tool 'pandas, read_csv' 'python3 -c "import pandas; print(pandas.__version__)"' 'python3 -c "import pandas, sys; [print(x) for x in pandas.read_csv(sys.argv[1])[\"id\"]]" $csv'
    tool 'pandas, read_csv with a gap' 'python3 -c "import pandas; print(pandas.__version__)"' '{ cat $csv; echo "\"\""; } >$scratch/gap; python3 -c "import pandas, sys; pandas.read_csv(sys.argv[1], skip_blank_lines=False)[:-1].to_csv(sys.stdout, index=False, header=False, float_format=\"%.0f\")" $scratch/gap'
    tool 'pandas, read_json' 'python3 -c "import pandas; print(pandas.__version__)"' 'python3 -c "import pandas, sys; [print(x) for x in pandas.read_json(sys.argv[1], typ=\"series\")]" $json'
    tool 'pandas, read_json of strings' 'python3 -c "import pandas; print(pandas.__version__)"' 'sed 1d $csv | sed "s/.*/\"&\"/" | paste -sd, | sed "s/.*/[&]/" >$scratch/s; python3 -c "import pandas, sys; [print(x) for x in pandas.read_json(sys.argv[1], typ=\"series\")]" $scratch/s'
    tool 'GDAL, id of a GeoJSON feature' 'ogrinfo --version' 'features; ogr2ogr -f CSV $scratch/o.csv $scratch/in -dialect OGRSQL -sql "SELECT FID FROM \"in\""; sed 1d $scratch/o.csv'
    tool 'GDAL, GeoJSON to Shapefile' 'ogrinfo --version' 'properties; ogr2ogr $scratch/s.shp $scratch/in; ogr2ogr -f GeoJSONSeq $scratch/out $scratch/s.shp; property'
    tool 'GDAL, GeoJSON to GeoPackage' 'ogrinfo --version' 'properties; ogr2ogr $scratch/s.gpkg $scratch/in; ogr2ogr -f GeoJSONSeq $scratch/out $scratch/s.gpkg; property'
    tool 'GDAL, GeoJSON to KML' 'ogrinfo --version' 'properties; ogr2ogr -f KML $scratch/s.kml $scratch/in; ogr2ogr -f GeoJSONSeq $scratch/out $scratch/s.kml; property'
    tool 'Tcl, ==' 'echo "puts [info patchlevel]" | tclsh' 'echo "set a [lrange [split [string trim [read [open $csv]]] \\n] 1 end]; foreach x \$a { foreach y \$a { if {\$x == \$y} { puts \$y; break } } }" | tclsh'
    tool 'Gnumeric, CSV to XLSX' 'ssconvert --version 2>&1 | head -n 1' 'cp $csv $scratch/a.csv; ssconvert $scratch/a.csv $scratch/a.xlsx 2>/dev/null; ssconvert $scratch/a.xlsx $scratch/b.csv 2>/dev/null; sed 1d $scratch/b.csv'
    tool 'LibreOffice, CSV to ODS' 'soffice --version' 'cp $csv $scratch/a.csv; office ods $scratch/a.csv; office csv $scratch/a.ods; sed 1d $scratch/a.csv'
    local name packages
    while IFS='|' read -r name packages; do
        tool "$name" "echo $packages" "node $here/npm.mjs '$name' \$csv \$json \$scratch"
    done < <(node "$here/npm.mjs")
}

# redis_with COMMAND...: runs a command on a Redis server of its own.
redis_with() {
    redis-server --port 0 --unixsocket "$scratch/socket" --save '' >"$scratch/redis.log" &
    until redis-cli -s "$scratch/socket" ping >/dev/null 2>&1; do sleep 0.1; done
    redis-cli -s "$scratch/socket" "$@"
    kill %1
    wait
}

# Write a map of points to $scratch/in, with the values as ids of the features, or as a property.
features() {
    map 'f"{{\"type\":\"Feature\",\"id\":{x},\"properties\":{{\"n\":{i}}},\"geometry\":{{\"type\":\"Point\",\"coordinates\":[1,2]}}}}"'
}
properties() {
    map 'f"{{\"type\":\"Feature\",\"properties\":{{\"key\":{x}}},\"geometry\":{{\"type\":\"Point\",\"coordinates\":[1,2]}}}}"'
}
map() {
    python3 -c 'import json, sys
rows = [eval(sys.argv[2]) for i, x in enumerate(map(json.dumps, json.load(open(sys.argv[1]))))]
print("{\"type\":\"FeatureCollection\",\"features\":[" + ",".join(rows) + "]}")' "$json" "$1" >"$scratch/in"
}
# property FILE: prints the property "key" of each line of JSON. Whole numbers have no ".0".
property() {
    python3 -c 'import json, sys
for line in open(sys.argv[1]):
    x = json.loads(line)["properties"].get("key", "none")
    print(int(x) if type(x) is float else x)' "$scratch/out"
}

office() {
    soffice --headless "-env:UserInstallation=file://$scratch/profile" --convert-to "$1" --outdir "$scratch" "$2" >/dev/null 2>&1
}
