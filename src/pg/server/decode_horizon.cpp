// Reads the decode horizon from the state on disk if shared memory lacks it.

#include "pg/server/decode_horizon.h"

#include "pg/base/timestamp.h"
#include "pg/server/environment.h"

using randflake::Second;

Second secrets_read_decode_horizon() {
    const Second second = server.DecodeHorizon();
    if (second == Second{0})
        raise_file_failure(server_peek_failure,
                           "It says whether this server lacks a secret that is in use.",
                           "Let the server's user read it, or move it away.");
    return second;
}

void raise_secret_lacking() {
    Assert(secrets_decode_horizon() != randflake::kNoSecond);
    ereport(ERROR,
            (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
             errmsg("this server lacks a secret that is in use"),
             errdetail("The coordinator has one from %s on. What this server reads as made then or "
                       "later, or under no secret, may be something else.",
                       second_text(secrets_decode_horizon())),
             errhint("Add its line to \"randflake.secret_file\" and call "
                     "randflake_reload_secret(), or restart the server with it.")));
    pg_unreachable();
}
