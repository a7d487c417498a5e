// A server keeps the state of its windows on disk.
//
// For each range of node ids, the state contains a time in seconds, called the written end. Every
// identifier that the server has issued under these node ids has an earlier second. This holds even
// after a crash, because the server writes a window's end before it uses the window.
//
// Other servers may have issued identifiers under the same node ids, and the state does not show
// this. So a start waits, unless the state proves that no other server ran since the last stop
// (PlanStart). docs/design.md, "Node ids that others have used", gives the reasons.

#pragma once

#include <algorithm>
#include <cstdint>

#include "core/base/assert.h"
#include "core/generator/generator.h"
#include "core/identifier/node_range.h"
#include "core/lease/lease.h"
#include "core/secret/secret_records.h"
#include "core/window/origin.h"

namespace randflake {

struct WrittenEnd {
    NodeRange nodes;
    Second end;  // the first second not recorded

    friend constexpr bool operator==(const WrittenEnd&, const WrittenEnd&) = default;
};

// The tolerated difference of clocks is a setting. SkewRange holds its least and greatest values.
inline constexpr uint32_t kMaxSkewMs = 86400 * 1000;
struct SkewRange {
    uint32_t smallest_ms, largest_ms;

    constexpr SkewRange With(const SkewRange& other) const {
        RANDFLAKE_ASSERT(other.smallest_ms <= other.largest_ms && other.largest_ms <= kMaxSkewMs);
        return {std::min(smallest_ms, other.smallest_ms), std::max(largest_ms, other.largest_ms)};
    }
    friend constexpr bool operator==(const SkewRange&, const SkewRange&) = default;
};

constexpr bool IsValid(const SkewRange& skew) {
    return skew.smallest_ms <= skew.largest_ms && skew.largest_ms <= kMaxSkewMs;
}

// A window ends at most this far ahead of the clock, so a crash makes at most this many seconds
// unusable. The server extends a window in its last second, so it writes every two seconds.
inline constexpr Seconds kWindowSeconds = 3;

// A state has the written ends of up to this many ranges. The range in use comes first. If a
// directory has used more ranges than this, the last two unconfigured ranges merge into one.
inline constexpr uint32_t kMaxWrittenEnds = 16;
static_assert(kMaxWrittenEnds >= kMaxRanges + 2);

// Returns whether two boot ids are known and equal. A boot id of zeros is unknown.
constexpr bool SameBoot(const uint64_t (&a)[2], const uint64_t (&b)[2]) {
    return a[0] == b[0] && a[1] == b[1] && (a[0] != 0 || a[1] != 0);
}

// Returns the first second that begins after this instant, within the times of identifiers.
constexpr Second SecondAfter(WallMs instant) {
    return std::min(std::max(SecondOf(instant) + 1, Second{0}), kNoSecond);
}

// Describes a clean stop of a server with static node ids.
struct Stop {
    // Combines the machine's boot id with the last checkpoint's position. Every run of PostgreSQL
    // in the directory changes this position, even a run without this library. 0: unknown.
    uint64_t boot[2];
    UptimeMs uptime_ms;
    WallMs wall_ms;
    NodeRange nodes;  // all configured node ids; none if the state has no stop

    friend constexpr bool operator==(const Stop&, const Stop&) = default;
};

// Describes one attempt to write the state. A run lasts as long as its shared memory. The number of
// the run's first attempt is random, and each further attempt has the next number. Failed attempts
// count, because their state may appear on disk later. The server writes `number` to the marker
// after the state is durable and before anything relies on it. While the marker contains `number`
// or `follows`, no process relies on a state later than this one.
struct WriteRecord {
    uint64_t number;   // this attempt's number; 0 if there is none
    uint64_t follows;  // the marker's former value; 0 if there is none

    uint64_t postmaster;  // the random number of this run's postmaster
    uint64_t boot[2];     // of the machine; 0: unknown
    UptimeMs uptime_ms;   // at the attempt

    friend constexpr bool operator==(const WriteRecord&, const WriteRecord&) = default;
};

struct WindowState {
    Origin origin;
    SecretRecords secrets;  // of the server that wrote this state
    // 0, or the start of a secret that this server lacks, as a coordinator reported.
    Second differs_from;
    // The smallest and the largest difference tolerated since the start of the server that wrote
    // this state. If the state records a stop, `smallest_ms` is the value at the stop.
    SkewRange skew;
    Stop stop;  // of the server that wrote ends[0], which is then exact
    WriteRecord write;
    // The run that wrote this state acquired or resumed these leases. When the coordinator granted
    // a lease, the coordinator had those `secrets` that begin before the lease ends.
    Lease leases[kMaxLeases];
    // The hold-off of this directory's last start without a proof ended at this second. Other
    // servers may have used this server's node ids in earlier seconds.
    Second floor;
    // 0, or the second at which a starting server found that this directory is a copy. The operator
    // resets it by acknowledging the copy. A server that starts in another copy sets it again.
    Second copied_at;
    NodeRange original;    // if copied_at is not 0, covers all node ids that the original had
    NodeRange configured;  // all static node ids of the server that wrote this state
    uint32_t end_count;
    WrittenEnd ends[kMaxWrittenEnds];

    friend constexpr bool operator==(const WindowState&, const WindowState&) = default;

    // Returns the latest of the written ends of these node ids.
    Second EndFor(const NodeRange& nodes) const noexcept;

    // Returns the first second at which a window of these static node ids may open.
    Second OpensAt(const NodeRange& nodes) const noexcept;

    // Returns the latest written end of all node ids.
    Second LastEnd() const noexcept;
    Second LeasesEnd() const noexcept;

    // Sets ends[0] to the window's end. The caller writes the state before it opens these node ids'
    // window or moves the window's end. A new window must not begin before a written end of its
    // node ids. `configured` contains the server's configured ranges. Their ends never merge.
    void Record(const NodeRange& nodes, const Window& window,
                const NodeRanges& configured = {}) noexcept;

    // Records that other servers may have used these node ids before `end`.
    void UsedByOthers(const NodeRange& nodes, Second end, const NodeRanges& configured) noexcept;

    // Lowers the end of the last recorded window to `end`, but not below `end_before`. Only this
    // function lowers an end. The window must be sealed, and the server must have used no number of
    // the window from `end` on. If `end` is 0, the server has used no number of the window.
    void TakeBack(Second end) noexcept;

    // These fields describe the last recorded window, whose end is ends[0]. They exist only in
    // memory, so TakeBack has no effect on a state read from disk.
    Second recorded_start{};  // 0 after TakeBack, or without a recorded window
    Second end_before{};      // the written end of its node ids when the window opened

    // Returns the index of these node ids in `ends`. Makes room for them if they are new.
    uint32_t PlaceOf(const NodeRange& nodes, const NodeRanges& configured) noexcept;
};

// Returns the index of the range used last, or 0 if the state has none of the ranges.
uint32_t LastRange(const WindowState& state, const NodeRanges& ranges) noexcept;

// Chooses another range for the time `now`, because the range `in_use` is ahead of the clock. Of
// the ranges that may open a window now, returns the lowest unused range, or else the least
// recently used range. Returns `ranges.count` if no range may open. For each range, `earliest`
// contains the first second at which the slots allow a window (generator.h).
uint32_t ChooseRange(const WindowState& state, const NodeRanges& ranges, uint32_t in_use,
                     const Second (&earliest)[kMaxRanges], Second now) noexcept;

}  // namespace randflake
