// The secrets: from randflake.secret or randflake.secret_file to shared memory, shown nowhere.

#ifndef RANDFLAKE_PG_SECRET_SECRET_H
#define RANDFLAKE_PG_SECRET_SECRET_H

#include "pg/base/pg.h"

#include "core/identifier/siphash.h"
#include "core/secret/secret_file.h"
#include "core/type/type_binding.h"
#include "core/window/window_state.h"
#include "pg/memory/shmem.h"

void secret_define_settings();

// Reads randflake.secret_file if set and checks what was configured; FATAL when it cannot work.
void secret_load();

// Gives the secrets to shared memory, from where every process reads them.
void secret_init_shared();

// Adds the secrets of `list` that shared memory lacks, which are its last ones. One caller at a
// time; allocates nothing and raises no error.
void secret_add_shared(const randflake::SecretList& list);

// For the postmaster, before shared memory is released: keeps the secrets that were added.
void secret_keep_added();

// Reads randflake.secret_file again; ERROR when it is not set or cannot work.
randflake::SecretList secret_read_again();

// A fingerprint tells one secret from another and reveals nothing of either: the first 8 bytes of
// HMAC-SHA-256 over a fixed text. Never an encrypted block, which might be an identifier in use.
// From the second secret on, its time and the fingerprint of the one before follow the text. So two
// servers with the same fingerprint agree about everything up to that secret.
// For backends: the server's crypto library wants a resource owner, which the postmaster lacks.

// Fingerprints and times of a list; of this server's secrets.
randflake::SecretRecords secret_records(const randflake::SecretList& list);
randflake::SecretRecords secret_records();

// A fingerprint as people read it, 16 hexadecimal digits; palloc'd.
const char* secret_fingerprint_text(const randflake::SecretRecord& record);

// The same, from the second secret on with "@" and the Unix second from which on it is in use;
// palloc'd.
const char* secret_entry_text(const randflake::SecretRecord& record);

// The fingerprints and times of all of them in one text, as a coordinator takes them; palloc'd.
const char* secret_fingerprints_text(const randflake::SecretRecords& records);

// The key of a permutation (core/identifier/feistel.h): the first 16 bytes of HMAC-SHA-256 under a
// secret over its use, a zero byte and a label. For backends too.
inline constexpr size_t kMaxLabelBytes = 255;
randflake::SipKey secret_permutation_key(int generation, const char* use, const uint8* label,
                                         size_t length);

// The ring of 53-bit identifiers, as secret_ring() of the others. Its keys are derived once per
// session, which may be an ERROR. For backends too.
randflake::SecretRing53 secret_ring53();

#endif
