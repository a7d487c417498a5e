// Makes the holder's decisions. The functions compute the holder's next state from their arguments,
// without clocks, locks or connections.

#include "core/lease/lease_holder.h"

#include <algorithm>

#include "core/base/assert.h"

namespace randflake {

// After each failure, the delay before the next attempt doubles, from kFirstRetry up to kLastRetry.
static constexpr Ms kFirstRetry = 250;
static constexpr Ms kLastRetry = 4000;

// The holder waits at least this long between two renewals.
static constexpr Ms kShortestInterval = 500;

// The holder checks at this interval whether it may open the next lease.
static constexpr Ms kOpenInterval = 100;

static constexpr Ms UpTo(Ms most, uint64_t random) {
    RANDFLAKE_ASSERT(most >= 0);
    return static_cast<int64_t>(random % (static_cast<uint64_t>(most.count) + 1));
}

void LeaseRelease::UsedUntil(Second end) noexcept {
    RANDFLAKE_ASSERT(lease.id != 0 && last_used < ToUnix(lease.end));
    last_used = std::max(last_used, ToUnix(std::min(end, lease.end) - 1));
}

LeaseRequest LeaseHolder::Renew(SteadyMs now_ms) noexcept {
    RANDFLAKE_ASSERT(renews());
    awaits_ = LeaseRequest::Kind::kRenew;
    asked_at_ms_ = now_ms;
    const Lease& held = newest();
    return {.kind = awaits_,
            .lease_id = held.id,
            .incarnation = held.incarnation,
            .expected_end = ToUnix(held.end - 1)};
}

LeaseRequest LeaseHolder::Acquire(const Incarnation& fresh, SteadyMs now_ms) noexcept {
    awaits_ = LeaseRequest::Kind::kAcquire;
    incarnation_ = fresh;
    asked_at_ms_ = now_ms;
    return {.kind = awaits_, .lease_id = 0, .incarnation = fresh, .expected_end = {}};
}

LeaseOutcome LeaseHolder::Succeeded(const Lease& lease, Second now) noexcept {
    RANDFLAKE_ASSERT(awaits_ != LeaseRequest::Kind::kNone);
    RANDFLAKE_ASSERT(lease.id != 0 && lease.start < lease.end);
    awaits_ = LeaseRequest::Kind::kNone;
    // The request succeeded, even if the lease is useless because the clocks disagree.
    retry_interval_ = 0;
    if (now >= lease.end) return LeaseOutcome::kOver;
    return now < lease.start ? LeaseOutcome::kNotBegun : LeaseOutcome::kGood;
}

LeaseOutcome LeaseHolder::Granted(const Layout& layout, uint32_t slots, const LeaseGrant& grant,
                                  const LeaseTerms& asked, Second now) noexcept {
    if (awaits_ != LeaseRequest::Kind::kAcquire) return LeaseOutcome::kNotAwaited;
    if (!GrantUsable(layout, grant, slots)) {
        (void)Unanswered();
        return LeaseOutcome::kUnusable;
    }
    const Second start = SecondOfUnix(layout, grant.start);
    const Second end = EndOfUnix(layout, grant.end);
    const bool behind = end > LatestEnd(now, asked);
    if (behind && end - start > asked.duration) {
        (void)Unanswered();
        return LeaseOutcome::kTooLong;
    }
    next_ = {.id = grant.lease_id,
             .incarnation = incarnation_,
             .nodes = {static_cast<uint32_t>(grant.first_node_id), slots},
             .start = start,
             .end = end,
             .refused = false,
             .asked_at_ms = asked_at_ms_,
             .lasts_until_ms = asked_at_ms_ + InMs(end - start)};
    const LeaseOutcome outcome = Succeeded(next_, now);
    return behind ? LeaseOutcome::kBehind : outcome;
}

LeaseRelease LeaseHolder::Declined(const Layout& layout, const LeaseGrant& grant) const noexcept {
    RANDFLAKE_ASSERT(grant.lease_id > 0 && grant.start <= grant.end);
    return {.lease = {.id = grant.lease_id,
                      .incarnation = incarnation_,
                      .nodes = {static_cast<uint32_t>(grant.first_node_id),
                                static_cast<uint32_t>(grant.node_count)},
                      .start = SecondOfUnix(layout, grant.start),
                      .end = EndOfUnix(layout, grant.end),
                      .refused = true,
                      .asked_at_ms = asked_at_ms_,
                      .lasts_until_ms = asked_at_ms_},
            .last_used = grant.start - 1};
}

LeaseOutcome LeaseHolder::Renewed(const Layout& layout, UnixSecond last, const LeaseTerms& asked,
                                  Second now) noexcept {
    if (awaits_ != LeaseRequest::Kind::kRenew) return LeaseOutcome::kNotAwaited;
    Lease& held = next_.id != 0 ? next_ : open_;
    RANDFLAKE_ASSERT(held.id != 0 && !held.refused);
    const Second end = std::max(held.end, EndOfUnix(layout, last));
    const SteadyMs lasts_until_ms = held.lasts_until_ms + InMs(end - held.end);
    const bool behind = end > held.end && end > LatestEnd(now, asked);
    // Measures the lease's duration from the request on, by the clock that never steps.
    if (behind && lasts_until_ms > asked_at_ms_ + InMs(asked.duration + 1) + asked.skew) {
        (void)Unanswered();
        held.refused = true;
        return LeaseOutcome::kTooLong;
    }
    held.asked_at_ms = asked_at_ms_;
    held.lasts_until_ms = lasts_until_ms;
    held.end = end;
    const LeaseOutcome outcome = Succeeded(held, now);
    return behind ? LeaseOutcome::kBehind : outcome;
}

LeaseOutcome LeaseHolder::Refused() noexcept {
    if (awaits_ == LeaseRequest::Kind::kNone) return LeaseOutcome::kNotAwaited;
    if (awaits_ == LeaseRequest::Kind::kAcquire) return Unanswered();
    RANDFLAKE_ASSERT(newest().id != 0);
    awaits_ = LeaseRequest::Kind::kNone;
    // The open lease stays valid until its end.
    if (next_.id != 0)
        next_ = {};
    else
        open_.refused = true;
    return LeaseOutcome::kReplace;
}

LeaseOutcome LeaseHolder::Unanswered() noexcept {
    awaits_ = LeaseRequest::Kind::kNone;
    retry_interval_ =
        retry_interval_ == 0 ? kFirstRetry : std::min(retry_interval_ * 2, kLastRetry);
    return LeaseOutcome::kNothing;
}

SteadyMs LeaseHolder::NextRequestAt(Seconds longest, uint64_t random,
                                    SteadyMs now_ms) const noexcept {
    if (retry_interval_ != 0) return now_ms + retry_interval_ - UpTo(retry_interval_ / 4, random);
    RANDFLAKE_ASSERT(longest >= 1);
    const Lease& held = newest();
    const Ms interval = std::max(std::min(held.length(), InMs(longest)) * 2 / 5, kShortestInterval);
    return held.asked_at_ms + interval - UpTo(interval / 10, random);
}

SteadyMs LeaseHolder::WakeAt(SteadyMs next_request_at_ms, SteadyMs now_ms) const noexcept {
    return next_.id == 0 ? next_request_at_ms
                         : std::min(next_request_at_ms, now_ms + kOpenInterval);
}

Window LeaseHolder::Extended(Window window, Second latest) const noexcept {
    if (open_.id != 0 && !window.closed())
        window.end = std::max(window.end, std::min(open_.end, latest));
    return window;
}

Window LeaseHolder::Reopened(Second earliest, Second now, Second latest) const noexcept {
    RANDFLAKE_ASSERT(latest > now);
    Window window = WindowOfLease(earliest, open_, now);
    if (!window.closed()) window.end = std::min(window.end, latest);
    RANDFLAKE_ASSERT(window.closed() || window.start >= earliest);
    return window;
}

Window LeaseHolder::OpenNext(Second earliest, Second now, Second latest) noexcept {
    RANDFLAKE_ASSERT(latest > now);
    Window window = WindowOfLease(earliest, next_, now);
    if (window.closed()) return window;
    window.end = std::min(window.end, latest);
    RANDFLAKE_ASSERT(!window.closed() && window.start >= earliest);
    open_ = next_;
    next_ = {};
    return window;
}

bool LeaseHolder::NextUsed(Window window, Second used_until) const noexcept {
    return next_.id != 0 && used_until >= next_.end && used_until > window.earliest();
}

LeaseRelease LeaseHolder::DropNext() noexcept {
    RANDFLAKE_ASSERT(next_.id != 0);
    const LeaseRelease release{next_, ToUnix(next_.end - 1)};
    next_ = {};
    return release;
}

LeaseReleases LeaseHolder::Sealed(Second last) noexcept {
    RANDFLAKE_ASSERT(last < open_.end);
    const auto release = [](const Lease& lease, Second last_used) {
        return LeaseRelease{lease, ToUnix(last_used != kNotUsed ? last_used : lease.start - 1)};
    };
    const LeaseReleases releases{release(open_, last), release(next_, kNotUsed)};
    open_ = next_ = {};
    awaits_ = LeaseRequest::Kind::kNone;
    return releases;
}

}  // namespace randflake
