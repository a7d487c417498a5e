// Leases of node ids, as the coordinator grants them and as their holder keeps them.
//
// The coordinator speaks of Unix seconds and of last seconds, as the Randflake libraries do; inside
// the server it is seconds since kWindowEpochMs, and ends are exclusive. Leases are as long and as
// wide as a layout of seconds holds, which is Randflake's.

#ifndef RANDFLAKE_CORE_LEASE_LEASE_H
#define RANDFLAKE_CORE_LEASE_LEASE_H

#include <cstdint>

#include "core/window/generator.h"

namespace randflake {

// The coordinator's answer to an acquisition.
struct LeaseGrant {
    int64_t lease_id;
    int64_t first_node_id;
    int64_t node_count;
    int64_t start;  // Unix seconds
    int64_t end;    // Unix seconds, inclusive
};

// A random number that its holder chooses for each acquisition. Whoever names it with the id of the
// lease was granted that very lease.
struct Incarnation {
    uint64_t words[2];

    friend constexpr bool operator==(const Incarnation&, const Incarnation&) = default;
};

struct Lease {
    int64_t id;  // 0: no lease
    Incarnation incarnation;
    int64_t first_node_id;
    int64_t start;  // seconds since kWindowEpochMs
    int64_t end;    // exclusive
    bool refused;   // the coordinator renews it no more

    // On a clock that never steps, milliseconds: when the coordinator was asked, and when the lease
    // ends if its start was then. It may start later, so it never ends earlier, whatever the clocks
    // show.
    int64_t asked_at_ms;
    int64_t lasts_until_ms;

    // Of the last grant or renewal: how long it was then to its end.
    constexpr int64_t length_ms() const noexcept { return lasts_until_ms - asked_at_ms; }
};

// The first second that `layout` cannot hold.
constexpr int64_t SecondsEnd(const Layout& layout) noexcept {
    return static_cast<int64_t>(layout.max_timestamp()) + 1;
}

// Seconds since the epoch of a second that the coordinator named. What the layout cannot hold
// becomes 0 or SecondsEnd.
constexpr int64_t SecondOfUnix(const Layout& layout, int64_t unix_second) noexcept {
    if (unix_second <= kWindowEpochSeconds)
        return 0;
    const int64_t second = unix_second - kWindowEpochSeconds;
    return second < SecondsEnd(layout) ? second : SecondsEnd(layout);
}

// The exclusive end of a lease whose last second the coordinator named.
constexpr int64_t EndOfUnix(const Layout& layout, int64_t last_unix_second) noexcept {
    if (last_unix_second < kWindowEpochSeconds)
        return 0;
    const int64_t last = SecondOfUnix(layout, last_unix_second);
    return last < SecondsEnd(layout) ? last + 1 : last;
}

// What a holder asked for, in seconds, and by how much its clock and the coordinator's may differ.
struct LeaseTerms {
    int64_t duration;
    int64_t skew_ms;
};

// The latest end of a lease that a holder takes whose clock shows `now`. What was announced on disk
// cannot be taken back, so a coordinator must not be able to send a window into the far future.
constexpr int64_t LatestEnd(int64_t now, const LeaseTerms& asked) noexcept {
    return now + asked.duration + (asked.skew_ms + kSecondMs - 1) / kSecondMs + 1;
}

// The rectangle is the coordinator's promise. The holder, who has that many slots, checks that a
// window of it can open, and elsewhere that it ends in time (LatestEnd). A start before the
// layout's second 1 or after its last means that the coordinator's clock is wrong.
constexpr bool GrantUsable(const Layout& layout, const LeaseGrant& grant, uint32_t slots) noexcept {
    const int64_t start = SecondOfUnix(layout, grant.start);
    const int64_t node_ids = static_cast<int64_t>(layout.max_node_id()) + 1;
    return grant.lease_id > 0 && grant.node_count == slots && grant.first_node_id >= 0 &&
           grant.first_node_id <= node_ids - grant.node_count && grant.start <= grant.end &&
           start >= 1 && start < SecondsEnd(layout);
}

// The window of a lease of the seconds [start, end), when the clock shows `now`. It is closed while
// the lease is not to be opened, and when nothing is left of it. `earliest` is the first second
// that may follow what was used before.
constexpr Window WindowOfLease(int64_t earliest, int64_t start, int64_t end, int64_t now) noexcept {
    const int64_t first = start > earliest ? start : earliest;
    if (now < first)
        return Window{0, 0};
    return Window{static_cast<uint32_t>(first), static_cast<uint32_t>(end)};
}

}  // namespace randflake

#endif
