// Reads the secrets from randflake.secret or randflake.secret_file into shared memory.

#pragma once

#include "pg/base/pg.h"

#include <atomic>

#include "core/identifier/siphash.h"
#include "core/secret/secret_file.h"
#include "core/secret/secret_records.h"

// This part of shared memory is only appended to, under the window lock. Secrets below the atomic
// count need no lock, because they never change. The oldest secret is the first.
struct SharedSecrets {
    std::atomic<int> count;  // 0: no secret is configured
    randflake::Generation generations[randflake::kMaxGenerations];
    randflake::Key keys[randflake::kMaxGenerations];

    // See secrets_read_decode_horizon(); 0: unknown. Written under the window lock.
    std::atomic<int64> decode_horizon;
};

// This pointer is null in a server that has not preloaded the library.
[[gnu::visibility("hidden")]] extern SharedSecrets* shared_secrets;

// Returns the server's secrets. Callers reserve numbers first, then read the ring; see UseReserved.
static inline randflake::SecretRing secret_ring() {
    return {shared_secrets->generations, shared_secrets->count.load(std::memory_order_acquire)};
}

void secret_define_settings();

// Reads randflake.secret_file if it is set. Raises FATAL for invalid secrets.
void secret_load();

// Adds missing secrets to shared memory. Only one process at a time may call this. Raises no error.
void secret_add_shared(const randflake::SecretList& list);

// The postmaster calls this to save added secrets before it releases shared memory.
void secret_keep_added();

// Reads randflake.secret_file again. Raises an ERROR if the setting is empty or the file invalid.
randflake::SecretList secret_read_again();

// A fingerprint is the first 8 bytes of an HMAC-SHA-256, whose key is the secret. From the second
// secret on, the HMAC's text includes the secret's time and the previous fingerprint. So if two
// servers share a fingerprint, they also share its secret and all earlier secrets. The functions
// below need a resource owner. The postmaster has none.

// Returns fingerprints and times of the secrets in `list`, by default those of this server.
randflake::SecretRecords secret_records(const randflake::SecretList& list);
randflake::SecretRecords secret_records();

// Returns a fingerprint as 16 hexadecimal digits; palloc'd.
const char* secret_fingerprint_text(const randflake::SecretRecord& record);

// Returns the fingerprint; palloc'd. If the record is not the first, adds "@" and the Unix second
// at which its secret begins.
const char* secret_entry_text(const randflake::SecretRecord& record);

// Returns all fingerprints and times as one text for a coordinator; palloc'd.
const char* secret_fingerprints_text(const randflake::SecretRecords& records);

// Returns the key of a permutation (core/identifier/feistel.h): the first 16 bytes of an
// HMAC-SHA-256. The HMAC's key is a secret, and the HMAC's text is `use`, a zero byte and `label`.
inline constexpr size_t kMaxLabelBytes = 255;
randflake::SipKey secret_permutation_key(int generation, const char* use, const uint8* label,
                                         size_t length);

// Returns the ring of secrets for 53-bit identifiers. Deriving their keys may raise an ERROR.
randflake::SecretRing53 secret_ring53();
