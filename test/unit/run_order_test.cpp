// Compares SortSigned with the order of int64_t, and checks what MixGroups leaves in its place.

#include "core/identifier/run_order.h"
#include "test.h"

namespace randflake {
namespace {

void ExpectSorted(std::vector<uint64_t> ids) {
    std::vector<uint64_t> scratch(ids.size());
    std::vector<int64_t> expected(ids.begin(), ids.end());
    std::sort(expected.begin(), expected.end());
    SortSigned(ids.data(), ids.size(), scratch.data());
    EXPECT_EQ(std::vector<int64_t>(ids.begin(), ids.end()), expected);
}

TEST(SortSigned, AsSignedNumbers) {
    ExpectSorted({});
    ExpectSorted({5});
    ExpectSorted({0, UINT64_MAX, uint64_t{1} << 63, (uint64_t{1} << 63) - 1, 1});
    std::mt19937_64 random(1);
    for (const size_t count : {2, 64, 1000, 70000})
        // Fewer bits leave an odd or even number of bytes in which the identifiers differ.
        for (const uint64_t mask : {UINT64_MAX, UINT64_MAX >> 11, uint64_t{0xff}, uint64_t{7}}) {
            std::vector<uint64_t> ids(count);
            for (uint64_t& id : ids) id = random() & mask;
            ExpectSorted(ids);
        }
}

TEST(MixGroups, OfLongRuns) {
    for (const size_t count :
         {kShortestMixedRun - 1, kShortestMixedRun, kShortestMixedRun + 1000}) {
        std::vector<uint64_t> ids(count), scratch(count);
        std::iota(ids.begin(), ids.end(), uint64_t{0});
        const std::vector<uint64_t> sorted = ids;
        MixGroups(ids.data(), ids.size(), scratch.data());
        const size_t steps_down = count - 1 -
                                  std::inner_product(ids.begin() + 1, ids.end(), ids.begin(),
                                                     size_t{0}, std::plus<>(), std::greater<>());
        const size_t mixed = count < kShortestMixedRun ? 0 : count / kGroupLength;
        EXPECT_GE(steps_down, mixed * kGroupLength / 4);
        EXPECT_LE(steps_down, mixed * kGroupLength * 3 / 4);
        for (size_t k = 0; k < mixed * kGroupLength; k++)
            EXPECT_EQ(ids[k] / kGroupLength, k / kGroupLength);
        std::sort(ids.begin(), ids.end());
        EXPECT_EQ(ids, sorted);
    }
}

}  // namespace
}  // namespace randflake
