// The text form of an identifier is the unsigned 64-bit number in the 32 digits of base32hex (RFC
// 4648, section 7). It has 1 to 13 digits, the most significant first, without leading zeros.
//
// The SQL type has one more rule. A client may send a decimal number that it read while the column
// was a bigint. Read in base 32, this number could match another row. So if all digits are decimal,
// the type writes 13 digits with leading zeros. The type refuses a decimal text with fewer digits.

#pragma once

#include <cstddef>
#include <cstdint>

namespace randflake {

// The number of digits that hold 64 bits, at 5 bits a digit.
inline constexpr size_t kMaxTextLength = 13;

enum class TextError : uint8_t {
    kNone,
    kEmpty,
    kTooLong,       // over 13 digits
    kBadCharacter,  // not 0-9, a-v or A-V
    kOutOfRange,    // 13 digits that exceed 64 bits
    kDecimal,       // fewer than 13 digits, all decimal; only from ParseTypeText
};

struct TextResult {
    TextError error;
    uint64_t id;      // with kNone
    size_t position;  // with kBadCharacter: offset of the offending byte
};

// Writes the digits of `id` in lower case, without a NUL. Returns the number of digits.
size_t FormatText(uint64_t id, char buffer[kMaxTextLength]) noexcept;

// Accepts digits in upper and lower case, and leading zeros.
TextResult ParseText(const char* text, size_t length) noexcept;

// These functions also apply the SQL type's additional rule.
size_t FormatTypeText(uint64_t id, char buffer[kMaxTextLength]) noexcept;
TextResult ParseTypeText(const char* text, size_t length) noexcept;

// Returns whether a text is a decimal number of at most 19 digits that fits in an SQL bigint.
bool IsBigint(const char* text, size_t length) noexcept;

// A prefix may name the kind of row, as in cus_8i49d3ue35kq7. The last _ separates the prefix from
// the digits. A prefix has 1 to 63 characters from a to z and _, and begins and ends with a letter.
// These are the rules of TypeID (github.com/jetify-com/typeid, version 0.3).
inline constexpr size_t kMaxPrefixLength = 63;
bool IsPrefix(const char* text, size_t length) noexcept;

// Returns the length of a text's prefix, without the separating _. Returns 0 if there is no prefix.
size_t PrefixLength(const char* text, size_t length) noexcept;

// Reads the type's binary form, most significant byte first. Returns false for a wrong length.
inline constexpr size_t kBinaryBytes = 8;
bool ParseBinary(const uint8_t* bytes, size_t length, uint64_t* id) noexcept;

}  // namespace randflake
