// Tests SPARX-64/128: the known answer, the inverse and parsing of keys. Checks that batches on
// every vector path of this processor give the bits of Encrypt and Decrypt.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <random>
#include <string>

#include "core/identifier/cipher.h"
#include "core/identifier/cipher_batch.h"

namespace randflake {
namespace {

Key KeyOf(const std::string& hex) {
    Key key{};
    EXPECT_TRUE(ParseKey(hex.data(), hex.size(), &key)) << hex;
    return key;
}

KeySchedule RandomSchedule(std::mt19937_64& random) {
    Key key;
    for (uint8_t& byte : key.bytes)
        byte = static_cast<uint8_t>(random());
    return ExpandKey(key);
}

// Returns the number whose little-endian bytes are the big-endian bytes of these words.
uint64_t NumberOfWords(const uint16_t (&words)[4]) {
    uint64_t number = 0;
    for (int i = 3; i >= 0; i--)
        number = number << 16 | static_cast<uint16_t>(words[i] << 8 | words[i] >> 8);
    return number;
}

TEST(Cipher, KnownAnswer) {
    const KeySchedule schedule = ExpandKey(KeyOf("00112233445566778899aabbccddeeff"));
    const uint64_t plain = NumberOfWords({0x0123, 0x4567, 0x89ab, 0xcdef});
    const uint64_t secret = NumberOfWords({0x2bbe, 0xf152, 0x01f5, 0x5f98});
    EXPECT_EQ(Encrypt(schedule, plain), secret);
    EXPECT_EQ(Decrypt(schedule, secret), plain);
}

TEST(Cipher, TenMillionRoundTrips) {
    constexpr int kKeys = 1000, kNumbersPerKey = 10000;
    std::mt19937_64 random(20241027);
    for (int k = 0; k < kKeys; k++) {
        const KeySchedule schedule = RandomSchedule(random);
        for (int i = 0; i < kNumbersPerKey; i++) {
            const uint64_t number = random();
            ASSERT_EQ(Decrypt(schedule, Encrypt(schedule, number)), number)
                << "key " << k << ", number " << i;
        }
    }
}

TEST(ParseKey, ReadsEitherCase) {
    const Key expected{{0x00, 0x12, 0x34, 0x56, 0x78, 0x9a, 0xbc, 0xde, 0xf0, 0xab, 0xcd, 0xef,
                        0xfe, 0xdc, 0xba, 0xff}};
    for (const char* hex : {"00123456789abcdef0abcdeffedcbaff", "00123456789ABCDEF0ABCDEFFEDCBAFF",
                            "00123456789aBcDeF0AbCdEfFeDcBafF"})
        EXPECT_EQ(std::memcmp(KeyOf(hex).bytes, expected.bytes, kKeyBytes), 0) << hex;
}

// Returns whether the parser refuses the text and leaves the key unchanged.
testing::AssertionResult Refused(const std::string& text) {
    Key key, before;
    std::memset(before.bytes, 0x5a, kKeyBytes);
    key = before;
    if (ParseKey(text.data(), text.size(), &key))
        return testing::AssertionFailure() << '"' << text << "\" was accepted";
    if (std::memcmp(key.bytes, before.bytes, kKeyBytes) != 0)
        return testing::AssertionFailure() << '"' << text << "\" was refused, but changed the key";
    return testing::AssertionSuccess();
}

TEST(ParseKey, RefusesOtherLengths) {
    for (size_t length = 0; length <= 70; length++)
        if (length != 2 * kKeyBytes) {
            EXPECT_TRUE(Refused(std::string(length, 'a')));
        }
}

TEST(ParseKey, RefusesOtherCharactersAnywhere) {
    const std::string digits = "0123456789abcdefABCDEF";
    for (int value = 0; value < 256; value++) {
        const char c = static_cast<char>(value);
        if (digits.find(c) != std::string::npos)
            continue;
        for (size_t position = 0; position < 2 * kKeyBytes; position++) {
            std::string text(2 * kKeyBytes, '7');
            text[position] = c;
            EXPECT_TRUE(Refused(text)) << "byte " << value << " at " << position;
        }
    }
    EXPECT_TRUE(Refused("0x112233445566778899aabbccddeeff"));
    EXPECT_TRUE(Refused(" 0112233445566778899aabbccddeeff"));
    EXPECT_TRUE(Refused("00112233445566778899aabbccddeef\n"));
}

// --- batches -------------------------------------------------------------------------------------

class CipherBatch : public testing::TestWithParam<int> {
protected:
    void SetUp() override {
        path_ = ListVectorPaths().paths[GetParam()];
        if (!path_.supported)
            GTEST_SKIP() << path_.name << " is not supported by this processor";
    }

