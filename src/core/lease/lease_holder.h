// Decides for the holder of leases: what it asks the coordinator and when, how it interprets
// answers, when it opens windows, and which leases it gives back.
//
//   no lease       acquire one
//   lease          renew it at two fifths of its time
//   refused        acquire another; the old one stays good until its end, then the new one opens
//   too long       the same; a lease granted with such an end is given back
//   clock behind   keep and renew it; the window reaches as far as the clock allows (LatestEnd)
//   no answer      ask again, backing off; the leases stay as they are
//
// Only a refused renewal ends a lease, never the local clock.
//
// A lease is a permission with an end. The server writes the window in it ahead in steps, by the
// same path as for static node ids (Server::Extend), and never beyond the lease.
//
// A holder has up to two leases. The open lease's node ids are in the slots. The next lease waits
// for its own start and for the end of the open one. Windows follow each other in time
// (generator.h). So a holder never leaves a lease before its end for another, because another
// coordinator may grant the same node ids.
//
// The holder is plain data, which may be copied byte by byte. All zero is a holder without leases
// that waits for nothing. The holder is in shared memory. The state on disk has what a start needs
// to resume the leases, under the conditions of Resumes in core/window/window_state.h. One process
// at a time makes changes. Clock readings and random numbers are arguments.

#pragma once

#include <cstdint>
#include <type_traits>

#include "core/lease/lease.h"

namespace randflake {

// How long a stop waits for a sign of the coordinator, and then for it to accept the leases.
// Without the sign the server keeps its leases.
inline constexpr Ms kProbeTimeout = 750;
inline constexpr Ms kReleaseTimeout = 1000;

struct LeaseRequest {
    enum class Kind : uint8_t { kNone, kAcquire, kRenew };

    Kind kind;
    int64_t lease_id;  // of kRenew
    Incarnation incarnation;
    UnixSecond expected_end;  // of kRenew: the holder's last second
};

struct LeaseReply {
    enum class Kind : uint8_t { kNone, kRefused, kGranted, kRenewed };  // kNone: nothing is certain

    Kind kind;
    LeaseGrant grant;       // of kGranted
    UnixSecond renewed_to;  // of kRenewed: the last second
    bool tells_of_secrets;  // of any kind: whether `differs_from` counts
    Second differs_from;    // from this second on the server lacks a secret; 0: it lacks none
};

enum class LeaseOutcome : uint8_t {
    kGood,       // a lease was granted or renewed
    kNotBegun,   // the same, but the lease has not begun by this server's clock
    kOver,       // the same, but the lease has ended by this server's clock
    kUnusable,   // the grant makes no sense; ask again later
    kTooLong,    // the lease ends too late: not taken; ask again later
    kBehind,     // good, but this server's clock is behind: the lease ends too late
    kReplace,    // the lease cannot be renewed; acquire another at once
    kNothing,    // nothing has changed; ask again later
    kNotAwaited  // the answer matches no pending request; nothing has changed
};

// A lease to give back.
struct LeaseRelease {
    Lease lease;           // id 0: nothing to give back
    UnixSecond last_used;  // unused: the second before its start

    // This directory may have used the node ids before `end`: no other holder may have those
    // seconds.
    void UsedUntil(Second end) noexcept;
};
struct LeaseReleases {
    LeaseRelease open, next;
};

class LeaseHolder {
public:
    const Lease& open() const noexcept { return open_; }
    const Lease& next() const noexcept { return next_; }
    // Write copies both leases to the state on disk. Resume takes the leases from there. A resumed
    // lease has no window: see Reopened.
    void Write(Lease (&leases)[kMaxLeases]) const noexcept {
        leases[0] = open_;
        leases[1] = next_;
    }
    void Resume(const Lease (&leases)[kMaxLeases]) noexcept {
        RANDFLAKE_ASSERT(newest().id == 0);
        open_ = leases[0];
        next_ = leases[1];
    }
    // Returns the lease to renew.
    const Lease& newest() const noexcept { return next_.id != 0 ? next_ : open_; }

