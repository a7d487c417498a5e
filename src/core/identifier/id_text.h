// The text form of an identifier is base32hex (RFC 4648, section 7) of the unsigned 64-bit number.
// The text has 1 to 13 digits, the most significant first, without padding or leading zeros.
//
// A table may have used decimal numbers before its move to the SQL type. Read as base 32, such a
// number could match another row. So the type writes a text of fewer than 13 decimal digits with
// leading zeros, and refuses such a text without them.

#pragma once

#include <cstddef>
#include <cstdint>

namespace randflake {

// 64 bits take 13 digits of 5 bits.
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

// Writes the lower-case digits of id to buffer without a terminator. Returns their number.
size_t FormatText(uint64_t id, char buffer[kMaxTextLength]) noexcept;

// Parses digits of either case, with or without leading zeros. Any other byte is an error.
TextResult ParseText(const char* text, size_t length) noexcept;

// Formats and parses the SQL type's text form.
size_t FormatTypeText(uint64_t id, char buffer[kMaxTextLength]) noexcept;
TextResult ParseTypeText(const char* text, size_t length) noexcept;

// Returns whether a text is a decimal number of at most 19 digits that an SQL bigint can hold.
bool IsBigint(const char* text, size_t length) noexcept;

// A text form may have a prefix that names the kind of row, as in cus_8i49d3ue35kq7. Prefixes
// follow TypeID (github.com/jetify-com/typeid, version 0.3). A prefix has 1 to 63 characters of a
// to z and _, with letters at both ends. The last _ separates prefix and digits.
inline constexpr size_t kMaxPrefixLength = 63;
bool IsPrefix(const char* text, size_t length) noexcept;

// Returns the length of a text's prefix without its _, or 0 if there is no prefix.
size_t PrefixLength(const char* text, size_t length) noexcept;

// Reads the type's binary form: the identifier, its most significant byte first. Returns false if
// the length is wrong.
inline constexpr size_t kBinaryBytes = 8;
bool ParseBinary(const uint8_t* bytes, size_t length, uint64_t* id) noexcept;

}  // namespace randflake
