#!/bin/bash
# Full text search of PostgreSQL 15.20 (Debian bookworm) splits one in a hundred keys of 13 characters
# from 0 to v, and makes NOT of a negative bigint.
#
# Guess: digits and letters without a blank are one lexeme, so `quote_literal(key)::tsquery` finds the
#        row of its key, and websearch_to_tsquery() looks for a number with its sign.
# Seen:  digits, one e and digits at the beginning are a lexeme, and the rest is another. The cast
#        then finds nothing; plainto_tsquery() finds all. websearch_to_tsquery() of -42 returns all
#        rows but that of 42.
. findings/lib.sh
start_server --
sql postgres <<'END' | seen 3<<'SEEN'
CREATE TABLE t AS SELECT key, to_tsvector('simple', 'order ' || key) AS words FROM generate_series(1, 20000) AS i, LATERAL (
    SELECT string_agg(substr('0123456789abcdefghijklmnopqrstuv', get_byte(decode(md5(i::text), 'hex'), n)
        % least(32, 16 + 16 * n) + 1, 1), '') FROM generate_series(0, 12) AS n) AS k(key);
SELECT count(*), count(*) FILTER (WHERE words @@ quote_literal(key)::tsquery),
    count(*) FILTER (WHERE words @@ plainto_tsquery('simple', key)) FROM t;
SELECT to_tsvector('simple', '1e00055hq97d1'), to_tsvector('simple', '1f00055hq97d1'), websearch_to_tsquery('simple', '-42');
SELECT key, to_tsvector('simple', key::text) @@ websearch_to_tsquery('simple', '-42') FROM unnest('{-42, -7, 42}'::bigint[]) AS key;
END
20000|19823|20000
'1e00055':1 'hq97d1':2|'1f00055hq97d1':1|!'42'
-42|t
-7|t
42|f
SEEN
