// The secret: from randflake.secret or randflake.secret_file to the cipher's key, shown nowhere.

#ifndef RANDFLAKE_PG_SECRET_H
#define RANDFLAKE_PG_SECRET_H

#include "pg/pg.h"

#include "core/cipher.h"
#include "core/siphash.h"

void secret_define_settings();

// Reads randflake.secret_file if set and checks what was configured; FATAL when it cannot work.
void secret_load();

// Gives the key to shared memory, from where every process reads it.
void secret_init_shared();

// A number that tells one secret from another and reveals nothing of either: the first 8 bytes of
// HMAC-SHA-256 over a fixed text. Never an encrypted block, which might be somebody's identifier.
// For backends: the server's crypto library wants a resource owner, which the postmaster lacks.
uint64 secret_fingerprint(const randflake::Key& key);

// The key by which values of the type randflake are hashed: the first 16 bytes of HMAC-SHA-256 over
// another fixed text. For backends too.
randflake::SipKey secret_hash_key(const randflake::Key& key);

// The same as people read it, 16 hexadecimal digits; palloc'd.
const char* secret_fingerprint_text(const randflake::Key& key);

#endif
