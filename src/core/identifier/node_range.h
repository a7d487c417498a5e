// Describes ranges of node ids.

#pragma once

#include <algorithm>
#include <cstdint>

#include "core/base/assert.h"
#include "core/identifier/layout.h"

namespace randflake {

struct NodeRange {
    uint32_t first;
    uint32_t count;

    constexpr bool Overlaps(const NodeRange& other) const {
        return first < uint64_t{other.first} + other.count && other.first < uint64_t{first} + count;
    }
    constexpr bool Covers(const NodeRange& other) const {
        return first <= other.first && other.count <= count &&
               other.first - first <= count - other.count;
    }
    // Returns the smallest range that covers both ranges.
    constexpr NodeRange With(const NodeRange& other) const {
        if (count == 0 || other.count == 0) return count == 0 ? other : *this;
        const uint32_t lowest = std::min(first, other.first);
        const uint32_t after = std::max(first + count, other.first + other.count);
        return {lowest, after - lowest};
    }
    friend constexpr bool operator==(const NodeRange&, const NodeRange&) = default;
};

inline constexpr uint32_t kMaxNodeCount = static_cast<uint32_t>(kRandflake.max_node_id()) + 1;
constexpr bool IsValid(const NodeRange& nodes) {
    return nodes.count >= 1 && nodes.count <= kMaxNodeCount &&
           nodes.first <= kMaxNodeCount - nodes.count;
}

// Static node ids form consecutive ranges of equal size. The server uses one range at a time.
inline constexpr uint32_t kMaxRanges = 8;
struct NodeRanges {
    NodeRange first;
    uint32_t count;  // 0: node ids are leased

    constexpr NodeRange At(uint32_t i) const {
        RANDFLAKE_ASSERT(i < count && count <= kMaxRanges);
        return {first.first + i * first.count, first.count};
    }
    constexpr NodeRange All() const {
        RANDFLAKE_ASSERT(count >= 1 && count <= kMaxRanges);
        return {first.first, count * first.count};
    }
    // Returns the range's index, or `count` if there is no such range.
    constexpr uint32_t IndexOf(const NodeRange& nodes) const {
        uint32_t i = 0;
        while (i < count && At(i) != nodes) i++;
        return i;
    }
};

}  // namespace randflake
