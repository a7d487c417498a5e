// Makes the decisions of the holder of leases: which request to send to the coordinator and when,
// how to interpret the answer, when to open windows, and which leases to give back.
//
//   no lease       acquire one
//   lease          renew it at two fifths of its time
//   refused        acquire another lease, which opens when the present one ends
//   too long       after a renewal, do as if refused; after a grant, give the lease back
//   clock behind   keep and renew it; the window reaches only up to LatestEnd
//   no answer      ask again, with growing delays; the leases stay as they are
//
// The local clock never makes the holder drop a lease. A lease permits the use of node ids up to
// its end. Server::Extend opens and extends windows within the lease, as with static node ids.
//
// A holder has at most two leases. The slots use the node ids of the open lease. The next lease
// waits for its own start and the end of the open lease. Windows follow each other in time
// (generator.h), and another coordinator may grant the same node ids. So a holder never moves to
// the next lease before the open lease ends.
//
// The holder is plain data in shared memory, which may be copied byte by byte. If all bytes are
// zero, the holder has no leases. One process at a time changes the holder. The caller passes clock
// readings and random numbers. A starting server may resume leases from disk (see Resumes).

#pragma once

#include <cstdint>
#include <type_traits>

#include "core/lease/lease.h"

namespace randflake {

// A stopping server waits for any answer of the coordinator (at most kProbeTimeout), and then for
// the coordinator to take back the leases (at most kReleaseTimeout). Without an answer, the server
// keeps its leases.
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
    bool tells_of_secrets;  // of any kind: whether `differs_from` is known
    Second differs_from;    // the server lacks a secret from this second on; 0: it lacks none
};

enum class LeaseOutcome : uint8_t {
    kGood,       // a lease was granted or renewed
    kNotBegun,   // like kGood, but the lease has not begun by this server's clock
    kOver,       // like kGood, but the lease has ended by this server's clock
    kUnusable,   // the grant makes no sense; ask again later
    kTooLong,    // the holder does not take a lease that ends too late; ask again later
    kBehind,     // like kGood, but the lease ends late, because this server's clock is behind
    kReplace,    // the lease cannot be renewed; acquire another at once
    kNothing,    // the leases stay as they are; ask again later
    kNotAwaited  // the answer matches no pending request; nothing has changed
};

struct LeaseRelease {
    Lease lease;           // id 0: nothing to give back
    UnixSecond last_used;  // if the lease was not used, the second before its start

    // Raises last_used to `end` - 1. This directory may have used the node ids until `end`.
    void UsedUntil(Second end) noexcept;
};
struct LeaseReleases {
    LeaseRelease open, next;
};

class LeaseHolder {
public:
    const Lease& open() const noexcept { return open_; }
    const Lease& next() const noexcept { return next_; }
    // Write() copies both leases to the state on disk, and Resume() reads them from the state. A
    // resumed lease has no window: see Reopened.
    void Write(Lease (&leases)[kMaxLeases]) const noexcept {
        leases[0] = open_;
        leases[1] = next_;
    }
    void Resume(const Lease (&leases)[kMaxLeases]) noexcept {
        RANDFLAKE_ASSERT(newest().id == 0);
        open_ = leases[0];
        next_ = leases[1];
    }
    const Lease& newest() const noexcept { return next_.id != 0 ? next_ : open_; }

    Second LastEnd() const noexcept { return open_.end > next_.end ? open_.end : next_.end; }

    LeaseRequest::Kind awaits() const noexcept { return awaits_; }

    // --- requests; after a request, answers to former requests no longer count

    // Returns whether the next request is a renewal rather than an acquisition.
    bool renews() const noexcept { return newest().id != 0 && !newest().refused; }
    LeaseRequest Renew(SteadyMs now_ms) noexcept;
    // `fresh` is a new random number.
    LeaseRequest Acquire(const Incarnation& fresh, SteadyMs now_ms) noexcept;

    // --- answers; call these only if the coordinator has certainly committed

    // Takes a grant for a server with `slots` slots. Refuses a lease that ends beyond LatestEnd and
    // is longer than requested; see Declined.
    LeaseOutcome Granted(const Layout& layout, uint32_t slots, const LeaseGrant& grant,
                         const LeaseTerms& asked, Second now) noexcept;
    // After kTooLong, returns the granted lease. The caller gives it back without using it.
    LeaseRelease Declined(const Layout& layout, const LeaseGrant& grant) const noexcept;
    // Extends the lease so that its last second is `last`. Never moves the end back. But if `last`
    // is beyond LatestEnd, and the clock that never steps also shows that the lease would be too
    // long, the lease keeps its end, and the holder does not renew it again.
    LeaseOutcome Renewed(const Layout& layout, UnixSecond last, const LeaseTerms& asked,
                         Second now) noexcept;
    LeaseOutcome Refused() noexcept;
    // Call this if no clear answer came, or if the holder could not send the request.
    LeaseOutcome Unanswered() noexcept;

    // --- time

    // Returns the time of the next request, when two fifths of the lease have passed. A lease of a
    // minute then has 36 seconds left, which is enough for alerts. Steps of the wall clock do not
    // change this time. `longest` is the lease duration that the server requests. `random` makes
    // the request slightly earlier, so that not all holders ask at the same time.
    SteadyMs NextRequestAt(Seconds longest, uint64_t random, SteadyMs now_ms) const noexcept;
    // Returns the time of the next action, given the time of the next request.
    SteadyMs WakeAt(SteadyMs next_request_at_ms, SteadyMs now_ms) const noexcept;

    // --- the window

    // Extends the window in force to the end of the open lease, but not beyond `latest`.
    Window Extended(Window window, Second latest) const noexcept;
    // If the open lease has no window, returns a window for the lease; see OpenNext.
    Window Reopened(Second earliest, Second now, Second latest) const noexcept;
    // Opens the next lease and returns its window, or returns a closed window if the lease may not
    // open yet. The window starts at `earliest` or later, and ends at `latest` or before. If the
    // open lease or the last window has not ended, `now` must be before `earliest`.
    Window OpenNext(Second earliest, Second now, Second latest) noexcept;
    // Returns true if the next lease is useless: it ends no later than `used_until`, and this
    // directory may have used its node ids until then. A use that ended by the end of `window` does
    // not count, because it took place under the lease that is open now.
    bool NextUsed(Window window, Second used_until) const noexcept;
    // Forgets the next lease and returns it for the caller to give back. Reports the lease as used
    // until its end, so that the coordinator does not shorten it.
    LeaseRelease DropNext() noexcept;
    // Forgets both leases and returns them for the caller to give back. `last` is the last second
    // in which the open lease was used, or kNotUsed.
    LeaseReleases Sealed(Second last) noexcept;

protected:  // the simulation breaks the rules one by one
    LeaseOutcome Succeeded(const Lease& lease, Second now) noexcept;

    Lease open_{};
    Lease next_{};
    LeaseRequest::Kind awaits_{};
    Incarnation incarnation_{};  // of the pending acquisition
    SteadyMs asked_at_ms_{};     // time of the pending request
    Ms retry_interval_ = 0;      // 0: the last request succeeded
};

static_assert(std::is_trivially_copyable_v<LeaseHolder>);
static_assert(std::is_trivially_destructible_v<LeaseHolder>);

}  // namespace randflake
