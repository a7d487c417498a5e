#!/bin/bash
# pljs 1.0.5 (Debian sid, PostgreSQL 18.6) rounds texts that JavaScript gives for a bigint.
#
# Guess: a text goes through the input function of bigint, so all digits are kept, as in PL/Perl.
# Seen:  as a parameter and as a result, a text above 2^53 becomes a rounded number, and the largest
#        key becomes the smallest, without an error. A BigInt is exact, and so is a cast in SQL.
. findings/lib.sh
start_server_of_sid postgresql-18-pljs --
sql postgres <<'END' | grep . | seen 3<<'SEEN'
CREATE EXTENSION pljs;
CREATE FUNCTION returned(key text) RETURNS bigint LANGUAGE pljs AS 'return key';
CREATE FUNCTION passed(key text, type text) RETURNS text LANGUAGE pljs AS
    'return pljs.execute(`SELECT $1::${type} AS key`, [key])[0].key';
CREATE FUNCTION passed(key bigint) RETURNS bigint LANGUAGE pljs AS
    'return pljs.execute("SELECT $1::bigint AS key", [key])[0].key';
SELECT extversion FROM pg_extension WHERE extname = 'pljs';
SELECT key, returned(key), passed(key, 'bigint'), passed(key, 'text::bigint'), passed(key::bigint)
    FROM unnest('{-9007199254740993, 9007199254740993, 9223372036854775807}'::text[]) AS key;
END
1.0.5
-9007199254740993|-9007199254740992|-9007199254740992|-9007199254740993|-9007199254740993
9007199254740993|9007199254740992|9007199254740992|9007199254740993|9007199254740993
9223372036854775807|-9223372036854775808|-9223372036854775808|9223372036854775807|9223372036854775807
SEEN
