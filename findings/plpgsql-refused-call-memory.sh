#!/bin/bash
# PostgreSQL 15.20 (Debian bookworm) keeps memory of each refused call of a PL/pgSQL trigger function
# until the session ends.
#
# Guess: the compilation that fails is freed with its transaction, or is kept once for each function.
# Seen:  each refused call leaves one more memory context "PL/pgSQL function", a few kB, so a
#        session of a pooler that repeats the call grows without end. A function that fails
#        while it runs keeps what its first call made, however often the call is repeated.
. findings/lib.sh
start_server --
{
    echo "CREATE FUNCTION refused() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END';"
    echo "CREATE FUNCTION fails() RETURNS integer LANGUAGE plpgsql AS 'BEGIN RETURN 1 / 0; END';"
    for function in fails refused; do
        for ((i = 0; i < 50; i++)); do echo "SELECT $function();"; done
        echo "SELECT '$function', count(*), sum(total_bytes) > 150000
            FROM pg_backend_memory_contexts WHERE name = 'PL/pgSQL function';"
    done
} | sql postgres | grep -E 'ERROR|[|]' | sort | uniq -c | sed 's/^ *//' | seen 3<<'SEEN'
50 ERROR:  division by zero
50 ERROR:  trigger functions can only be called as triggers
1 fails|2|f
1 refused|52|t
SEEN
