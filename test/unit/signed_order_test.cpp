// Raw numbers keep their order as signed numbers, on both sides of 2041.

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <vector>

#include "core/identifier/layout.h"
#include "core/identifier/signed_order.h"

namespace randflake {
namespace {

std::vector<uint64_t> RawNumbersInOrder() {
    std::vector<uint64_t> numbers;
    for (const uint64_t timestamp : {0u, 1u, (1u << 29) - 1, 1u << 29, (1u << 30) - 1})
        for (const uint64_t node_id : {0u, 1u, 131071u})
            for (const uint64_t sequence : {0u, 1u, 131071u}) {
                uint64_t raw = 0;
                EXPECT_TRUE(kRandflake.Pack({timestamp, node_id, sequence}, &raw));
                numbers.push_back(raw);
            }
    return numbers;
}

TEST(SignedOrder, KeepsTheOrderOfRawNumbers) {
    const std::vector<uint64_t> numbers = RawNumbersInOrder();
    for (size_t i = 1; i < numbers.size(); i++)
        EXPECT_LT(ToSigned(numbers[i - 1]), ToSigned(numbers[i])) << i;
}

TEST(SignedOrder, ComesBack) {
    for (const uint64_t raw : RawNumbersInOrder())
        EXPECT_EQ(ToUnsigned(ToSigned(raw)), raw);
}

TEST(SignedOrder, CoversAllSignedNumbers) {
    EXPECT_EQ(ToSigned(0), std::numeric_limits<int64_t>::min());
    EXPECT_EQ(ToSigned(~uint64_t{0}), std::numeric_limits<int64_t>::max());
}

}  // namespace
}  // namespace randflake