    void ExpectAsOneByOne(const KeySchedule& schedule, uint64_t first) {
        path_.encrypt(schedule, first, out_);
        for (int i = 0; i < kBatchLength; i++)
            ASSERT_EQ(out_[i], Encrypt(schedule, first + static_cast<uint64_t>(i)))
                << path_.name << ", number " << i << " after " << first;
    }

    void ExpectDecryptedAsOneByOne(const KeySchedule& schedule) {
        path_.decrypt(schedule, in_, out_);
        for (int i = 0; i < kBatchLength; i++)
            ASSERT_EQ(out_[i], Decrypt(schedule, in_[i])) << path_.name << ", identifier " << i;
    }

    VectorPath path_{};
    // The arrays have only the alignment of uint64_t.
    alignas(64) uint64_t in_space_[1 + kBatchLength];
    alignas(64) uint64_t out_space_[1 + kBatchLength];
    uint64_t* const in_ = in_space_ + 1;
    uint64_t* const out_ = out_space_ + 1;
};

TEST_P(CipherBatch, GivesTheBitsOfEncrypt) {
    std::mt19937_64 random(64);
    for (int k = 0; k < 100; k++) {
        const KeySchedule schedule = RandomSchedule(random);
        for (int i = 0; i < 100; i++)
            ExpectAsOneByOne(schedule, random());
    }
}

// Encrypts batches that carry from each 16-bit word into the next, and wrap around.
TEST_P(CipherBatch, Carries) {
    std::mt19937_64 random(16);
    const KeySchedule schedule = RandomSchedule(random);
    for (const int bits : {16, 32, 48, 64}) {
        const uint64_t end = bits == 64 ? 0 : uint64_t{1} << bits;
        for (uint64_t before = 0; before <= kBatchLength; before++)
            ExpectAsOneByOne(schedule, end - before);
    }
}

TEST_P(CipherBatch, GivesTheBitsOfDecrypt) {
    std::mt19937_64 random(46);
    for (int k = 0; k < 100; k++) {
        const KeySchedule schedule = RandomSchedule(random);
        for (int i = 0; i < 100; i++) {
            std::generate_n(in_, kBatchLength, std::ref(random));
            ExpectDecryptedAsOneByOne(schedule);
        }
    }
}

TEST_P(CipherBatch, DecryptsInPlaceWhatItEncrypted) {
    std::mt19937_64 random(32);
    for (int i = 0; i < 1000; i++) {
        const KeySchedule schedule = RandomSchedule(random);
        const uint64_t first = random();
        path_.encrypt(schedule, first, out_);
        path_.decrypt(schedule, out_, out_);
        for (int n = 0; n < kBatchLength; n++)
            ASSERT_EQ(out_[n], first + static_cast<uint64_t>(n)) << path_.name << ", number " << n;
    }
}

std::string NameOf(const testing::TestParamInfo<int>& info) {
    return ListVectorPaths().paths[info.param].name;
}

INSTANTIATE_TEST_SUITE_P(EveryPath, CipherBatch, testing::Range(0, ListVectorPaths().count),
                         NameOf);

TEST(VectorPaths, PlainCodeIsLastAndAlwaysThere) {
    const VectorPaths list = ListVectorPaths();
    ASSERT_GE(list.count, 1);
    ASSERT_LE(list.count, kMaxVectorPaths);
    EXPECT_TRUE(list.paths[list.count - 1].supported);
    EXPECT_STREQ(list.paths[list.count - 1].name, "plain");
}

}  // namespace
}  // namespace randflake
