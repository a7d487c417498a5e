// Runs encrypted in vector registers: every path that this processor has gives the bits of Encrypt.

#include <gtest/gtest.h>

#include <random>
#include <string>

#include "core/cipher_run.h"

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
        uint64_t ids[kRunLength];
        path_.encrypt(schedule, first, ids);
        for (int i = 0; i < kRunLength; i++)
            ASSERT_EQ(ids[i], Encrypt(schedule, first + static_cast<uint64_t>(i)))
                << path_.name << ", number " << i << " after " << first;
    }

    VectorPath path_{};
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
