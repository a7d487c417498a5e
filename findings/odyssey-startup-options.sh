#!/bin/bash
# Odyssey 1.5.2 (Debian sid) changes and drops settings of the startup parameter `options`, in silence.
#
# Guess: each `-c name=value` is applied as PostgreSQL applies it, or the connection is refused.
# Seen:  a search_path of two schemas becomes one schema with a comma in its name. A setting with a
#        dot, as extensions have, is dropped with all settings behind it. So is `-cname=value`.
. findings/lib.sh
unpack_later sid odyssey=1.5.2-1 libc6 libssl3t64 libsystemd0 libpam0g libzstd1 zlib1g libcap2 libaudit1 libcap-ng0
start_server -- -c listen_addresses=127.0.0.1 -c port=7401
cat >odyssey.conf <<'END'
log_format "%m\n"
listen { host "127.0.0.1" port 7402 }
storage "s" { type "remote" host "127.0.0.1" port 7401 }
database default { user default { authentication "none" storage "s" pool "session" } }
END
lib=later/usr/lib/x86_64-linux-gnu
$lib/ld-linux-x86-64.so.2 --library-path $lib later/usr/bin/odyssey odyssey.conf >log &
sleep 3
show="SELECT concat_ws(' ', current_setting('work_mem'), current_setting('my.key', true), current_setting('search_path'))"
for options in '-c search_path=a,b' '-c my.key=on -c work_mem=9MB' '-c work_mem=9MB -c my.key=on' -cwork_mem=9MB; do
    for port in 7401 7402; do PGOPTIONS=$options sql "host=127.0.0.1 port=$port dbname=postgres" -c "$show"; done | paste -sd/
done | tee seen
diff - seen <<'SEEN'
4MB a,b/4MB "a,b"
9MB on "$user", public/4MB "$user", public
9MB on "$user", public/9MB "$user", public
9MB "$user", public/4MB "$user", public
SEEN
