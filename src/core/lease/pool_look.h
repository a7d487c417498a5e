// Computes from which second on a server may use its own static node ids. Coordinators in the
// server's databases may have leased these node ids.
//
// A coordinator never leases or renews the static node ids of its own server. But a server may
// start with node ids that a coordinator leased before: new ones, more spare ranges, those of a
// promoted standby or a copy. So unless a start is proven (PlanStart), a worker looks once into
// every database. Each range opens at the second from which the coordinator there would grant it to
// another holder. A range opens after the last lease that overlaps it and, if it overlaps the pool,
// after the mark. After the start no coordinator grants or renews these node ids, so one look
// suffices.

#pragma once

#include "core/window/window_state.h"

namespace randflake {

// A coordinator's tables. Missing values have the defaults of an unconfigured pool.
struct PoolSeen {
    bool configured;  // there is a pool; otherwise the values that a new one would have
    bool same;        // this very coordinator changed the pool last
    bool noted_here;  // this coordinator's `noted`: its creation or, `called`, its takeover
    bool called;
    bool made_since;  // created since the server's start, so its table has all of its leases
    UnixSecond noted;
    UnixSecond high_water;
    UnixSecond last_grant;  // or renewal
    int64_t max_duration, max_clock_skew;
    NodeRange nodes;
};

// Returns the second before which this coordinator would grant nothing if its first request came
// now, as in randflake_lease_share_pool(). 0 for a new coordinator: it waits for others, and the
// server used its node ids earlier.
constexpr UnixSecond MarkOf(const PoolSeen& pool, UnixSecond now) noexcept {
    if (pool.noted_here && pool.same)
        return pool.made_since && !pool.called ? UnixSecond{0} : pool.high_water;
    if (pool.noted_here && pool.made_since && !pool.called && !pool.configured)
        return {0};
    const UnixSecond seen = now > pool.last_grant ? now : pool.last_grant;
    const bool noted = pool.noted_here && (pool.called || !pool.configured);
    const UnixSecond ended =
        (noted ? pool.noted : seen) + pool.max_duration + 2 * pool.max_clock_skew + 1;
    return ended > pool.high_water ? ended : pool.high_water;
}

// Collects results; trivially destructible.
struct PoolLook {
    NodeRanges ranges;  // of the server
    Second free_at[kMaxRanges];

    constexpr void AddLease(const NodeRange& nodes, UnixSecond end) noexcept {
        const Second second = FromUnix(end) < kNoSecond ? FromUnix(end) : kNoSecond;
        for (uint32_t i = 0; i < ranges.count; i++)
            if (ranges.At(i).Overlaps(nodes) && free_at[i] < second)
                free_at[i] = second;
    }
    constexpr void AddPool(const PoolSeen& pool, UnixSecond now) noexcept {
        AddLease(pool.nodes, MarkOf(pool, now));
    }
};

}  // namespace randflake
