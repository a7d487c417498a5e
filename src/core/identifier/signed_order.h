// SQL has no unsigned integers, so these functions convert between unsigned and signed numbers.
// They keep the order of the numbers. Both functions add 2^63, which inverts the top bit.

#pragma once

#include <cstdint>

namespace randflake {

constexpr int64_t ToSigned(uint64_t value) noexcept {
    return static_cast<int64_t>(value ^ uint64_t{1} << 63);
}

constexpr uint64_t ToUnsigned(int64_t value) noexcept {
    return static_cast<uint64_t>(value) ^ uint64_t { 1 } << 63;
}

}  // namespace randflake
