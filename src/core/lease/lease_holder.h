// The holder of leases: what a server asks of its coordinator and when, what the answers mean, when
// a window opens, and what is given back.
//
//   no lease       acquire one
//   lease          renew it at half its time
//   refused        acquire another; the old one stays good until its end, then the new one opens
//   too long       the same; a lease that was granted so is given back
//   clock behind   keep and renew it; the window reaches as far as the clock allows (LatestEnd)
//   no answer      ask again, backing off; the leases stay as they are
//
// That a lease has ended, the coordinator says by refusing to renew it, not this server's clock.
//
// A lease is a permission with an end. The window inside is written ahead in steps, by the same
// path as that of static node ids (Server::Extend), and never beyond the lease.
//
// A holder has up to two leases: the open one, whose node ids are in the slots, and the next one,
// which waits until its time has come and that of the open one is over. Windows follow each other
// in time (generator.h), so a lease is never left before its end for another: another coordinator
// may grant the same node ids.
//
// Plain data, which may be copied byte by byte. All zero is a holder that has nothing and waits for
// nothing. It is in shared memory; what it takes to go on with its leases is in the state on disk
// as well, and Resumes in core/window/window_state.h says who may. One process at a time calls what
// changes it. Clock readings and random numbers are arguments.

#ifndef RANDFLAKE_CORE_LEASE_LEASE_HOLDER_H
#define RANDFLAKE_CORE_LEASE_LEASE_HOLDER_H

#include <cstdint>
#include <type_traits>

#include "core/lease/lease.h"

namespace randflake {

struct LeaseRequest {
    enum class Kind : uint8_t { kNone, kAcquire, kRenew };

    Kind kind;
    int64_t lease_id;  // of kRenew
    Incarnation incarnation;
    UnixSecond expected_end;  // of kRenew: the last second that the holder knows of
};

// What came of a request.
struct LeaseReply {
    enum class Kind : uint8_t { kNone, kRefused, kGranted, kRenewed };  // kNone: nothing is certain

    Kind kind;
    LeaseGrant grant;       // of kGranted
    UnixSecond renewed_to;  // of kRenewed: the last second
    bool tells_of_secrets;  // of any kind: whether the next counts
    Second differs_from;    // from when on this server lacks a secret; 0: it lacks none
};

// What an answer means.
enum class LeaseOutcome : uint8_t {
    kGood,       // a lease was granted or renewed
    kNotBegun,   // the same, but by this server's clock it has not begun
    kOver,       // the same, but by this server's clock it has ended
    kUnusable,   // what was granted makes no sense; ask again later
    kTooLong,    // it ends later than was asked for: not taken; ask again later
    kBehind,     // a good one, which ends later than this server's clock allows: that is behind
    kReplace,    // the lease is renewed no more; acquire another at once
    kNothing,    // nothing has changed; ask again later
    kNotAwaited  // it answers no request that is under way; nothing has changed
};

// A lease to be given back.
struct LeaseRelease {
    Lease lease;           // its id is 0 when there is nothing to give back
    UnixSecond last_used;  // the one before its start when none was used

    // This data directory may have used the node ids before, up to the second `end`: no other
    // holder may have those seconds.
    void UsedUntil(Second end) noexcept;
};
struct LeaseReleases {
    LeaseRelease open, next;
};

class LeaseHolder {
public:
    const Lease& open() const noexcept { return open_; }
    const Lease& next() const noexcept { return next_; }
    // Both, for the state on disk, and from it. The open one has no window then: see Reopened.
    void Write(Lease (&leases)[kMaxLeases]) const noexcept {
        leases[0] = open_;
        leases[1] = next_;
    }
    void Resume(const Lease (&leases)[kMaxLeases]) noexcept {
        RANDFLAKE_ASSERT(newest().id == 0);
        open_ = leases[0];
        next_ = leases[1];
    }
    // The one to renew.
    const Lease& newest() const noexcept { return next_.id != 0 ? next_ : open_; }

