#include "core/identifier/id_text.h"
#include "test.h"

namespace randflake {
namespace {

std::string Format(uint64_t id) {
    char buffer[kMaxTextLength];
    return std::string(buffer, FormatText(id, buffer));
}

TextResult Parse(const std::string& text) { return ParseText(text.data(), text.size()); }

std::string Upper(std::string text) {
    for (char& c : text) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
    return text;
}

void ExpectPair(uint64_t id, const std::string& text) {
    EXPECT_EQ(Format(id), text);
    for (const std::string& form : {text, Upper(text)}) {
        const TextResult result = Parse(form);
        EXPECT_EQ(result.error, TextError::kNone) << form;
        EXPECT_EQ(result.id, id) << form;
    }
}

TEST(Text, KnownTexts) {
    ExpectPair(0, "0");
    ExpectPair(1, "1");
    ExpectPair(9, "9");
    ExpectPair(10, "a");
    ExpectPair(31, "v");
    ExpectPair(32, "10");
    ExpectPair(1023, "vv");
    ExpectPair((uint64_t{1} << 60) - 1, "vvvvvvvvvvvv");
    ExpectPair(uint64_t{1} << 60, "1000000000000");
    ExpectPair(INT64_MAX, "7vvvvvvvvvvvv");
    ExpectPair(uint64_t{1} << 63, "8000000000000");
    ExpectPair(UINT64_MAX, "fvvvvvvvvvvvv");
}

std::string FormatType(uint64_t id) {
    char buffer[kMaxTextLength];
    return std::string(buffer, FormatTypeText(id, buffer));
}

TextResult ParseType(const std::string& text) { return ParseTypeText(text.data(), text.size()); }

TEST(TypeText, KnownTexts) {
    EXPECT_EQ(FormatType(0), "0000000000000");
    EXPECT_EQ(FormatType(9), "0000000000009");
    EXPECT_EQ(FormatType(10), "a");
    EXPECT_EQ(FormatType(32), "0000000000010");
    EXPECT_EQ(FormatType(42), "1a");
    EXPECT_EQ(FormatType(Parse("999999999999").id), "0999999999999");
    EXPECT_EQ(FormatType(Parse("99999999999v").id), "99999999999v");
    EXPECT_EQ(FormatType(Parse("1000000000000").id), "1000000000000");
    EXPECT_EQ(FormatType(UINT64_MAX), "fvvvvvvvvvvvv");
}

// The type's parser refuses each decimal number that has fewer than 13 digits.
TEST(TypeText, ShortDecimalNumbersAreRefused) {
    for (const char* digit : {"0", "1", "5", "9"}) {
        std::string text;
        while (text.size() < kMaxTextLength - 1) {
            text += digit;
            EXPECT_EQ(ParseType(text).error, TextError::kDecimal) << text;
            EXPECT_EQ(Parse(text).error, TextError::kNone) << text;
        }
        EXPECT_EQ(ParseType(text + digit).error, TextError::kNone) << text;
    }
    EXPECT_EQ(ParseType("").error, TextError::kEmpty);
    EXPECT_EQ(ParseType("-42").error, TextError::kBadCharacter);
    EXPECT_EQ(ParseType("4958826056601604828").error, TextError::kTooLong);
    EXPECT_EQ(ParseType("0000000000000042").error, TextError::kTooLong);
}

TEST(TypeText, RoundTripsAtEveryLength) {
    std::mt19937_64 random(64);
    int padded = 0;
    for (int i = 0; i < 200000; i++) {
        const uint64_t id = random() >> (i % 64);
        const std::string text = FormatType(id);
        ASSERT_EQ(ParseType(text).error, TextError::kNone) << text;
        ASSERT_EQ(ParseType(Upper(text)).id, id) << text;
        ASSERT_EQ(Parse(text).id, id) << text;
        const bool decimal = text.find_first_not_of("0123456789") == std::string::npos;
        ASSERT_TRUE(!decimal || text.size() == kMaxTextLength) << text;
        ASSERT_TRUE(text == Format(id) || decimal) << text;
        padded += text != Format(id);
    }
    EXPECT_GT(padded, 1000);
}

TEST(Text, OverSixtyFourBitsIsRefused) {
    // Thirteen digits have 65 bits, one too many, so a first digit above f is too large.
    for (char first = 'g'; first <= 'v'; first++)
        for (const char rest : {'0', 'v'}) {
            const std::string text = first + std::string(kMaxTextLength - 1, rest);
            EXPECT_EQ(Parse(text).error, TextError::kOutOfRange) << text;
            EXPECT_EQ(Parse(Upper(text)).error, TextError::kOutOfRange) << text;
        }
    EXPECT_EQ(Parse("g000000000000").error, TextError::kOutOfRange);
    EXPECT_EQ(Parse("fvvvvvvvvvvvv").error, TextError::kNone);
}

TEST(Text, FirstBadCharacterIsReported) {
    EXPECT_EQ(Parse("12-4-6").position, 2u);
    EXPECT_EQ(Parse(" 1").position, 0u);
    EXPECT_EQ(Parse("1 ").position, 1u);
    EXPECT_EQ(Parse("+1").error, TextError::kBadCharacter);
    EXPECT_EQ(Parse("1w").error, TextError::kBadCharacter);
    EXPECT_EQ(Parse("1W").error, TextError::kBadCharacter);
}

TEST(Text, Bigint) {
    const auto is_bigint = [](const std::string& text) {
        return IsBigint(text.data(), text.size());
    };
    for (const char* text : {"0", "-0", "42", "-42", "9223372036854775807", "-9223372036854775808",
                             "0000000000000000042"})
        EXPECT_TRUE(is_bigint(text)) << text;
    for (const char* text :
         {"", "-", "--1", "+1", " 1", "1 ", "1a", "9223372036854775808", "-9223372036854775809",
          "9999999999999999999", "18446744073709551616", "00000000000000000042"})
        EXPECT_FALSE(is_bigint(text)) << text;
}

TEST(Text, Binary) {
    const uint8_t bytes[] = {0x81, 0x02, 0x03, 0x04, 0x05, 0x06, 0x07, 0x88, 0x09};
    uint64_t id = 0;
    EXPECT_TRUE(ParseBinary(bytes, 8, &id));
    EXPECT_EQ(id, 0x8102030405060788u);
    for (const size_t length : {0u, 1u, 4u, 7u, 9u})
        EXPECT_FALSE(ParseBinary(bytes, length, &id)) << length;
    EXPECT_EQ(id, 0x8102030405060788u);
}

// TypeID has the same rule for prefixes, but also allows an empty prefix.
TEST(Prefix, Rule) {
    const auto is_prefix = [](const std::string& text) {
        return IsPrefix(text.data(), text.size());
    };
    const std::string longest(kMaxPrefixLength, 'z');
    for (const std::string& text :
         {std::string("a"), std::string("cus"), std::string("a_b"), std::string("a__b"), longest})
        EXPECT_TRUE(is_prefix(text)) << text;
    for (const std::string& text :
         {std::string(), std::string("_"), std::string("_a"), std::string("a_"), std::string("A"),
          std::string("a1"), std::string("a-b"), std::string("\xc3\xa4"), std::string("a\0b", 3),
          longest + "z"})
        EXPECT_FALSE(is_prefix(text)) << text;
}

TEST(Prefix, EndsAtTheLastUnderscore) {
    const auto length = [](const std::string& text) {
        return PrefixLength(text.data(), text.size());
    };
    EXPECT_EQ(length("cus_1"), 3u);
    EXPECT_EQ(length("a_b_1"), 3u);
    EXPECT_EQ(length("cus_"), 3u);
    EXPECT_EQ(length("_1"), 0u);
    EXPECT_EQ(length("cus"), 0u);
    EXPECT_EQ(length(""), 0u);
}

}  // namespace
}  // namespace randflake
