// The text form of an identifier: base32hex (RFC 4648, section 7) of the unsigned 64-bit number,
// most significant digit first, no padding, no leading zeros; zero is "0". At most 13 digits.

#ifndef RANDFLAKE_CORE_TEXT_H
#define RANDFLAKE_CORE_TEXT_H

#include <cstddef>
#include <cstdint>

namespace randflake {

// 64 bits at 5 a digit.
inline constexpr size_t kMaxTextLength = 13;

enum class TextError : uint8_t {
    kNone,
    kEmpty,
    kTooLong,       // over 13 digits
    kBadCharacter,  // not 0-9, a-v or A-V
    kOutOfRange,    // 13 digits that exceed 64 bits
};

struct TextResult {
    TextError error;
    uint64_t id;      // with kNone
    size_t position;  // with kBadCharacter: offset of the offending byte
};

// Writes the lower-case digits of id to buffer, not terminated; returns how many.
size_t FormatText(uint64_t id, char buffer[kMaxTextLength]) noexcept;

// Strict: every byte must be a digit, in either case. Leading zeros are accepted.
TextResult ParseText(const char* text, size_t length) noexcept;

}  // namespace randflake

#endif