    // The first second that neither lease reaches.
    Second LastEnd() const noexcept { return open_.end > next_.end ? open_.end : next_.end; }

    // What it waits for.
    LeaseRequest::Kind awaits() const noexcept { return awaits_; }

    // --- requests; a new one makes answers to the one before meaningless

    // Whether to ask for a renewal now, rather than for another lease.
    bool renews() const noexcept { return newest().id != 0 && !newest().refused; }
    LeaseRequest Renew(SteadyMs now_ms) noexcept;
    // `fresh` is random, and never used before.
    LeaseRequest Acquire(const Incarnation& fresh, SteadyMs now_ms) noexcept;

    // --- answers, which count only when it is certain that they are committed

    // For a server with that many slots. One that ends beyond LatestEnd and is longer than was
    // asked for is not taken; see Declined.
    LeaseOutcome Granted(const Layout& layout, uint32_t slots, const LeaseGrant& grant,
                         const LeaseTerms& asked, Second now) noexcept;
    // What to give back after Granted gave kTooLong: the lease as it was granted, unused.
    LeaseRelease Declined(const Layout& layout, const LeaseGrant& grant) const noexcept;
    // To this last second. What was promised before stays. Beyond LatestEnd, and by the clock that
    // never steps longer than was asked for, the lease keeps its end and is renewed no more.
    LeaseOutcome Renewed(const Layout& layout, UnixSecond last, const LeaseTerms& asked,
                         Second now) noexcept;
    LeaseOutcome Refused() noexcept;
    // There was no clear answer, or the coordinator could not be asked.
    LeaseOutcome Unanswered() noexcept;

    // --- time

    // When to ask next: at two fifths of the lease, so that of the usual minute 36 seconds are left
    // for the operator's alerts. A step of the wall clock neither delays a renewal nor hurries it.
    // `longest` is the duration that is asked for. Any `random` number makes it a little earlier,
    // so that the holders of a coordinator that comes back spread out.
    SteadyMs NextRequestAt(Seconds longest, uint64_t random, SteadyMs now_ms) const noexcept;
    // When there is something to do, if the next request is due then.
    SteadyMs WakeAt(SteadyMs next_request_at_ms, SteadyMs now_ms) const noexcept;

    // --- the window

    // The window in force, up to the end of the open lease, but not beyond `latest`.
    Window Extended(Window window, Second latest) const noexcept;
    // A window of the open lease, which has none; see OpenNext.
    Window Reopened(Second earliest, Second now, Second latest) const noexcept;
    // Makes the next lease the open one if it is time, and gives its window; else a closed one.
    // `earliest` is the first second that may follow all that was used before: at least the end of
    // the window in force, of a closed window too, and of the open lease. The new window ends at
    // `latest` at the latest.
    Window OpenNext(Second earliest, Second now, Second latest) noexcept;
    // True if this directory already used the next lease's node ids to its end, `used_until` being
    // what it may have used. Up to the end of the window in force, that was the open lease.
    bool NextUsed(Window window, Second used_until) const noexcept;
    // Gives the next lease back as used: not before its end, so that the coordinator remembers it.
    LeaseRelease DropNext() noexcept;
    // What to give back after the window was sealed; `last` is what SealWindow gave. Both leases
    // are forgotten.
    LeaseReleases Sealed(Second last) noexcept;

protected:  // the simulation breaks the rules one by one
    LeaseOutcome Succeeded(const Lease& lease, Second now) noexcept;

    Lease open_{};
    Lease next_{};
    LeaseRequest::Kind awaits_{};
    Incarnation incarnation_{};  // of the acquisition that is under way
    SteadyMs asked_at_ms_{};     // of the request that is under way
    Ms retry_interval_ = 0;      // 0: the last request succeeded
};

static_assert(std::is_trivially_copyable_v<LeaseHolder>);
static_assert(std::is_trivially_destructible_v<LeaseHolder>);

}  // namespace randflake

#endif
