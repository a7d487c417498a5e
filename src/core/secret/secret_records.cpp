// Compares the secrets of two rings, and formats fingerprints.

#include "core/secret/secret_records.h"

#include <cstdio>

namespace randflake {

size_t FormatFingerprint(uint64_t fingerprint, char buffer[kFingerprintText + 1]) noexcept {
    return static_cast<size_t>(std::snprintf(buffer, kFingerprintText + 1, "%016llx",
                                             static_cast<unsigned long long>(fingerprint)));
}

size_t FormatFingerprints(const SecretRecords& records,
                          char buffer[kMaxFingerprintsText]) noexcept {
    size_t length = 0;
    buffer[0] = '\0';
    for (uint32_t i = 0; i < records.count; i++) {
        if (i > 0) buffer[length++] = ' ';
        length += FormatFingerprint(records.records[i].fingerprint, buffer + length);
        if (i > 0)
            length += static_cast<size_t>(
                std::snprintf(buffer + length, kMaxFingerprintsText - length, "@%lld",
                              static_cast<long long>(ToUnix(records.records[i].from).count)));
    }
    RANDFLAKE_ASSERT(length < kMaxFingerprintsText);
    return length;
}

SecretsChange CompareSecrets(const SecretRecords& before, const SecretRecords& after,
                             Second end) noexcept {
    RANDFLAKE_ASSERT(InOrder(before) && InOrder(after));
    if (before.count == 0 || after.count == 0) return SecretsChange::kNone;
    // Returns the number of secrets that begin before `end`. The first secret always counts.
    const auto begun = [end](const SecretRecords& secrets) {
        uint32_t count = 1;
        while (count < secrets.count && secrets.records[count].from < end) count++;
        return count;
    };
    const uint32_t count = begun(before);
    bool same = count == begun(after);
    for (uint32_t i = 0; same && i < count; i++) same = before.records[i] == after.records[i];
    if (same) return SecretsChange::kNone;
    if (before.count > 1) return SecretsChange::kRefused;
    for (uint32_t i = 0; i < after.count; i++)
        if (after.records[i].fingerprint == before.records[0].fingerprint)
            return SecretsChange::kRefused;
    return SecretsChange::kOther;
}

Second DiffersFrom(Second differs_from, const SecretRecords& before,
                   const SecretRecords& after) noexcept {
    RANDFLAKE_ASSERT(differs_from >= Second{0} && differs_from < kNoSecond);
    const auto beginning = [differs_from](const SecretRecords& secrets) {
        for (uint32_t i = 1; i < secrets.count; i++)
            if (secrets.records[i].from == differs_from) return secrets.records[i];
        return SecretRecord{};
    };
    const SecretRecord has = beginning(after);
    return has == SecretRecord{} || has == beginning(before) ? differs_from : Second{0};
}

}  // namespace randflake
