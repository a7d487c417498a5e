// Raw numbers as signed numbers in the same order, for storage that knows no unsigned ones. Of two
// raw numbers the later second, then the larger node id, then the larger sequence number is
// greater.

#ifndef RANDFLAKE_CORE_ORDERED_H
#define RANDFLAKE_CORE_ORDERED_H

#include <cstdint>

namespace randflake {

inline constexpr uint64_t kOrderedSign = uint64_t{1} << 63;

constexpr int64_t OrderedFromRaw(uint64_t raw) noexcept {
    return static_cast<int64_t>(raw ^ kOrderedSign);
}

constexpr uint64_t RawFromOrdered(int64_t ordered) noexcept {
    return static_cast<uint64_t>(ordered) ^ kOrderedSign;
}

}  // namespace randflake

#endif
