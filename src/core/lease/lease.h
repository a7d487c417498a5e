// Leases of node ids, as the coordinator grants them and as their holder keeps them.
//
// The coordinator uses Unix seconds and last seconds, like the Randflake libraries. The server uses
// seconds since the epoch and exclusive ends. Leases are as long and as wide as a layout of seconds
// holds, which is Randflake's.

#pragma once

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

// A second from the coordinator. Seconds outside the layout become 0 or SecondsEnd.
constexpr Second SecondOfUnix(const Layout& layout, UnixSecond named) noexcept {
    if (named <= kWindowEpoch)
        return {0};
    const Second second = FromUnix(named);
    return second < SecondsEnd(layout) ? second : SecondsEnd(layout);
}

// The exclusive end for a last second from the coordinator.
constexpr Second EndOfUnix(const Layout& layout, UnixSecond named_last) noexcept {
    if (named_last < kWindowEpoch)
        return {0};
    const Second last = SecondOfUnix(layout, named_last);
    return last < SecondsEnd(layout) ? last + 1 : last;
}

// The duration that a holder asks for, and the tolerated difference of clocks.
struct LeaseTerms {
    Seconds duration;
    Ms skew;
};

// The latest end of a window that a holder may open or extend when its clock shows `now`. It cannot
// take back what it announced on disk, so this keeps a coordinator from sending a window into the
// far future.
constexpr Second LatestEnd(Second now, const LeaseTerms& asked) noexcept {
    RANDFLAKE_ASSERT(asked.duration >= 1 && asked.skew >= 0);
    return now + asked.duration + SecondsFor(asked.skew) + 1;
}

// The coordinator's clock at a moment of this server, within the error in both directions.
struct CoordinatorClock {
    UptimeMs at;  // 0: unknown
    WallMs shown;
    Ms error;

    // How far this server's clock is ahead of the coordinator's; negative: behind.
    constexpr Ms Ahead(UptimeMs uptime_ms, WallMs wall_ms) const noexcept {
        RANDFLAKE_ASSERT(at != UptimeMs{0} && uptime_ms >= at);
        return (wall_ms - shown) - (uptime_ms - at);
    }
};

// The coordinator promises the rectangle. The holder, with that many slots, checks here that a
// window of it can open; LatestEnd checks its end. A start before the layout's second 1 or after
// its last means a wrong clock of the coordinator.
constexpr bool GrantUsable(const Layout& layout, const LeaseGrant& grant, uint32_t slots) noexcept {
    RANDFLAKE_ASSERT(slots >= 1);
    const Second start = SecondOfUnix(layout, grant.start);
    const int64_t node_ids = static_cast<int64_t>(layout.max_node_id()) + 1;
    return grant.lease_id > 0 && grant.node_count == slots && grant.first_node_id >= 0 &&
           grant.first_node_id <= node_ids - grant.node_count && grant.start <= grant.end &&
           start >= Second{1} && start < SecondsEnd(layout);
}

// The window of a lease when the clock shows `now`. It is closed before the lease may open and
// after its end. `earliest` is the first second that may follow all earlier use.
constexpr Window WindowOfLease(Second earliest, const Lease& lease, Second now) noexcept {
    RANDFLAKE_ASSERT(lease.id == 0 || lease.start < lease.end);
    const Second first = lease.start > earliest ? lease.start : earliest;
    return now < first || lease.end <= first ? Window::ClosedUntil(earliest)
                                             : Window{first, lease.end};
}

}  // namespace randflake
