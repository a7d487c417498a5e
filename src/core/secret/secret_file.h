// Parses the text of a secret file.
//
//   00112233445566778899aabbccddeeff
//   0f1e2d3c4b5a69788796a5b4c3d2e1f0 from 2027-01-01T00:00:00Z
//
// Each line has one secret, the oldest first. Each line after the first also has the instant at
// which its secret begins. The instant has ISO 8601 form, has no fraction of a second, and is later
// than the previous instant. Its offset from UTC is required, because servers may be in different
// time zones. Blank lines, lines that begin with #, and white space at line ends do not count.

#pragma once

#include <cstddef>
#include <cstdint>

#include "core/identifier/cipher.h"
#include "core/secret/secret_ring.h"

namespace randflake {

struct Secret {
    Key key;
    Second from;  // 0 in the first secret

    friend constexpr bool operator==(const Secret&, const Secret&) = default;
};

struct SecretList {
    int count;
    Secret secrets[kMaxGenerations];
};

enum class SecretFileError : uint8_t {
    kNone,
    kEmpty,          // no secret in the file
    kNotASecret,     // the line does not begin with 32 hexadecimal digits
    kTimeOfFirst,    // the first secret has a time
    kNoTime,         // a later secret has no time
    kMalformedTime,  // the calendar has no such instant, or the offset is missing
    kNotOnFullSecond,
    kTimeOutOfRange,     // no identifier can hold the instant's second
    kTimeNotIncreasing,  // not later than the time of the line before
    kRepeated,           // the same secret as in an earlier line
    kTooMany,            // more than kMaxGenerations
};

struct SecretFileResult {
    SecretFileError error;
    int line;  // counted from 1; for errors other than kEmpty
};

// After an error, *list holds some of the secrets, and the caller must wipe it.
SecretFileResult ParseSecretFile(const char* text, size_t length, SecretList* list) noexcept;

// Returns the rule that the file breaks, as an English sentence for messages.
const char* SecretFileErrorText(SecretFileError error) noexcept;

}  // namespace randflake
