// Decides what a starting server does with the state that it finds on disk.

#pragma once

#include <cstdint>

#include "core/window/window_codec.h"

namespace randflake {

// When the server starts, it logs what it finds on disk.
enum class Finding : uint8_t {
    kOwn,            // this directory's own state
    kFirstUse,       // no server ever used the directory for identifiers
    kUnreadable,     // corrupt, truncated or lost
    kOtherSystem,    // another system identifier
    kOtherTimeline,  // promotion or point-in-time recovery
    kCopied,         // the directory or the file is a copy
};

struct Moment {
    UptimeMs uptime_ms;
    WallMs wall_ms;
};

struct Start {
    Origin origin;
    SecretRecords secrets;
    NodeRange nodes;            // all configured node ids; none if node ids are leased
    uint32_t leased_nodes = 0;  // how many node ids the server leases

    // A crash destroyed shared memory, and the same postmaster restarts the server.
    bool after_crash_restart = false;

    uint64_t boot[2];    // as in Stop
    UptimeMs uptime_ms;  // the moment from which the hold-off counts; see SetTime
    WallMs wall_ms;

    // The number of the last write in this boot; 0 if unknown. With leased node ids, it is known
    // only under the marker's lock, so no process of another run of this directory, its hard-linked
    // copies and its snapshots lives.
    uint64_t marker;
    SkewRange skew;  // tolerated difference of clocks, from the start of the server on

    uint64_t postmaster = 0;        // as in WriteRecord
    uint64_t machine_boot[2] = {};  // as WriteRecord::boot
    UptimeMs now_ms{};
};

// Sets the moment from which the hold-off counts. This is the server's start, unless the server may
// have been promoted since. Another server ran until the promotion, so the hold-off then counts
// from the present. If the wall clock now shows an earlier time than at the start, sets
// start->wall_ms to the present time. This is safe, because other servers stopped before the start.
void SetTime(const Moment& started, const Moment& now, bool may_be_promoted, Start* start) noexcept;

struct StartPlan {
    Finding finding;
    bool proven;  // no other server has used the node ids since the stop
    SecretsChange secrets;
    UptimeMs opens_at_ms;   // windows may open after this uptime
    Second held_off_until;  // the first second after the hold-off, proven or not
    WindowState state;      // the server continues from this state
};

// The caller is a server that starts at `now` in the directory `own` and reads the state `found`.
// Returns the `copied_at` of the state that the server then writes.
Second CopiedAt(const WindowState& found, const Origin& own, Second now) noexcept;
// Returns the `original` of this state. An original can also use those of its configured node ids
// that it has not used before.
NodeRange OriginalNodes(const WindowState& found, const Origin& own) noexcept;

// Decides when a server with static node ids may open windows after a start. A window opens at or
// after the written ends of its node ids, and after the hold-off. No window may open while the plan
// refuses the secrets. `found` is valid only if `error` is kNone.
//
// Without a proof, the hold-off ends when, since the start, the wall clock and the uptime have both
// advanced by the tolerated difference. The wall clock's advance ensures that the hold-off ends
// later than every second that other servers used. Other servers' proofs rely on the length of the
// hold-off. The uptime ensures this length even if the clock is set. Until another postmaster
// starts, no window begins before the hold-off's end, even if the clock is set back (`floor`).
//
// A proof shows that no other server has used the node ids since this server's stop. The section
// "Node ids that others have used" of docs/design.md lists its conditions and their reasons.
StartPlan PlanStart(StateError error, const WindowState& found, const Start& start) noexcept;

// Returns whether a window may open at this second and uptime. See StartPlan for `opens_at_ms`.
constexpr bool MayOpen(Second opens_at, UptimeMs opens_at_ms, Second second,
                       UptimeMs uptime_ms) noexcept {
    return second >= opens_at && uptime_ms > opens_at_ms;
}

// Returns the first second at which a window may open under a lease's node ids. No other server
// uses them. But this server may have used them as static node ids while its clock was ahead.
Second LeaseOpensAt(StateError error, const WindowState& state, const NodeRange& nodes,
                    Second held_off_until) noexcept;

}  // namespace randflake
