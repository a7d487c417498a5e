// Shards divide the range of signed 64-bit numbers into equal contiguous parts.
//
//   shard(id) = floor((id + 2^63) * shards / 2^64),  shards in 1 .. 2^31 - 1
//
// If the number of shards doubles, shard s becomes the shards 2s and 2s + 1. The formula is
// Lemire's range reduction ("Fast Random Integer Generation in an Interval", 2019).

#pragma once

#include <cstdint>

#include "core/base/assert.h"
#include "core/identifier/signed_order.h"

namespace randflake {

__extension__ typedef unsigned __int128 uint128_t;

constexpr int32_t ShardOf(int64_t id, int32_t shards) noexcept {
    RANDFLAKE_ASSERT(shards >= 1);
    // cppcheck-suppress shiftTooManyBits ; the product has 128 bits
    return static_cast<int32_t>(uint128_t{ToUnsigned(id)} * static_cast<uint32_t>(shards) >> 64);
}

// Returns the smallest id of a shard: ceil(shard * 2^64 / shards) - 2^63.
constexpr int64_t ShardLower(int32_t shard, int32_t shards) noexcept {
    RANDFLAKE_ASSERT(shard >= 0 && shard < shards);
    const auto n = static_cast<uint32_t>(shards);
    const int64_t lower = ToSigned(
        static_cast<uint64_t>(((uint128_t{static_cast<uint32_t>(shard)} << 64) + (n - 1)) / n));
    RANDFLAKE_ASSERT(ShardOf(lower, shards) == shard);
    RANDFLAKE_ASSERT(shard == 0 || ShardOf(lower - 1, shards) == shard - 1);
    return lower;
}

constexpr int64_t ShardUpper(int32_t shard, int32_t shards) noexcept {
    RANDFLAKE_ASSERT(shard >= 0 && shard < shards);
    return shard == shards - 1 ? INT64_MAX : ShardLower(shard + 1, shards) - 1;
}

}  // namespace randflake
