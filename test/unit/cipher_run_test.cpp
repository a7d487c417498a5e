// Many numbers in vector registers: every path that this processor has gives the bits of Encrypt
// and Decrypt.

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <random>
#include <string>

#include "core/identifier/cipher_run.h"

namespace randflake {
namespace {

class CipherRun : public testing::TestWithParam<int> {
protected:
    void SetUp() override {
        path_ = ListVectorPaths().paths[GetParam()];
        if (!path_.supported)
            GTEST_SKIP() << path_.name << " is not supported by this processor";
    }

    void ExpectAsOneByOne(const KeySchedule& schedule, uint64_t first) {
        path_.encrypt(schedule, first, out_);
        for (int i = 0; i < kRunLength; i++)
            ASSERT_EQ(out_[i], Encrypt(schedule, first + static_cast<uint64_t>(i)))
                << path_.name << ", number " << i << " after " << first;
    }

    void ExpectDecryptedAsOneByOne(const KeySchedule& schedule) {
        path_.decrypt(schedule, in_, out_);
        for (int i = 0; i < kRunLength; i++)
            ASSERT_EQ(out_[i], Decrypt(schedule, in_[i])) << path_.name << ", identifier " << i;
    }

    VectorPath path_{};
    // Aligned as arrays of uint64_t must be, and no better.
    alignas(64) uint64_t in_space_[1 + kRunLength];
    alignas(64) uint64_t out_space_[1 + kRunLength];
    uint64_t* const in_ = in_space_ + 1;
    uint64_t* const out_ = out_space_ + 1;
};

KeySchedule RandomSchedule(std::mt19937_64& random) {
    Key key;
    for (uint8_t& byte : key.bytes)
        byte = static_cast<uint8_t>(random());
    return ExpandKey(key);
}

TEST_P(CipherRun, GivesTheBitsOfEncrypt) {
    std::mt19937_64 random(64);
    for (int k = 0; k < 100; k++) {
        const KeySchedule schedule = RandomSchedule(random);
        for (int i = 0; i < 100; i++)
            ExpectAsOneByOne(schedule, random());
    }
}

// Runs that carry from each 16-bit word into the next, and over the end of the numbers.
TEST_P(CipherRun, Carries) {
    std::mt19937_64 random(16);
    const KeySchedule schedule = RandomSchedule(random);
    for (const int bits : {16, 32, 48, 64}) {
        const uint64_t end = bits == 64 ? 0 : uint64_t{1} << bits;
        for (uint64_t before = 0; before <= kRunLength; before++)
            ExpectAsOneByOne(schedule, end - before);
    }
}

TEST_P(CipherRun, GivesTheBitsOfDecrypt) {
    std::mt19937_64 random(46);
    for (int k = 0; k < 100; k++) {
        const KeySchedule schedule = RandomSchedule(random);
        for (int i = 0; i < 100; i++) {
            std::generate_n(in_, kRunLength, std::ref(random));
            ExpectDecryptedAsOneByOne(schedule);
        }
    }
}

// Numbers that a random generator would hardly draw: all the same, or one bit apart.
TEST_P(CipherRun, DecryptsTheEdges) {
    std::mt19937_64 random(65);
    const KeySchedule schedule = RandomSchedule(random);
    for (const uint64_t number : {uint64_t{0}, ~uint64_t{0}, uint64_t{random()}}) {
        std::fill_n(in_, kRunLength, number);
        ExpectDecryptedAsOneByOne(schedule);
        for (int bit = 0; bit < kRunLength; bit++)
            in_[bit] = number ^ uint64_t { 1 } << bit;
        ExpectDecryptedAsOneByOne(schedule);
    }
}

TEST_P(CipherRun, DecryptsInPlaceWhatItEncrypted) {
    std::mt19937_64 random(32);
    for (int i = 0; i < 1000; i++) {
        const KeySchedule schedule = RandomSchedule(random);
        const uint64_t first = random();
        path_.encrypt(schedule, first, out_);
        path_.decrypt(schedule, out_, out_);
        for (int n = 0; n < kRunLength; n++)
            ASSERT_EQ(out_[n], first + static_cast<uint64_t>(n)) << path_.name << ", number " << n;
    }
}

std::string NameOf(const testing::TestParamInfo<int>& info) {
    return ListVectorPaths().paths[info.param].name;
}

INSTANTIATE_TEST_SUITE_P(EveryPath, CipherRun, testing::Range(0, ListVectorPaths().count), NameOf);

TEST(VectorPaths, PlainCodeIsLastAndAlwaysThere) {
    const VectorPaths list = ListVectorPaths();
    ASSERT_GE(list.count, 1);
    ASSERT_LE(list.count, kMaxVectorPaths);
    EXPECT_TRUE(list.paths[list.count - 1].supported);
    EXPECT_STREQ(list.paths[list.count - 1].name, "plain");
}

}  // namespace
}  // namespace randflake
