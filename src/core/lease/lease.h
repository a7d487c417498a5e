// Describes leases of node ids, which coordinators grant and holders use.
//
// The coordinator counts Unix seconds, and its leases have an inclusive end, as in the Randflake
// libraries. The server counts seconds since its epoch, and uses exclusive ends.

#pragma once

#include <cstdint>

#include "core/base/assert.h"
#include "core/window/window_state.h"

namespace randflake {

struct LeaseGrant {
    int64_t lease_id;
    int64_t first_node_id;
    int64_t node_count;
    UnixSecond start;
    UnixSecond end;  // inclusive
};

// Converts a Unix second from the coordinator. Limits the result to 0 .. SecondsEnd(layout).
constexpr Second SecondOfUnix(const Layout& layout, UnixSecond named) noexcept {
    if (named <= kWindowEpoch)
        return {0};
    const Second second = FromUnix(named);
    return second < SecondsEnd(layout) ? second : SecondsEnd(layout);
}

// Converts a lease's last second, as the coordinator returns it, to the lease's exclusive end.
constexpr Second EndOfUnix(const Layout& layout, UnixSecond named_last) noexcept {
    if (named_last < kWindowEpoch)
        return {0};
    const Second last = SecondOfUnix(layout, named_last);
    return last < SecondsEnd(layout) ? last + 1 : last;
}

// Holds the duration that a holder requests, and the tolerated difference of clocks.
struct LeaseTerms {
    Seconds duration;
    Ms skew;
};

// Returns the latest end of a window that a holder may open or extend when the holder's clock shows
// `now`. A holder cannot lower an end on disk. This limits the damage if a coordinator is wrong.
constexpr Second LatestEnd(Second now, const LeaseTerms& asked) noexcept {
    RANDFLAKE_ASSERT(asked.duration >= 1 && asked.skew >= 0);
    return now + asked.duration + SecondsFor(asked.skew) + 1;
}

// At this server's time `at`, the coordinator's clock showed `shown`, plus or minus `error`.
struct CoordinatorClock {
    UptimeMs at;  // 0: unknown
    WallMs shown;
    Ms error;

    // Returns how far this server's clock is ahead of the coordinator's. Negative means behind.
    constexpr Ms Ahead(UptimeMs uptime_ms, WallMs wall_ms) const noexcept {
        RANDFLAKE_ASSERT(at != UptimeMs{0} && uptime_ms >= at);
        return (wall_ms - shown) - (uptime_ms - at);
    }
};

// Returns whether a holder with `slots` slots can open a window in the granted lease. The caller
// checks the lease's end. If a lease starts outside the layout, the coordinator's clock is wrong.
constexpr bool GrantUsable(const Layout& layout, const LeaseGrant& grant, uint32_t slots) noexcept {
    RANDFLAKE_ASSERT(slots >= 1);
    const Second start = SecondOfUnix(layout, grant.start);
    const int64_t node_ids = static_cast<int64_t>(layout.max_node_id()) + 1;
    return grant.lease_id > 0 && grant.node_count == slots && grant.first_node_id >= 0 &&
           grant.first_node_id <= node_ids - grant.node_count && grant.start <= grant.end &&
           start >= Second{1} && start < SecondsEnd(layout);
}

// Returns the window that a lease has when the clock shows `now`. The window is closed until it may
// open, and after the lease's end. `earliest` is the first second after all earlier windows.
constexpr Window WindowOfLease(Second earliest, const Lease& lease, Second now) noexcept {
    RANDFLAKE_ASSERT(lease.id == 0 || lease.start < lease.end);
    const Second first = lease.start > earliest ? lease.start : earliest;
    return now < first || lease.end <= first ? Window::ClosedUntil(earliest)
                                             : Window{first, lease.end};
}

}  // namespace randflake
