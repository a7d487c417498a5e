// Tests the ciphers SPARX-64/128 and SipHash-2-4, the permutation of 53-bit numbers, and the parser
// of keys. Checks that every vector path of this processor returns the bits of the scalar cipher.

#include <nlohmann/json.hpp>

#include "core/identifier/feistel.h"
#include "core/identifier/id_text.h"
#include "core/identifier/siphash.h"
#include "printers.h"
#include "vector_paths.h"

namespace randflake {
namespace {

// Stores each word with its high byte first, and returns the number that a little-endian processor
// reads from these eight bytes.
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

constexpr uint8_t kSipKeyText[] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
constexpr SipKey kKey = SipKey::FromBytes(kSipKeyText);
static_assert(std::size(kSipKeyText) == kSipKeyBytes);
constexpr uint64_t kMessage[] = {0x0706050403020100, 0x0f0e0d0c0b0a0908, 0x1716151413121110,
                                 0x1f1e1d1c1b1a1918, 0x2726252423222120, 0x2f2e2d2c2b2a2928,
                                 0x3736353433323130};

// These answers come from vectors_sip64 of the reference implementation (veorq/SipHash), for
// messages of 0, 8, 16, ... bytes. The lowest byte of each word comes first in the reference.
constexpr uint64_t kAnswers[] = {0x726fdb47dd0e0e31, 0x93f5f5799a932462, 0x3f2acc7f57c29bdb,
                                 0xb8ad50c6f649af94, 0x7127512f72f27cce, 0x0e3ea96b5304a7d0,
                                 0xe612a3cb9ecba951, 0xb78dbfaf3a8d83bd};

TEST(SipHash, ReferenceVectors) {
    for (size_t words = 0; words < std::size(kAnswers); words++)
        EXPECT_EQ(SipHash(kKey, kMessage, words), kAnswers[words]) << words;
}

TEST(SipHash, EveryBitCounts) {
    const uint64_t word = 0;
    const uint64_t hash = SipHash({0, 0}, &word, 1);
    for (int bit = 0; bit < 64; bit++) {
        const uint64_t one = uint64_t{1} << bit;
        for (const uint64_t other :
             {SipHash({one, 0}, &word, 1), SipHash({0, one}, &word, 1), SipHash({0, 0}, &one, 1)}) {
            const int flipped = std::popcount(hash ^ other);
            EXPECT_GE(flipped, 12) << bit;
            EXPECT_LE(flipped, 52) << bit;
        }
    }
}

// A separate program with its own HMAC and SipHash computed these vectors. test/t/366_mask.pl
// checks the server's functions against the same vectors.
TEST(Feistel, Vectors) {
    std::ifstream file(FEISTEL_VECTORS);
    ASSERT_TRUE(file.is_open()) << FEISTEL_VECTORS;
    int seen = 0;
    for (const auto& vector : nlohmann::json::parse(file)) {
        const SipKey key = SipKey::FromBytes(KeyOf(vector.at("key").get<std::string>()).bytes);
        for (const auto& pair : vector.at("numbers")) {
            const auto number = pair[0].get<uint64_t>(), permuted = pair[1].get<uint64_t>();
            EXPECT_EQ(Feistel53::Permute(key, number), permuted) << vector.at("label");
            EXPECT_EQ(Feistel53::Unpermute(key, permuted), number) << vector.at("label");
            seen++;
        }
    }
    EXPECT_EQ(seen, 42);
}

template <int LeftBits, int RightBits> void ExpectBijection() {
    using Small = Feistel<LeftBits, RightBits>;
    std::mt19937_64 random(LeftBits * 64 + RightBits);
    for (int k = 0; k < 20; k++) {
        const SipKey key{random(), random()};
        std::vector<bool> seen(uint64_t{1} << Small::kBits);
        for (uint64_t number = 0; number < seen.size(); number++) {
            const uint64_t permuted = Small::Permute(key, number);
            ASSERT_LT(permuted, seen.size());
            ASSERT_FALSE(seen[permuted]) << permuted;
            seen[permuted] = true;
            ASSERT_EQ(Small::Unpermute(key, permuted), number);
        }
    }
}

TEST(Feistel, IsABijectionOfEverySmallWidth) {
    ExpectBijection<1, 1>();
    ExpectBijection<1, 2>();
    ExpectBijection<2, 1>();
    ExpectBijection<3, 4>();
    ExpectBijection<4, 4>();
    ExpectBijection<6, 7>();
    ExpectBijection<7, 6>();
    ExpectBijection<7, 8>();
}

TEST(ParseKey, ReadsEitherCase) {
    const Key expected{{0x00, 0x12, 0x34, 0x56, 0x78, 0x9a, 0xbc, 0xde, 0xf0, 0xab, 0xcd, 0xef,
                        0xfe, 0xdc, 0xba, 0xff}};
    for (const char* hex : {"00123456789abcdef0abcdeffedcbaff", "00123456789ABCDEF0ABCDEFFEDCBAFF",
                            "00123456789aBcDeF0AbCdEfFeDcBafF"})
        EXPECT_EQ(std::memcmp(KeyOf(hex).bytes, expected.bytes, kKeyBytes), 0) << hex;
}

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
        if (digits.find(c) != std::string::npos) continue;
        for (size_t position = 0; position < 2 * kKeyBytes; position++) {
            std::string text(2 * kKeyBytes, '7');
            text[position] = c;
            EXPECT_TRUE(Refused(text)) << "byte " << value << " at " << position;
        }
    }
}

