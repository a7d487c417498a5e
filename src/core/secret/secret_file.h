// Parses the text of a file of secrets.
//
//   00112233445566778899aabbccddeeff
//   # since we lost a laptop
//   0f1e2d3c4b5a69788796a5b4c3d2e1f0 from 2027-01-01T00:00:00Z
//
// Each line has one secret, the oldest first. Each later secret has the instant of its first use:
// ISO 8601 with an offset from UTC, on a full second, later than the instant of the line before.
// The offset is required, because servers would read an instant without one differently. Blank
// lines, lines that begin with # and white space at the end of a line do not count.

#pragma once

#include <cstddef>
#include <cstdint>

#include "core/identifier/cipher.h"
#include "core/secret/secret_ring.h"

namespace randflake {

struct Secret {
    Key key;
    Second from;  // 0 in the first

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
    int line;  // with an error other than kEmpty, counted from 1
};

// With an error, *list holds part of the secrets: the caller wipes it.
SecretFileResult ParseSecretFile(const char* text, size_t length, SecretList* list) noexcept;

// For messages, a sentence: what a line, or with kEmpty the file, must contain.
const char* SecretFileErrorText(SecretFileError error) noexcept;

}  // namespace randflake
