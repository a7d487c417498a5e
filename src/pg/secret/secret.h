// Reads the secrets from randflake.secret or randflake.secret_file into shared memory.

#pragma once

#include "pg/base/pg.h"

#include "core/identifier/siphash.h"
#include "core/secret/secret_file.h"
#include "core/type/type_binding.h"
#include "core/window/window_state.h"
#include "pg/memory/shmem.h"

void secret_define_settings();

// Reads randflake.secret_file if set, and checks the secrets; FATAL for unusable ones.
void secret_load();

// Copies the secrets to shared memory, where every process reads them.
void secret_init_shared();

// Adds the secrets of `list` after the last one in shared memory. One caller at a time; allocates
// nothing and raises no error.
void secret_add_shared(const randflake::SecretList& list);

// Call in the postmaster before it releases shared memory: keeps the added secrets.
void secret_keep_added();

// Reads randflake.secret_file again; ERROR if the setting is empty or the file unusable.
randflake::SecretList secret_read_again();

// A fingerprint distinguishes secrets and reveals nothing of them: the first 8 bytes of
// HMAC-SHA-256 over a fixed text. An encrypted block would not do: it might be an identifier in
// use. From the second secret on, the secret's time and the previous fingerprint follow the text.
// So two servers with the same fingerprint agree about everything up to that secret. For backends
// only: the server's crypto library needs a resource owner, which the postmaster lacks.

// Returns the fingerprints and times of a list, or those of this server's secrets.
randflake::SecretRecords secret_records(const randflake::SecretList& list);
randflake::SecretRecords secret_records();

// Returns a fingerprint as 16 hexadecimal digits; palloc'd.
const char* secret_fingerprint_text(const randflake::SecretRecord& record);

// Returns the fingerprint, and from the second secret on "@" and its first Unix second; palloc'd.
const char* secret_entry_text(const randflake::SecretRecord& record);

// Returns all fingerprints and times in one text, as a coordinator expects them; palloc'd.
const char* secret_fingerprints_text(const randflake::SecretRecords& records);

// Returns the key of a permutation (core/identifier/feistel.h): the first 16 bytes of an
// HMAC-SHA-256. The HMAC's key is a secret; its text is use, zero byte and label. For backends
// only.
inline constexpr size_t kMaxLabelBytes = 255;
randflake::SipKey secret_permutation_key(int generation, const char* use, const uint8* label,
                                         size_t length);

// Returns the ring of 53-bit identifiers; secret_ring() is the ring of the others. A session
// derives its keys once, which may raise an ERROR. For backends only.
randflake::SecretRing53 secret_ring53();
