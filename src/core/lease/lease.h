// Describes leases of node ids, which coordinators grant and holders use.
//
// The coordinator counts Unix seconds, and its leases have an inclusive end, as in the Randflake
// libraries. The server counts seconds since its epoch, and uses exclusive ends.

#pragma once

#include <cstdint>

#include "core/base/assert.h"
#include "core/generator/generator.h"
#include "core/identifier/node_range.h"

namespace randflake {

// The holder draws a new random number for each acquisition. Only the holder of a lease knows both
// this number and the lease's id.
struct Incarnation {
    uint64_t words[2];

    friend constexpr bool operator==(const Incarnation&, const Incarnation&) = default;
};

// The holder of a lease keeps it in this form in memory and on disk; see lease_holder.h.
struct Lease {
    int64_t id;  // 0: no lease
    Incarnation incarnation;
    NodeRange nodes;
    Second start;
    Second end;    // exclusive
    bool refused;  // the coordinator no longer renews it

    // The lease ends at `lasts_until_ms`, or later if the lease started after the holder's request.
    SteadyMs asked_at_ms;
    SteadyMs lasts_until_ms;

    friend constexpr bool operator==(const Lease&, const Lease&) = default;

    // Returns the time from the last acquisition or renewal to the lease's end.
    constexpr Ms length() const noexcept {
        RANDFLAKE_ASSERT(lasts_until_ms >= asked_at_ms);
        return lasts_until_ms - asked_at_ms;
    }
};

// A holder has up to two leases: the open lease, whose node ids are in use, and the next lease.
inline constexpr uint32_t kMaxLeases = 2;

struct LeaseGrant {
    int64_t lease_id;
    int64_t first_node_id;
    int64_t node_count;
    UnixSecond start;
    UnixSecond end;  // inclusive
};

// Converts a Unix second from the coordinator. Limits the result to 0 .. SecondsEnd(layout).
constexpr Second SecondOfUnix(const Layout& layout, UnixSecond named) noexcept {
    if (named <= kWindowEpoch) return {0};
    const Second second = FromUnix(named);
    return second < SecondsEnd(layout) ? second : SecondsEnd(layout);
}

// Converts a lease's last second, as the coordinator returns it, to the lease's exclusive end.
constexpr Second EndOfUnix(const Layout& layout, UnixSecond named_last) noexcept {
    if (named_last < kWindowEpoch) return {0};
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
