#!/bin/bash
# Apache AGE 1.8.0 (Debian sid, PostgreSQL 18.6) keeps the low 32 bits of each number in toIntegerList().
#
# Guess: toIntegerList() converts each element as toInteger() does, which is exact for 64 bits.
# Seen:  numbers and texts beyond 32 bits become other numbers without an error, so keys of a list
#        find other vertices. toInteger() of each element of an UNWIND is exact.
. findings/lib.sh
start_server_of_sid postgresql-18-age -- -c shared_preload_libraries=age
sql postgres <<'END' | grep . | seen 3<<'SEEN'
SET client_min_messages = warning;
CREATE EXTENSION age;
SET search_path = ag_catalog, public;
SELECT create_graph('graph');
SELECT extversion FROM pg_extension WHERE extname = 'age';
SELECT * FROM cypher('graph', $$
    UNWIND ['2147483647', '2147483648', '9007199254740993', '-7000000000', -7000000000] AS key
    RETURN key, toInteger(key), toIntegerList([key])
$$) AS (key agtype, one agtype, list agtype);
END
1.8.0
"2147483647"|2147483647|[2147483647]
"2147483648"|2147483648|[-2147483648]
"9007199254740993"|9007199254740993|[1]
"-7000000000"|-7000000000|[1589934592]
-7000000000|-7000000000|[1589934592]
SEEN
