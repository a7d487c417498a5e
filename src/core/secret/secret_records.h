// Describes the secrets of a ring by fingerprints, compares two rings, and formats fingerprints.

#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "core/base/assert.h"
#include "core/identifier/layout.h"
#include "core/secret/secret_ring.h"

namespace randflake {

// Other servers may see these parts of a secret. The fingerprint is defined in pg/secret/secret.h.
struct SecretRecord {
    uint64_t fingerprint;
    Second from;  // the secret's first second; 0 for the first secret

    friend constexpr bool operator==(const SecretRecord&, const SecretRecord&) = default;
};

struct SecretRecords {  // of a ring, oldest first
    uint32_t count;     // 0 without a secret
    SecretRecord records[kMaxGenerations];

    friend constexpr bool operator==(const SecretRecords& a, const SecretRecords& b) {
        return a.count == b.count && std::equal(a.records, a.records + a.count, b.records);
    }
};

// Returns whether the seconds of the secrets increase, and all unused records are zero.
constexpr bool IsValid(const SecretRecords& secrets) {
    for (uint32_t i = 0; i < kMaxGenerations; i++) {
        const SecretRecord& record = secrets.records[i];
        if (i >= secrets.count ? record != SecretRecord{}
            : i == 0           ? record.from != Second{0}
                     : record.from <= secrets.records[i - 1].from || record.from >= kNoSecond)
            return false;
    }
    return secrets.count <= kMaxGenerations;
}

// Returns whether the seconds of the secrets increase. Ignores the unused records.
constexpr bool InOrder(SecretRecords secrets) {
    for (uint32_t i = secrets.count; i < kMaxGenerations; i++) secrets.records[i] = {};
    return IsValid(secrets);
}

// These functions write fingerprints as NUL-terminated text and return its length. A fingerprint
// has 16 lower-case hexadecimal digits. In the text of a ring, blanks separate the secrets. Each
// secret except the first is followed by "@" and the Unix second at which it begins.
inline constexpr size_t kFingerprintText = 16;
inline constexpr size_t kMaxFingerprintsText =
    kMaxGenerations * (kFingerprintText + 1) + (kMaxGenerations - 1) * 11;
size_t FormatFingerprint(uint64_t fingerprint, char buffer[kFingerprintText + 1]) noexcept;
size_t FormatFingerprints(const SecretRecords& records, char buffer[kMaxFingerprintsText]) noexcept;

enum class SecretsChange : uint8_t {
    kNone,     // does not affect issued identifiers
    kOther,    // entirely other secrets: issued identifiers no longer decode
    kRefused,  // would change the meaning of issued identifiers
};

// Decides whether the ring `after` may replace the ring `before`. Identifiers of seconds before
// `end` may exist. The secrets of these seconds must stay the same, and later secrets may change.
// But if `before` has only one secret, a ring without this secret may replace `before`.
SecretsChange CompareSecrets(const SecretRecords& before, const SecretRecords& after,
                             Second end) noexcept;

// From `differs_from` on, the ring `before` lacked a secret. Returns 0 if `after` has a new secret
// that begins at `differs_from`, and `differs_from` otherwise. Only a coordinator knows whether
// this secret was the missing one.
Second DiffersFrom(Second differs_from, const SecretRecords& before,
                   const SecretRecords& after) noexcept;

// From `decode_horizon` on, a server may lack secrets that are in use. Returns whether the decoded
// number `raw` is certainly right. A number that stands for a whole second is always right, because
// the first secret encrypts all such numbers.
constexpr bool CertainlyRead(const Layout& layout, uint64_t raw, Second decode_horizon) noexcept {
    RANDFLAKE_ASSERT(decode_horizon >= Second{0});
    const Fields fields = layout.Unpack(raw);
    return layout.Before(fields.timestamp, decode_horizon) || layout.StandsForSecond(fields);
}

}  // namespace randflake
