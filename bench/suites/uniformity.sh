# shellcheck shell=bash disable=SC2034,SC2154 # shares variables with run.sh and lib.sh
# A million identifiers in 256 buckets, by their top 8 bits and by their low 8 bits, with the
# chi-square of each (255 degrees of freedom) and the probability of one as large or larger.

suite_uniformity() {
    local bits column chi_square
    sql --csv -c "
        WITH ids AS MATERIALIZED (SELECT randflake_generate() AS id FROM generate_series(1, 1000000)),
             top AS (SELECT (id >> 56) & 255 AS bucket, count(*) FROM ids GROUP BY 1),
             low AS (SELECT id & 255 AS bucket, count(*) FROM ids GROUP BY 1)
        SELECT bucket, coalesce(top.count, 0) AS top_bits, coalesce(low.count, 0) AS low_bits
          FROM generate_series(0, 255) AS bucket
          LEFT JOIN top USING (bucket) LEFT JOIN low USING (bucket) ORDER BY bucket" \
        >"$work/uniformity.csv"
    for column in 2 3; do
        bits=$([ $column = 2 ] && echo 'top 8 bits' || echo 'low 8 bits')
        chi_square=$(awk -F, -v column=$column 'NR > 1 { n += $column; squares += $column ^ 2 }
            END { printf "%.1f", squares * 256 / n - n }' "$work/uniformity.csv")
        sample uniformity "$bits" 'chi-square of 256 buckets' '255 degrees of freedom' 1 "$chi_square" ''
        sample uniformity "$bits" 'p-value' probability 1 \
            "$(chi_square_p "$chi_square" 255)" ''
    done
}
