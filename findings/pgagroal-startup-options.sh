#!/bin/bash
# pgagroal 1.6.0 (Debian trixie) gives the settings of one client's startup parameter `options` to the
# clients after it.
#
# Guess: a client gets its own settings, or none, because pgagroal runs DISCARD ALL after each client.
# Seen:  the client that opens the server's connection decides for all that share it. RESET ALL and
#        DISCARD ALL return to its values, and the options of later clients are dropped in silence.
#        What a client SETs does end with it.
. findings/lib.sh
unpack_later trixie pgagroal=1.6.0-1+b1 libcjson1 libev4t64
start_server -- -c listen_addresses=127.0.0.1 -c port=7403
cat >d/pgagroal.conf <<END
[pgagroal]
host = 127.0.0.1
port = 7404
max_connections = 1
pidfile = $folder/d/pid
unix_socket_dir = $folder/d
[server]
host = 127.0.0.1
port = 7403
END
echo 'host all all all trust' >hba
LD_LIBRARY_PATH=later/usr/lib/x86_64-linux-gnu user later/usr/bin/pgagroal -c d/pgagroal.conf -a hba >log &
sleep 3
show="SELECT current_setting('my.key', true), current_setting('work_mem')"
for options in '-c my.key=first' '-c my.key=second -c work_mem=9MB' ''; do
    PGOPTIONS=$options sql 'host=127.0.0.1 port=7404 dbname=postgres' -c "$show" -c "SET work_mem = '7MB'" -c 'RESET ALL' -c "$show" -c 'SET my.key = third' | paste -sd/
done | tee seen
diff - seen <<'SEEN'
first|4MB/first|4MB
first|4MB/first|4MB
first|4MB/first|4MB
SEEN
