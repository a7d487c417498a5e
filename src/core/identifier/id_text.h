// The text form of an identifier: base32hex (RFC 4648, section 7) of the unsigned 64-bit number,
// most significant digit first, no padding, no leading zeros; zero is "0". At most 13 digits.
//
// The text form of the SQL type differs in one point: it never is a short decimal number. Numbers
// that a table had before it was moved to the type must not find other rows as base 32. So a text
// of fewer than 13 digits that all are decimal is written with leading zeros, and refused without
// them.

#ifndef RANDFLAKE_CORE_IDENTIFIER_ID_TEXT_H
#define RANDFLAKE_CORE_IDENTIFIER_ID_TEXT_H

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
    kDecimal,       // fewer than 13 digits, all decimal; not from ParseText
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

// The same for the SQL type.
size_t FormatTypeText(uint64_t id, char buffer[kMaxTextLength]) noexcept;
TextResult ParseTypeText(const char* text, size_t length) noexcept;

// Whether a text is a decimal number that an SQL bigint can hold, with at most 19 digits.
bool IsBigint(const char* text, size_t length) noexcept;

// A text form with a prefix that names what is identified, as in cus_8i49d3ue35kq7. Prefixes are
// those of TypeID (github.com/jetify-com/typeid, version 0.3), but not empty: 1 to 63 of a to z and
// _, the first and the last a letter. The last _ of the text is between prefix and digits.
inline constexpr size_t kMaxPrefixLength = 63;
bool IsPrefix(const char* text, size_t length) noexcept;

// How long the prefix of a text is, without its _; 0 where it has none.
size_t PrefixLength(const char* text, size_t length) noexcept;

// The type's binary form: the identifier, most significant byte first. False if it has another
// length.
inline constexpr size_t kBinaryBytes = 8;
bool ParseBinary(const uint8_t* bytes, size_t length, uint64_t* id) noexcept;

}  // namespace randflake

#endif
