# shellcheck shell=bash disable=SC2034,SC2154 # shares variables with run.sh and lib.sh
# Instructions per row, counted by callgrind in a single-user server: those of the executor with each
# function, and those of randflake_generate()'s query by C function. Valgrind does not support AVX-512,
# so runs are encrypted with AVX2 here.

suite_instructions() {
    local rows=$traced_rows label expression
    if ! command -v valgrind >/dev/null; then
        say "valgrind: not installed, skipped"
        return
    fi
    stop_server
    while IFS='|' read -r label expression; do
        count_instructions "SELECT count($expression) FROM generate_series(1, $rows)"
        sample instructions "$label" 'the executor and the function' 'instructions per row' 1 \
            "$(awk -v rows="$rows" '/^summary:/ { printf "%.1f", $2 / rows }' "$work/callgrind")" \
            'empty C function'
        if [ "$label" = 'randflake_generate()' ]; then
            by_function >"$work/by_function"
        fi
    done <<<"$generators"
    awk -F, -v rows="$rows" -v metric='the query with randflake_generate()' '$2 / rows >= 0.5 {
        printf "instructions,%s,%s,instructions per row,1,%.1f,\n", $1, metric, $2 / rows
    }' "$work/by_function" >>"$samples"
    start_server
}

# Runs a query in a single-user server; writes the counts of its executor to $work/callgrind.
count_instructions() {
    echo "$1" | as_server valgrind --tool=callgrind --callgrind-out-file="$work/callgrind" \
        --toggle-collect=standard_ExecutorRun \
        "$(command -v postgres)" --single -D "$work/data" bench >"$work/callgrind.log" 2>&1 ||
        die "callgrind failed: $(tail -5 "$work/callgrind.log")"
}

# Lines "function,instructions" of $work/callgrind, largest first: the extension by function, the
# server as one. Code inlined from several files gives several lines for one function; C++ functions
# lose their arguments.
by_function() {
    callgrind_annotate --auto=no --show-percs=no --threshold=100 "$work/callgrind" | awk '
        /^ *[0-9,]+ +[^ ]*:/ {
            instructions = $1
            gsub(/,/, "", instructions)
            name = $0
            sub(/^ *[0-9,]+ +[^ :]*:/, "", name)
            sub(/\(anonymous namespace\)::/, "", name)
            sub(/(@@| \[|\().*/, "", name)
            if (name == "time" || name ~ /clock_gettime/)
                name = "the clock"
            else if (!/\/randflake\.so\]/)
                name = "the server and its libraries"
            sum[name] += instructions
        }
        END { for (name in sum) printf "%s,%d\n", name, sum[name] }' | sort -t, -k2,2nr
}