class CipherBatch : public VectorPathTest {
protected:
    void ExpectAsOneByOne(const KeySchedule& schedule, uint64_t first) {
        path_.encrypt(schedule, first, out_);
        for (int i = 0; i < kBatchLength; i++)
            ASSERT_EQ(out_[i], Encrypt(schedule, first + static_cast<uint64_t>(i)))
                << path_.name << ", number " << i << " after " << first;
    }
};

TEST_P(CipherBatch, GivesTheBitsOfEncrypt) {
    std::mt19937_64 random(64);
    for (int k = 0; k < 100; k++) {
        const KeySchedule schedule = RandomSchedule(random);
        for (int i = 0; i < 100; i++) ExpectAsOneByOne(schedule, random());
    }
}

// Encrypts batches of consecutive numbers in which the low 16, 32, 48 or 64 bits overflow.
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
            path_.decrypt(schedule, in_, out_);
            for (int n = 0; n < kBatchLength; n++)
                ASSERT_EQ(out_[n], Decrypt(schedule, in_[n])) << path_.name << ", identifier " << n;
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

TEST_P(CipherBatch, GivesTheBitsOfPermuteAndUnpermute) {
    std::mt19937_64 random(26);
    for (int k = 0; k < 1000; k++) {
        const SipKey key{random(), random()};
        const uint64_t first = random() & kMaxFeistel53 >> 1;
        for (uint64_t i = 0; i < kBatchLength; i++)
            in_[i] = k % 2 == 0 ? random() & kMaxFeistel53 : first + i;
        if (k == 0) {
            in_[0] = 0;
            in_[kBatchLength - 1] = kMaxFeistel53;
        }
        path_.permute(key, in_, out_);
        for (int i = 0; i < kBatchLength; i++)
            ASSERT_EQ(out_[i], Feistel53::Permute(key, in_[i])) << path_.name << ", number " << i;
        path_.unpermute(key, out_, out_);
        for (int i = 0; i < kBatchLength; i++)
            ASSERT_EQ(out_[i], in_[i]) << path_.name << ", number " << i;
    }
}

INSTANTIATE_ON_EVERY_PATH(CipherBatch);

TEST(VectorPaths, PlainCodeIsLastAndAlwaysThere) {
    const VectorPaths list = ListVectorPaths();
    ASSERT_GE(list.count, 1);
    ASSERT_LE(list.count, kMaxVectorPaths);
    EXPECT_TRUE(list.paths[list.count - 1].supported);
    EXPECT_STREQ(list.paths[list.count - 1].name, "plain");
}

// Tests cipher, layout and text against the reference implementation's vectors. The file's strings
// contain 64-bit numbers: raw numbers are unsigned, encrypted numbers signed.
TEST(Vectors, BothDirections) {
    std::ifstream file(REFERENCE_VECTORS);
    ASSERT_TRUE(file.is_open()) << REFERENCE_VECTORS;
    const auto vectors = nlohmann::json::parse(file);
    EXPECT_EQ(vectors.size(), 16u);
    for (const auto& vector : vectors) {
        SCOPED_TRACE(vector.dump());
        const auto text_of = [&](const char* field) { return vector.at(field).get<std::string>(); };
        const auto number_of = [&](const char* field) { return vector.at(field).get<uint64_t>(); };
        const uint64_t raw = std::stoull(text_of("raw_id"));
        const auto id = static_cast<uint64_t>(std::stoll(text_of("encrypted_id")));
        const std::string text = text_of("encoded_id"), secret = text_of("secret");

        const auto epoch = static_cast<uint64_t>(kRandflake.epoch / kSecondMs);
        const Fields fields{number_of("timestamp") - epoch, number_of("node_id"),
                            number_of("sequence")};
        EXPECT_EQ(Packed(kRandflake, fields), raw);
        EXPECT_EQ(kRandflake.Unpack(raw), fields);

        EXPECT_EQ(Encrypt(ExpandKey(KeyOf(secret)), raw), id);
        EXPECT_EQ(Decrypt(ExpandKey(KeyOf(secret)), id), raw);

        char buffer[kMaxTextLength];
        EXPECT_EQ(std::string(buffer, FormatText(id, buffer)), text);
        const TextResult read = ParseText(text.data(), text.size());
        EXPECT_EQ(read.error, TextError::kNone);
        EXPECT_EQ(read.id, id);
    }
}

}  // namespace
}  // namespace randflake
