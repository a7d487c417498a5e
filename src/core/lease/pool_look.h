// Coordinators in a server's databases may have granted leases of the server's static node ids.
// Computes when the server may use these ids.
//
// A coordinator never leases or renews the static node ids of its own server. But a coordinator may
// have leased them before the start if the server is a promoted standby or a copy, or if its
// settings changed. Unless PlanStart proves that no coordinator leased them, a worker looks for
// coordinators in all databases. A range opens only after the end of the last lease of its node
// ids. A range that overlaps a coordinator's pool also waits for the coordinator's mark (MarkOf).

#pragma once

#include "core/identifier/node_range.h"

namespace randflake {

// Holds what the worker reads in a coordinator's tables. Without a pool, the fields have defaults.
struct PoolSeen {
    bool configured;  // there is a pool
    bool same;        // this coordinator changed the pool last
    bool noted_here;  // this coordinator wrote `noted`
    bool called;      // `noted` is the time of its takeover; if false, of its creation
    bool made_since;  // created after the server's start, so no lease is missing
    UnixSecond noted;
    UnixSecond high_water;
    UnixSecond last_grant;  // time of the last grant or renewal
    int64_t max_duration, max_clock_skew;
    NodeRange nodes;
};

// Returns the mark that randflake_lease_share_pool() would set if the coordinator received its
// first request now. Returns 0 for a coordinator created after the server's start, because such a
// coordinator never leased the server's static node ids.
constexpr UnixSecond MarkOf(const PoolSeen& pool, UnixSecond now) noexcept {
    if (pool.noted_here && pool.same)
        return pool.made_since && !pool.called ? UnixSecond{0} : pool.high_water;
    if (pool.noted_here && pool.made_since && !pool.called && !pool.configured) return {0};
    const UnixSecond seen = now > pool.last_grant ? now : pool.last_grant;
    const bool noted = pool.noted_here && (pool.called || !pool.configured);
    const UnixSecond ended =
        (noted ? pool.noted : seen) + pool.max_duration + 2 * pool.max_clock_skew + 1;
    return ended > pool.high_water ? ended : pool.high_water;
}

struct PoolLook {
    NodeRanges ranges;  // of the server
    Second free_at[kMaxRanges];

    constexpr void AddLease(const NodeRange& nodes, UnixSecond end) noexcept {
        const Second second = FromUnix(end) < kNoSecond ? FromUnix(end) : kNoSecond;
        for (uint32_t i = 0; i < ranges.count; i++)
            if (ranges.At(i).Overlaps(nodes) && free_at[i] < second) free_at[i] = second;
    }
    constexpr void AddPool(const PoolSeen& pool, UnixSecond now) noexcept {
        AddLease(pool.nodes, MarkOf(pool, now));
    }
};

}  // namespace randflake
