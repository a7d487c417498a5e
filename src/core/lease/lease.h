// Leases of node ids, as the coordinator grants them and as their holder keeps them.
//
// The coordinator speaks of Unix seconds and of last seconds, as the Randflake libraries do; inside
// the server it is seconds since the epoch, and ends are exclusive. Leases are as long and as
// wide as a layout of seconds holds, which is Randflake's.

#ifndef RANDFLAKE_CORE_LEASE_LEASE_H
#define RANDFLAKE_CORE_LEASE_LEASE_H

#include <cstdint>

#include "core/base/assert.h"
#include "core/window/window_state.h"

namespace randflake {

// The coordinator's answer to an acquisition.
struct LeaseGrant {
    int64_t lease_id;
    int64_t first_node_id;
    int64_t node_count;
    UnixSecond start;
    UnixSecond end;  // inclusive
};

// A second that the coordinator named. What the layout cannot hold becomes 0 or SecondsEnd.
constexpr Second SecondOfUnix(const Layout& layout, UnixSecond named) noexcept {
    if (named <= kWindowEpoch)
        return {0};
    const Second second = FromUnix(named);
    return second < SecondsEnd(layout) ? second : SecondsEnd(layout);
}

// The exclusive end of a lease whose last second the coordinator named.
constexpr Second EndOfUnix(const Layout& layout, UnixSecond named_last) noexcept {
    if (named_last < kWindowEpoch)
        return {0};
    const Second last = SecondOfUnix(layout, named_last);
    return last < SecondsEnd(layout) ? last + 1 : last;
}

// How long a lease a holder asked for, and by how much its clock and the coordinator's may differ.
struct LeaseTerms {
    Seconds duration;
    Ms skew;
};

// The latest end of a window that a holder opens or extends whose clock shows `now`. What was
// announced on disk cannot be taken back, so a coordinator must not be able to send a window into
// the far future.
constexpr Second LatestEnd(Second now, const LeaseTerms& asked) noexcept {
    RANDFLAKE_ASSERT(asked.duration >= 1 && asked.skew >= 0);
    return now + asked.duration + SecondsFor(asked.skew) + 1;
}

// What the coordinator's clock showed at a moment of this server, within the error in both
// directions.
struct CoordinatorClock {
    UptimeMs at;  // 0: it was not told
    WallMs shown;
    Ms error;

    // By how much this server's clock is ahead of the coordinator's; negative: behind.
    constexpr Ms Ahead(UptimeMs uptime_ms, WallMs wall_ms) const noexcept {
        RANDFLAKE_ASSERT(at != UptimeMs{0} && uptime_ms >= at);
        return (wall_ms - shown) - (uptime_ms - at);
    }
};

// The rectangle is the coordinator's promise. The holder, who has that many slots, checks that a
// window of it can open, and elsewhere that it ends in time (LatestEnd). A start before the
// layout's second 1 or after its last means that the coordinator's clock is wrong.
constexpr bool GrantUsable(const Layout& layout, const LeaseGrant& grant, uint32_t slots) noexcept {
    RANDFLAKE_ASSERT(slots >= 1);
    const Second start = SecondOfUnix(layout, grant.start);
    const int64_t node_ids = static_cast<int64_t>(layout.max_node_id()) + 1;
    return grant.lease_id > 0 && grant.node_count == slots && grant.first_node_id >= 0 &&
           grant.first_node_id <= node_ids - grant.node_count && grant.start <= grant.end &&
           start >= Second{1} && start < SecondsEnd(layout);
}

// The window of a lease when the clock shows `now`. It is closed while
// the lease is not to be opened, and when nothing is left of it. `earliest` is the first second
// that may follow what was used before.
constexpr Window WindowOfLease(Second earliest, const Lease& lease, Second now) noexcept {
    RANDFLAKE_ASSERT(lease.id == 0 || lease.start < lease.end);
    const Second first = lease.start > earliest ? lease.start : earliest;
    return now < first || lease.end <= first ? Window::ClosedUntil(earliest)
                                             : Window{first, lease.end};
}

}  // namespace randflake

#endif
