// Compares SortSigned with the order of int64_t.

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

#include "core/identifier/radix_sort.h"

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
            for (uint64_t& id : ids)
                id = random() & mask;
            ExpectSorted(ids);
        }
}

}  // namespace
}  // namespace randflake
