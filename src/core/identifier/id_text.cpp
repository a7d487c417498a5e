// Formats and parses base 32.

#include "core/identifier/id_text.h"

#include "core/base/assert.h"

namespace randflake {
namespace {

constexpr char kDigits[] = "0123456789abcdefghijklmnopqrstuv";

constexpr int DigitValue(char c) {
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'v') return c - 'a' + 10;
    if (c >= 'A' && c <= 'V') return c - 'A' + 10;
    return -1;
}

constexpr bool IsDecimal(const char* text, size_t length) {
    for (size_t i = 0; i < length; i++)
        if (text[i] < '0' || text[i] > '9') return false;
    return true;
}

void WriteDigits(uint64_t id, char* buffer, size_t length) {
    RANDFLAKE_ASSERT(length == kMaxTextLength || id >> 5 * length == 0);
    for (size_t i = length; i-- > 0; id >>= 5) buffer[i] = kDigits[id & 31];
}

}  // namespace

size_t FormatText(uint64_t id, char buffer[kMaxTextLength]) noexcept {
    size_t length = 1;
    for (uint64_t rest = id >> 5; rest != 0; rest >>= 5) length++;
    WriteDigits(id, buffer, length);
    RANDFLAKE_ASSERT(ParseText(buffer, length).id == id);
    return length;
}

size_t FormatTypeText(uint64_t id, char buffer[kMaxTextLength]) noexcept {
    const size_t length = FormatText(id, buffer);
    if (length == kMaxTextLength || !IsDecimal(buffer, length)) return length;
    WriteDigits(id, buffer, kMaxTextLength);
    RANDFLAKE_ASSERT(ParseTypeText(buffer, kMaxTextLength).id == id);
    return kMaxTextLength;
}

TextResult ParseTypeText(const char* text, size_t length) noexcept {
    if (length != 0 && length < kMaxTextLength && IsDecimal(text, length))
        return {TextError::kDecimal, 0, 0};
    return ParseText(text, length);
}

TextResult ParseText(const char* text, size_t length) noexcept {
    if (length == 0) return {TextError::kEmpty, 0, 0};
    // If a text is too long and has a bad character, the error names the bad character.
    for (size_t i = 0; i < length; i++)
        if (DigitValue(text[i]) < 0) return {TextError::kBadCharacter, 0, i};
    if (length > kMaxTextLength) return {TextError::kTooLong, 0, 0};

    uint64_t id = 0;
    for (size_t i = 0; i < length; i++) {
        if (id >> 59 != 0) return {TextError::kOutOfRange, 0, 0};
        id = id << 5 | static_cast<uint64_t>(DigitValue(text[i]));
    }
    return {TextError::kNone, id, 0};
}

bool IsPrefix(const char* text, size_t length) noexcept {
    if (length == 0 || length > kMaxPrefixLength || text[0] == '_' || text[length - 1] == '_')
        return false;
    for (size_t i = 0; i < length; i++)
        if (text[i] != '_' && (text[i] < 'a' || text[i] > 'z')) return false;
    return true;
}

size_t PrefixLength(const char* text, size_t length) noexcept {
    while (length > 0 && text[length - 1] != '_') length--;
    return length == 0 ? 0 : length - 1;
}

bool IsBigint(const char* text, size_t length) noexcept {
    const bool negative = length > 0 && text[0] == '-';
    const char* digits = negative ? text + 1 : text;
    const size_t count = negative ? length - 1 : length;
    if (count == 0 || count > 19 || !IsDecimal(digits, count)) return false;
    uint64_t number = 0;  // 19 digits are less than 2^64
    for (size_t i = 0; i < count; i++)
        number = 10 * number + static_cast<uint64_t>(digits[i] - '0');
    return number <= (uint64_t{1} << 63) - (negative ? 0 : 1);
}

bool ParseBinary(const uint8_t* bytes, size_t length, uint64_t* id) noexcept {
    if (length != kBinaryBytes) return false;
    uint64_t read = 0;
    for (size_t i = 0; i < kBinaryBytes; i++) read = read << 8 | bytes[i];
    *id = read;
    return true;
}

}  // namespace randflake
