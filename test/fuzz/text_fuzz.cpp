// If ParseText accepts a text, FormatText must return that text in lower case and without leading
// zeros. If ParseText refuses a text, the text must really contain the error that ParseText
// reports. ParseTypeText may differ from ParseText only for decimal numbers.

#include "core/identifier/id_text.h"
#include "fuzz.h"

namespace randflake {
namespace {

bool IsDigit(char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'v') || (c >= 'A' && c <= 'V');
}

void CheckAccepted(const char* text, size_t length, uint64_t id) {
    char digits[kMaxTextLength];
    const size_t count = FormatText(id, digits);
    Check(count >= 1 && count <= length);
    const char* tail = text + (length - count);
    for (size_t i = 0; i < count; i++)
        Check(digits[i] == (tail[i] >= 'A' && tail[i] <= 'V' ? tail[i] + ('a' - 'A') : tail[i]));
    for (const char* zero = text; zero < tail; zero++) Check(*zero == '0');
}

void CheckRefused(const char* text, size_t length, const TextResult& result) {
    switch (result.error) {
        case TextError::kEmpty: Check(length == 0); break;
        case TextError::kBadCharacter:
            Check(result.position < length && !IsDigit(text[result.position]));
            for (size_t i = 0; i < result.position; i++) Check(IsDigit(text[i]));
            break;
        case TextError::kTooLong: Check(length > kMaxTextLength); break;
        case TextError::kOutOfRange:
            // A text of 13 digits is out of range only if its first digit is above f.
            Check(length == kMaxTextLength && text[0] > 'f' - 'a' + 'A');
            break;
        case TextError::kDecimal:
        case TextError::kNone: Check(false);
    }
}

void CheckType(const char* text, size_t length, const TextResult& expected) {
    bool decimal = length > 0 && length < kMaxTextLength;
    for (size_t i = 0; i < length; i++) decimal = decimal && text[i] >= '0' && text[i] <= '9';
    const TextResult result = ParseTypeText(text, length);
    if (decimal)
        Check(result.error == TextError::kDecimal);
    else
        Check(result.error == expected.error && result.id == expected.id &&
              result.position == expected.position);
}

void CheckBinary(const uint8_t* bytes, size_t size) {
    uint64_t id = 0;
    Check(ParseBinary(bytes, size, &id) == (size == 8));
    for (int i = 0; size == 8 && i < 8; i++) Check((id >> 8 * (7 - i) & 0xff) == bytes[i]);
}

void CheckBigint(const char* text, size_t size) {
    int64_t number = 0;
    const auto [end, error] = std::from_chars(text, text + size, number);
    const size_t digits = size > 0 && text[0] == '-' ? size - 1 : size;
    Check(IsBigint(text, size) == (error == std::errc{} && end == text + size && digits <= 19));
}

}  // namespace

void Fuzz(const uint8_t* data, size_t size) {
    const char* text = reinterpret_cast<const char*>(data);
    const TextResult result = ParseText(text, size);
    if (result.error == TextError::kNone)
        CheckAccepted(text, size, result.id);
    else
        CheckRefused(text, size, result);
    CheckType(text, size, result);
    CheckBinary(data, size);
    CheckBigint(text, size);

    const auto id = Input(data, size).Take<uint64_t>();
    char digits[kMaxTextLength];
    const TextResult back = ParseText(digits, FormatText(id, digits));
    Check(back.error == TextError::kNone && back.id == id);
    const TextResult of_type = ParseTypeText(digits, FormatTypeText(id, digits));
    Check(of_type.error == TextError::kNone && of_type.id == id);
}

}  // namespace randflake
