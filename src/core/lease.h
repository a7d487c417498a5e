// What the holder of a lease of node ids decides: whether a grant can be used, when its window
// opens, how far a renewal reaches, what is said when it is given back. Pure: times in, times out.
//
// The coordinator speaks of Unix seconds and of last seconds, as the Randflake libraries do; inside
// the server it is seconds since kWindowEpochMs, and ends are exclusive. Leases are as long and as
// wide as a layout of seconds holds, which is Randflake's.

#ifndef RANDFLAKE_CORE_LEASE_H
#define RANDFLAKE_CORE_LEASE_H

#include <cstdint>

#include "generator.h"

namespace randflake {

struct LeaseGrant {
    int64_t lease_id;
    int64_t first_node_id;
    int64_t node_count;
    int64_t start;  // Unix seconds
    int64_t end;    // Unix seconds, inclusive
};

// Seconds since the epoch of a second that the coordinator named. Outside what identifiers can hold
// means that its clock is wrong, and becomes a window that never opens.
constexpr int64_t SecondOfUnix(const Layout& layout, int64_t unix_second) noexcept {
    const int64_t second = unix_second - kWindowEpochSeconds;
    const auto beyond = static_cast<int64_t>(layout.max_timestamp()) + 1;
    return second < 0 ? 0 : second > beyond ? beyond : second;
}

// The rectangle is the coordinator's promise; the holder, who has that many slots, only checks that
// it can be used.
constexpr bool GrantUsable(const Layout& layout, const LeaseGrant& grant, uint32_t slots) noexcept {
    return grant.lease_id > 0 && grant.node_count == slots && grant.first_node_id >= 0 &&
           grant.first_node_id + grant.node_count <=
               static_cast<int64_t>(layout.max_node_id()) + 1 &&
           grant.start <= grant.end && SecondOfUnix(layout, grant.start) >= 1;
}

// The window of a lease of the seconds [start, end) that follows the window `last`; closed while
// the lease is not to be opened. `last.end` is the end of the open lease; of a closed window, the
// first second that may follow it.
constexpr Window WindowOfLease(Window last, int64_t start, int64_t end, int64_t now) noexcept {
    const int64_t first = start > last.end ? start : last.end;
    if (now < first || first >= end)
        return Window{0, 0};
    return Window{static_cast<uint32_t>(first), static_cast<uint32_t>(end)};
}

// The end of a lease that the coordinator renewed to this last second. What was promised stays.
constexpr int64_t RenewedEnd(const Layout& layout, int64_t known_end,
                             int64_t last_unix_second) noexcept {
    const int64_t end = SecondOfUnix(layout, last_unix_second + 1);
    return end > known_end ? end : known_end;
}

// What to say when a lease is given back: the last second used, which is one before its start when
// none was. `sealed` is what SealWindow gave.
constexpr int64_t LastUsedUnix(int64_t start, int64_t sealed) noexcept {
    return (sealed >= 0 ? sealed : start - 1) + kWindowEpochSeconds;
}

}  // namespace randflake

#endif
