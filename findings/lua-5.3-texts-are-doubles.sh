#!/bin/bash
# Lua 5.3.6 (Debian bookworm) makes a double of the text in `key + 0`, and writes 14 digits of it.
#
# Guess: a text of digits becomes an integer of 64 bits in arithmetic, as in Lua 5.4.4, and lua-cjson
#        2.1.0 for Lua 5.3 writes an integer with its digits.
# Seen:  key + 0 is a float in 5.3, so neighbors are equal, and 123 is 123.0 in a URL. lua-cjson writes 14
#        digits of an integer, so 53-bit keys change too. tonumber(key) and dkjson 2.6 are exact.
. findings/lib.sh
unpack lua5.3=5.3.6-2 lua5.4=5.4.4-3+deb12u1 lua-cjson=2.1.0+dfsg-2.2 lua-dkjson=2.6-2
export LUA_PATH="$PWD/usr/share/lua/5.3/?.lua" LUA_CPATH="$PWD/usr/lib/x86_64-linux-gnu/lua/5.3/?.so"
cat >keys.lua <<'END'
for _, key in ipairs {"9007199254740993", "123"} do
  print(_VERSION, key + 0, tonumber(key), key + 0 == 9007199254740992)
end
if _VERSION == "Lua 5.3" then print(require("cjson").encode {4503599627370497}, require("dkjson").encode {4503599627370497}) end
END
for version in 5.3 5.4; do usr/bin/lua$version keys.lua; done | tr '\t' ' ' | seen 3<<'END'
Lua 5.3 9.007199254741e+15 9007199254740993 true
Lua 5.3 123.0 123 false
[4.5035996273705e+15] [4503599627370497]
Lua 5.4 9007199254740993 9007199254740993 false
Lua 5.4 123 123 false
END
