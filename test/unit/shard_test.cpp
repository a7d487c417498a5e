// Checks that signed integers keep the order of raw numbers, and that shards are contiguous.

#include "core/identifier/shard.h"
#include "test.h"

namespace randflake {
namespace {

constexpr int32_t kMaxShards = INT32_MAX;

const std::vector<int32_t>& ShardCounts() {
    static const std::vector<int32_t> counts = [] {
        std::set<int32_t> set;
        for (int32_t n = 1; n <= 300; n++) set.insert(n);
        for (int bit = 1; bit < 31; bit++)
            for (int32_t around = -1; around <= 1; around++)
                set.insert((int32_t{1} << bit) + around);
        for (const int32_t n :
             {997, 1000, 1000000, 999999937, 1431655765, kMaxShards - 1, kMaxShards})
            set.insert(n);
        return std::vector<int32_t>(set.begin(), set.end());
    }();
    return counts;
}

// Returns all shards if there are at most 3000, or else first, last, middle and random shards.
std::vector<int32_t> SomeShards(int32_t shards) {
    std::set<int32_t> some;
    if (shards <= 3000) {
        for (int32_t s = 0; s < shards; s++) some.insert(s);
    } else {
        std::mt19937_64 random(static_cast<uint64_t>(shards));
        for (int32_t i = 0; i < 100; i++)
            some.insert({i, shards - 1 - i, shards / 2 - 50 + i,
                         static_cast<int32_t>(random() % static_cast<uint64_t>(shards))});
    }
    return std::vector<int32_t>(some.begin(), some.end());
}

TEST(SignedOrder, CoversAllSignedNumbers) {
    EXPECT_EQ(ToSigned(0), INT64_MIN);
    EXPECT_EQ(ToSigned(UINT64_MAX), INT64_MAX);
    EXPECT_EQ(ToUnsigned(INT64_MIN), 0u);
    EXPECT_EQ(ToUnsigned(-1), uint64_t{INT64_MAX});
    EXPECT_EQ(ToUnsigned(0), uint64_t{1} << 63);
    EXPECT_EQ(ToUnsigned(INT64_MAX), UINT64_MAX);
    for (const int64_t id : {INT64_MIN, INT64_MIN + 1, int64_t{-1}, int64_t{0}, INT64_MAX})
        EXPECT_EQ(ToSigned(ToUnsigned(id)), id);
}

TEST(Shard, BoundsAreContiguousAndInclusive) {
    for (const int32_t shards : ShardCounts())
        for (const int32_t s : SomeShards(shards)) {
            const int64_t lower = ShardLower(s, shards), upper = ShardUpper(s, shards);
            ASSERT_LE(lower, upper) << s << " of " << shards;
            ASSERT_EQ(ShardOf(lower, shards), s) << shards;
            ASSERT_EQ(ShardOf(upper, shards), s) << shards;
            if (s < shards - 1) {
                ASSERT_EQ(ShardLower(s + 1, shards), upper + 1) << s << " of " << shards;
                ASSERT_EQ(ShardOf(upper + 1, shards), s + 1) << shards;
            }
        }
}

}  // namespace
}  // namespace randflake
