// The secret: from randflake.secret or randflake.secret_file to the cipher's key, shown nowhere.

#ifndef RANDFLAKE_PG_SECRET_H
#define RANDFLAKE_PG_SECRET_H

#include "pg/pg.h"

#include "core/cipher.h"

void secret_define_settings();

// Reads randflake.secret_file if set and checks what was configured; FATAL when it cannot work.
void secret_load();

// The key, or null when no secret is configured. Valid in the postmaster from secret_load on;
// other processes use the key schedule in shared memory.
const randflake::Key* secret_key();

#endif
