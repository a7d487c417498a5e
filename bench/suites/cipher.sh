# shellcheck shell=bash disable=SC2034,SC2154 # shares variables with run.sh and lib.sh
# The cipher alone, with Google Benchmark.

suite_cipher() {
    ${CXX:-c++} -std=c++20 -O2 -fno-exceptions -fno-rtti -I"$root/src" -o "$work/cipher_bench" \
        "$bench/cipher_bench.cpp" "$root/src/core/identifier/cipher"*.cpp -lbenchmark -lpthread
    "$work/cipher_bench" --benchmark_format=csv --benchmark_repetitions="$repetitions" \
        --benchmark_enable_random_interleaving=true --benchmark_min_time=0.1 2>"$work/cipher.log" |
        awk -F, '/^"/ && $1 !~ /_(mean|median|stddev|cv)"/ {
            gsub(/"/, "", $1)
            printf "cipher,%s,processor time,ns per identifier,%d,%.4g,encrypt one\n",
                $1, ++n[$1], 1e9 / $7
        }' | sort -t, -k2,2 -k5,5n >>"$samples"
}
