#!/bin/bash
# pgagroal 1.6.0 (Debian trixie) gives the startup parameter `options` of one client to those after it.
#
# Guess: a client gets its own settings, or none, because pgagroal runs DISCARD ALL after each client.
# Seen:  the client that opens the server's connection decides for all that share it: RESET ALL and
#        DISCARD ALL return to its values. The options of later clients are dropped in silence. What
#        a client SETs does end with it.
. findings/lib.sh
unpack_later trixie pgagroal=1.6.0-1+b1 libcjson1 libev4t64
start_server -- -c listen_addresses=127.0.0.1 -c port=7403
cat >pgagroal.conf <<END
[pgagroal]
host = 127.0.0.1
port = 7404
max_connections = 1
unix_socket_dir = $folder/d
[server]
host = 127.0.0.1
port = 7403
END
echo 'host all all all trust' >hba
LD_LIBRARY_PATH=later/usr/lib/x86_64-linux-gnu user later/usr/bin/pgagroal -c pgagroal.conf -a hba >log &
sleep 3
for options in '-c my.key=first' '-c my.key=second -c work_mem=9MB' ''; do
    PGOPTIONS=$options sql 'host=127.0.0.1 port=7404 dbname=postgres' -c 'SHOW my.key' -c 'SHOW work_mem' \
        -c 'SET my.key = third' -c 'RESET ALL' -c 'SHOW my.key' -c "SET work_mem = '7MB'" | paste -sd/
done | seen 3<<<$'first/4MB/first\nfirst/4MB/first\nfirst/4MB/first'
