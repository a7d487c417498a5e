# shellcheck shell=bash disable=SC2034,SC2154 # shares variables with run.sh and lib.sh
# The processor time of randflake_generate()'s query, sampled by perf: the extension and the clock by
# function, the server and the kernel as one each.

suite_profile() {
    local pid query='SELECT count(randflake_generate()) FROM generate_series(1, 2000000)'
    if ! perf record -q -e cpu-clock -o "$work/perf.data" true 2>/dev/null; then
        say "perf: not installed or not permitted, skipped"
        return
    fi
    yes "$query;" 2>/dev/null | PGAPPNAME=profiled psql -X >/dev/null 2>&1 &
    until pid=$(value "SELECT pid FROM pg_stat_activity
                        WHERE application_name = 'profiled' AND query = '$query;'") && [ "$pid" ]; do
        sleep 0.1
    done
    perf record -q -e cpu-clock -F 4999 -p "$pid" -o "$work/perf.data" -- sleep $((3 * seconds))
    value "SELECT pg_terminate_backend($pid)" >/dev/null
    wait

    perf report -i "$work/perf.data" --stdio -F overhead,dso,sym -t '|' 2>/dev/null | awk -F'|' '
        /^ *[0-9.]+% *[|]/ {
            gsub(/ /, "", $2)
            name = $3
            sub(/^\[.\] /, "", name)
            sub(/\(anonymous namespace\)::/, "", name)
            sub(/[ (].*/, "", name)
            what = $2 == "randflake.so" ? name : $2 == "[vdso]" ? "the clock" : \
                   $2 ~ /^\[/ ? "the kernel" : "the server and its libraries"
            share[what] += $1
        }
        END {
            for (what in share)
                if (share[what] >= 0.05)
                    printf "profile,%s,the query with randflake_generate(),%% of its processor time,1,%.2f,\n",
                        what, share[what]
        }' | sort -t, -k6,6nr >>"$samples"
}
