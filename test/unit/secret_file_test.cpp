#include "core/secret/secret_file.h"
#include "core/identifier/layout.h"
#include "printers.h"

namespace randflake {
namespace {

const std::string kFirst = "00112233445566778899aabbccddeeff";
const std::string kSecond = "0F1e2d3c4b5a69788796a5b4c3d2e1f0";
const std::string kThird = "ffeeddccbbaa99887766554433221100";

SecretFileResult Parse(const std::string& text, SecretList* list) {
    return ParseSecretFile(text.data(), text.size(), list);
}

SecretList Good(const std::string& text) {
    SecretList list;
    const SecretFileResult result = Parse(text, &list);
    EXPECT_EQ(result.error, SecretFileError::kNone) << text;
    return list;
}

void ExpectRefused(const std::string& text, SecretFileError error, int line) {
    SecretList list;
    const SecretFileResult result = Parse(text, &list);
    EXPECT_EQ(result.error, error) << text << ": " << SecretFileErrorText(result.error);
    EXPECT_EQ(result.line, line) << text;
}

TEST(SecretFile, OneSecret) {
    for (const char* const end : {"", "\n", "\r\n", " \t\n\n", "\n# a comment\n", "\n   \n"}) {
        const SecretList list = Good(kFirst + end);
        ASSERT_EQ(list.count, 1);
        EXPECT_EQ(list.secrets[0], (Secret{KeyOf(kFirst), 0}));
    }
}

TEST(SecretFile, SeveralSecretsWithTheirTimes) {
    const SecretList list = Good("# servers of the shop\n\n" + kFirst + "\n" + kSecond +
                                 " from 2027-01-01T00:00:00Z\n#" + kThird + "\n" + kThird +
                                 "\tfrom  2058-11-05T17:10:23Z \r\n");
    ASSERT_EQ(list.count, 3);
    EXPECT_EQ(list.secrets[0], (Secret{KeyOf(kFirst), 0}));
    EXPECT_EQ(list.secrets[1], (Secret{KeyOf(kSecond), 1798761600 - 1730000000}));
    EXPECT_EQ(list.secrets[2], (Secret{KeyOf(kThird), (1u << 30) - 1}));
}

// GNU date computed these Unix seconds.
TEST(SecretFile, TimesAreInstants) {
    const struct {
        const char* text;
        int64_t unix_second;
    } times[] = {
        {"2024-10-27T03:33:21Z", 1730000001},        {"2027-01-01T00:00:00Z", 1798761600},
        {"2027-01-01 00:00:00+00", 1798761600},      {"2027-01-01t00:00:00z", 1798761600},
        {"2027-01-01T05:30:00+05:30", 1798761600},   {"2026-12-31T19:00:00-0500", 1798761600},
        {"2026-12-31 16:15:00-07:45", 1798761600},   {"2028-02-29T23:59:59Z", 1835481599},
        {"2027-01-01T00:00:00.000000Z", 1798761600}, {"2028-03-01T00:00:00Z", 1835481600},
        {"2036-12-31T23:59:59Z", 2114380799},        {"2058-11-05T17:10:23Z", 2803741823},
        {"2027-07-15T12:34:56Z", 1815654896},        {"2032-02-29T00:00:00+14:00", 1961575200},
    };
    for (const auto& time : times) {
        const SecretList list = Good(kFirst + "\n" + kSecond + " from " + time.text);
        EXPECT_EQ(ToUnix(list.secrets[1].from).count, time.unix_second) << time.text;
    }
}

TEST(SecretFile, WhatIsNoTime) {
    const auto expect_refused = [](const std::string& time, SecretFileError error) {
        ExpectRefused(kFirst + "\n" + kSecond + " from " + time, error, 2);
    };
    for (const char* date : {"2027-02-29", "2100-02-29", "2027-13-01", "2027-00-01", "2027-04-31",
                             "2027-01-00", "0000-01-01", "2027-1-1", "+2027-01-01"})
        expect_refused(std::string(date) + "T00:00:00Z", SecretFileError::kMalformedTime);
    for (const char* time :
         {"", "T00:00Z", "T00:00:00", "T00:00:00 Z", "T00:00:00Zulu", "T24:00:00Z", "T00:60:00Z",
          "T00:00:60Z", "T00:00:00.Z", "T00:00:00+1", "T00:00:00+24", "T00:00:00+01:60",
          "T00:00:00+01:", "T00:00:00+01:000", "T00:00:00 UTC"})
        expect_refused(std::string("2027-01-01") + time, SecretFileError::kMalformedTime);
    for (const char* text : {"tomorrow", "-", "1798761600"})
        expect_refused(text, SecretFileError::kMalformedTime);
    for (const char* text : {"2027-01-01T00:00:00.5Z", "2027-01-01T00:00:00.000001Z"})
        expect_refused(text, SecretFileError::kNotOnFullSecond);
    for (const char* text : {"2024-10-27T03:33:20Z", "2058-11-05T17:10:24Z", "1970-01-01T00:00:00Z",
                             "0001-01-01T00:00:00Z", "9999-12-31T23:59:59Z"})
        expect_refused(text, SecretFileError::kTimeOutOfRange);
}

TEST(SecretFile, ReasonsAndLines) {
    const std::string time = " from 2027-01-01T00:00:00Z";
    const std::string later = " from 2027-01-01T00:00:01Z";
    ExpectRefused("", SecretFileError::kEmpty, 0);
    ExpectRefused("\n\n# nothing\n \t\n", SecretFileError::kEmpty, 0);
    for (const std::string& text :
         {kFirst.substr(1), kFirst + "a", " " + kFirst, "\t" + kFirst, kFirst.substr(1) + "g",
          "0x" + kFirst, std::string("\xEF\xBB\xBF") + kFirst, kFirst + std::string(1, '\0'),
          kFirst + "," + kSecond, kFirst + "\v", std::string("password")})
        ExpectRefused("\n" + text, SecretFileError::kNotASecret, 2);
    ExpectRefused(kFirst + time, SecretFileError::kTimeOfFirst, 1);
    ExpectRefused(kFirst + " x", SecretFileError::kTimeOfFirst, 1);
    for (const char* rest : {"", " 2027-01-01T00:00:00Z", " from", " from2027-01-01T00:00:00Z",
                             " FROM 2027-01-01T00:00:00Z"})
        ExpectRefused(kFirst + "\n" + kSecond + rest, SecretFileError::kNoTime, 2);
    ExpectRefused(kFirst + "\n" + kSecond + time + "\n\n" + kThird + time,
                  SecretFileError::kTimeNotIncreasing, 4);
    ExpectRefused(kFirst + "\n" + kSecond + later + "\n" + kThird + time,
                  SecretFileError::kTimeNotIncreasing, 3);
    ExpectRefused(kFirst + "\n" + kFirst + time, SecretFileError::kRepeated, 2);
    ExpectRefused(kFirst + "\n" + kSecond + time + "\n" + kFirst + later,
                  SecretFileError::kRepeated, 3);
    ExpectRefused(kFirst + "\r" + kSecond, SecretFileError::kNotASecret, 1);
}

TEST(SecretFile, AtMostSixteen) {
    std::string text = kFirst;
    for (int i = 1; i <= 16; i++) {
        const SecretList list = Good(text + "\n");
        EXPECT_EQ(list.count, i);
        std::string digits = kSecond;
        digits[0] = "0123456789abcdefA"[i];
        digits[1] = i == 16 ? '0' : digits[1];
        text += "\n" + digits + " from " + std::to_string(2030 + i) + "-01-01T00:00:00Z";
    }
    ExpectRefused(text, SecretFileError::kTooMany, 17);
}

TEST(SecretFile, EveryReasonHasAText) {
    std::set<std::string> texts;
    for (int i = 0; i <= static_cast<int>(SecretFileError::kTooMany); i++)
        texts.insert(SecretFileErrorText(static_cast<SecretFileError>(i)));
    EXPECT_EQ(texts.size(), static_cast<size_t>(SecretFileError::kTooMany) + 1);
    for (const std::string& text : texts) EXPECT_EQ(text.back(), '.') << text;
}

}  // namespace
}  // namespace randflake