    Second LastEnd() const noexcept { return open_.end > next_.end ? open_.end : next_.end; }

    LeaseRequest::Kind awaits() const noexcept { return awaits_; }

    // --- requests; answers to former ones then mean nothing

    // Returns whether the next request is a renewal rather than an acquisition.
    bool renews() const noexcept { return newest().id != 0 && !newest().refused; }
    LeaseRequest Renew(SteadyMs now_ms) noexcept;
    // `fresh` is random, and never used before.
    LeaseRequest Acquire(const Incarnation& fresh, SteadyMs now_ms) noexcept;

    // --- answers; call these only when they are certainly committed

    // Takes a grant for a server with `slots` slots. Refuses a lease that ends beyond LatestEnd and
    // is longer than requested; see Declined.
    LeaseOutcome Granted(const Layout& layout, uint32_t slots, const LeaseGrant& grant,
                         const LeaseTerms& asked, Second now) noexcept;
    // Returns the lease to give back unused after kTooLong.
    LeaseRelease Declined(const Layout& layout, const LeaseGrant& grant) const noexcept;
    // Extends the lease to the second `last`, or leaves a longer lease. If `last` is beyond
    // LatestEnd and, by the clock that never steps, the lease would be longer than requested, the
    // lease keeps its end, and the holder does not renew it again.
    LeaseOutcome Renewed(const Layout& layout, UnixSecond last, const LeaseTerms& asked,
                         Second now) noexcept;
    LeaseOutcome Refused() noexcept;
    // Call this if no clear answer came, or the holder could not send the request.
    LeaseOutcome Unanswered() noexcept;

    // --- time

    // Returns the time of the next request: after two fifths of the lease. So a lease of a minute
    // leaves 36 seconds for the operator's alerts. Steps of the wall clock do not affect the time.
    // `longest` is the requested duration. Any `random` number makes the request slightly earlier,
    // so that the holders of a returning coordinator spread out.
    SteadyMs NextRequestAt(Seconds longest, uint64_t random, SteadyMs now_ms) const noexcept;
    // Returns the time of the next action, given that of the next request.
    SteadyMs WakeAt(SteadyMs next_request_at_ms, SteadyMs now_ms) const noexcept;

    // --- the window

    // Returns the window in force, up to the end of the open lease, but not beyond `latest`.
    Window Extended(Window window, Second latest) const noexcept;
    // Returns a window of the open lease if it has none; see OpenNext.
    Window Reopened(Second earliest, Second now, Second latest) const noexcept;
    // Opens the next lease if its time has come. Returns its window, or a closed one. `earliest` is
    // the first second after earlier use. `earliest` is at or after the ends of the open lease and
    // of the window, even a closed one. The new window ends at `latest` or before.
    Window OpenNext(Second earliest, Second now, Second latest) noexcept;
    // Returns true if this directory may already have used the next lease's node ids to the lease's
    // end. The directory may have used them up to `used_until`. Before the end of the window in
    // force, only the open lease used node ids.
    bool NextUsed(Window window, Second used_until) const noexcept;
    // Gives the next lease back as used to its end, so that the coordinator remembers it.
    LeaseRelease DropNext() noexcept;
    // Returns the leases to give back after the seal that returned `last`. Forgets both leases.
    LeaseReleases Sealed(Second last) noexcept;

protected:  // the simulation breaks the rules one by one
    LeaseOutcome Succeeded(const Lease& lease, Second now) noexcept;

    Lease open_{};
    Lease next_{};
    LeaseRequest::Kind awaits_{};
    Incarnation incarnation_{};  // of the pending acquisition
    SteadyMs asked_at_ms_{};     // of the pending request
    Ms retry_interval_ = 0;      // 0: the last request succeeded
};

static_assert(std::is_trivially_copyable_v<LeaseHolder>);
static_assert(std::is_trivially_destructible_v<LeaseHolder>);

}  // namespace randflake
