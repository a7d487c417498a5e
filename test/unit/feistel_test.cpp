// Tests the permutation of 53-bit numbers: known answers, all numbers of small widths, the
// diffusion of single bits, and batches in vector registers.

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <vector>

#include "core/identifier/cipher.h"
#include "core/identifier/cipher_batch.h"
#include "core/identifier/feistel.h"

namespace randflake {
namespace {

SipKey KeyOf(const std::string& hex) {
    Key bytes{};
    EXPECT_TRUE(ParseKey(hex.data(), hex.size(), &bytes)) << hex;
    return SipKey::FromBytes(bytes.bytes);
}

// An independent program with its own HMAC and SipHash made these vectors. Each key belongs to a
// label, for which test/t/366_mask.pl asks the server.
TEST(Feistel, Vectors) {
    std::ifstream file(FEISTEL_VECTORS);
    ASSERT_TRUE(file.is_open()) << FEISTEL_VECTORS;
    int seen = 0;
    for (const auto& vector : nlohmann::json::parse(file)) {
        const SipKey key = KeyOf(vector.at("key").get<std::string>());
        for (const auto& pair : vector.at("numbers")) {
            const auto number = pair[0].get<uint64_t>(), permuted = pair[1].get<uint64_t>();
            EXPECT_EQ(Feistel53::Permute(key, number), permuted) << vector.at("label");
            EXPECT_EQ(Feistel53::Unpermute(key, permuted), number) << vector.at("label");
            seen++;
        }
    }
    EXPECT_EQ(seen, 42);
}

template <int LeftBits, int RightBits>
void ExpectBijection() {
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

// Every bit of number and key flips every bit of the result in half of the cases. The 4096 cases
// give 2048 flips with a standard deviation of 32. None of the 53 * 181 counts deviates by six
// standard deviations.
TEST(Feistel, Avalanche) {
    constexpr int kCases = 4096, kInputs = Feistel53::kBits + 128;
    std::mt19937_64 random(53);
    std::vector<int> turned(kInputs * Feistel53::kBits);
    for (int n = 0; n < kCases; n++) {
        const SipKey key{random(), random()};
        const uint64_t number = random() & kMaxFeistel53;
        const uint64_t permuted = Feistel53::Permute(key, number);
        for (int input = 0; input < kInputs; input++) {
            SipKey other_key = key;
            uint64_t other = number;
            if (input < 53)
                other ^= uint64_t{1} << input;
            else
                (input < 53 + 64 ? other_key.k0 : other_key.k1) ^= uint64_t{1} << (input - 53) % 64;
            const uint64_t difference = permuted ^ Feistel53::Permute(other_key, other);
            for (int bit = 0; bit < Feistel53::kBits; bit++)
                turned[static_cast<size_t>(input * Feistel53::kBits + bit)] +=
                    static_cast<int>(difference >> bit & 1);
        }
    }
    for (const int count : turned)
        EXPECT_NEAR(count, kCases / 2, 6 * std::sqrt(kCases) / 2);
}

class FeistelBatch : public testing::TestWithParam<int> {};

TEST_P(FeistelBatch, GivesTheBitsOfOneByOne) {
    const VectorPath path = ListVectorPaths().paths[GetParam()];
    if (!path.supported)
        GTEST_SKIP() << path.name << " is not supported by this processor";
    std::mt19937_64 random(26);
    // The arrays have only the alignment of uint64_t.
    alignas(64) uint64_t in_space[1 + kBatchLength], out_space[1 + kBatchLength];
    uint64_t *const in = in_space + 1, *const out = out_space + 1;
    for (int k = 0; k < 1000; k++) {
        const SipKey key{random(), random()};
        const uint64_t first = random() & kMaxFeistel53 >> 1;
        for (uint64_t i = 0; i < kBatchLength; i++)
            in[i] = k % 2 == 0 ? random() & kMaxFeistel53 : first + i;
        if (k == 0) {
            in[0] = 0;
            in[kBatchLength - 1] = kMaxFeistel53;
        }
        path.permute(key, in, out);
        for (int i = 0; i < kBatchLength; i++)
            ASSERT_EQ(out[i], Feistel53::Permute(key, in[i])) << path.name << ", number " << i;
        path.unpermute(key, out, out);
        for (int i = 0; i < kBatchLength; i++)
            ASSERT_EQ(out[i], in[i]) << path.name << ", number " << i;
    }
}

std::string NameOf(const testing::TestParamInfo<int>& info) {
    return ListVectorPaths().paths[info.param].name;
}

INSTANTIATE_TEST_SUITE_P(EveryPath, FeistelBatch, testing::Range(0, ListVectorPaths().count),
                         NameOf);

}  // namespace
}  // namespace randflake
