// The coordinator as a model: the rules of the functions randflake_lease_* of the extension script,
// statement by statement, on plain data. A state can be copied, and that is what a replica, a
// backup or a rolled-back transaction is.
//
// The simulation of leases runs it. That the functions and the model give the same answers is
// tested with traces of it (lease_trace.cpp, t/230_lease_model.pl).

#ifndef RANDFLAKE_UNIT_LEASE_COORDINATOR_H
#define RANDFLAKE_UNIT_LEASE_COORDINATOR_H

#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

#include "core/lease.h"

namespace randflake::simulation {

// Each rule can be switched off, to show that it is needed.
struct CoordinatorRules {
    bool wait_for_mark = true;      // a lease that starts at the mark is not granted earlier
    bool start_from_mark = true;    // no lease starts below the high-water mark
    bool purge_raises_mark = true;  // beyond what it removes
    bool knows_where_made = true;   // the first grant may not be the first either
    bool hold_off = true;           // another coordinator granted last: raise the mark ...
    bool hold_off_for_skew = true;  // ... by the difference of clocks too
    bool longest_lease = true;      // none ends later than max_duration from now
    bool renew_before_end = true;   // the end that the holder knows must not be over ...
    bool renew_margin = true;       // ... by a clock that differs, right after a takeover
    bool renew_keeps_end = true;    // a renewal takes nothing away from the holder
    bool own_incarnation = true;    // who renews or releases names the incarnation
    bool exclusion = true;          // the constraint on the table
};

// Why a call failed.
enum class Refusal : uint8_t {
    kNone,
    kState,     // object_not_in_prerequisite_state
    kLimit,     // configuration_limit_exceeded
    kClock,     // datetime_field_overflow
    kArgument,  // invalid_parameter_value
    kOverlap    // exclusion_violation
};

class Coordinator {
public:
    struct Lease {
        int64_t lease_id;
        Incarnation incarnation;
        int64_t first_node_id, node_count;
        int64_t start, end;              // Unix seconds, half-open
        int64_t granted_at, renewed_at;  // by the clock
        bool released;
    };

    struct Pool {
        int64_t first_node_id, node_count;
        int64_t max_duration, max_clock_skew;
    };

    // What is not given stays; but a pool of which only the first node id is given keeps its last.
    struct Change {
        std::optional<int64_t> first_node_id{}, node_count{}, max_duration{}, max_clock_skew{};
        bool forget_key = false;
    };

    // `identity` made the extension. Leases are forgotten this many seconds after their end.
    Coordinator(const Layout& layout, const Pool& pool, const CoordinatorRules& rules,
                uint64_t identity, int64_t keep)
        : layout_(layout), rules_(rules), keep_(keep), pool_(pool), takeover_identity_(identity) {}

    // What a refused or broken transaction leaves behind: sequences are not rolled back.
    void RollBackTo(const Coordinator& before) {
        const Coordinator after = *this;
        *this = before;
        takeover_identity_ = after.takeover_identity_;
        takeover_ = after.takeover_;
        next_id_ = after.next_id_;
        refusal_ = after.refusal_;
    }

    // A dump of this coordinator, restored where an extension was made for it: tables and numbers
    // of leases come along, the time of the takeover does not.
    void RestoreElsewhere(uint64_t identity) {
        takeover_identity_ = identity;
        takeover_ = 0;
    }

    // Why the last call failed.
    Refusal refusal() const { return refusal_; }

    // `key` is the fingerprint of the holder's secret; not 0.
    std::optional<LeaseGrant> Acquire(uint64_t identity, int64_t now,
                                      const Incarnation& incarnation, int64_t nodes,
                                      int64_t duration, uint64_t key = 1) {
        refusal_ = Refusal::kNone;
        if (nodes < 1 || nodes > NodeIds() || duration < 1)
            return Refuse(Refusal::kArgument);
        LockPool(identity, now);
        if (key_ != kNone && key_ != key)
            return Refuse(Refusal::kState);
        key_ = key;
        if (now <= kWindowEpochSeconds || now >= Horizon())
            return Refuse(Refusal::kClock);
        const auto [free_at, first] = UnusedForLongest(nodes);
        if (first < 0 || free_at > now)
            return Refuse(Refusal::kLimit);
        if (now < high_water_ && rules_.start_from_mark && rules_.wait_for_mark)
            return Refuse(Refusal::kState);
        const int64_t start = rules_.start_from_mark ? std::max(now, high_water_) : now;
        int64_t end = std::min(start + duration, Horizon());
        if (rules_.longest_lease)
            end = std::min(end, now + pool_.max_duration);
        if (end <= start)
            return Refuse(Refusal::kState);
        const Lease lease{.lease_id = next_id_++,
                          .incarnation = incarnation,
                          .first_node_id = first,
                          .node_count = nodes,
                          .start = start,
                          .end = end,
                          .granted_at = now,
                          .renewed_at = kNever,
                          .released = false};
        if (Overlaps(lease))
            return Refuse(Refusal::kOverlap);
        leases_.push_back(lease);
        (void)Purge(identity, now, keep_ * 1000);
        return LeaseGrant{lease.lease_id, first, nodes, start, end - 1};
    }

    // The last second.
    std::optional<int64_t> Renew(uint64_t identity, int64_t now, int64_t lease_id,
                                 const Incarnation& incarnation, int64_t expected_end,
                                 int64_t duration) {
        refusal_ = Refusal::kNone;
        if (duration < 1)
            return Refuse(Refusal::kArgument);
        LockPool(identity, now);
        Lease* lease = Find(lease_id, incarnation);
        if (lease == nullptr || lease->released)
            return Refuse(Refusal::kState);
        if (lease->first_node_id < pool_.first_node_id ||
            lease->first_node_id + lease->node_count > pool_.first_node_id + pool_.node_count)
            return Refuse(Refusal::kState);
        if (lease->start > now + pool_.max_duration)
            return Refuse(Refusal::kState);
        if (expected_end >= lease->end + pool_.max_duration + pool_.max_clock_skew)
            return Refuse(Refusal::kState);
        const int64_t margin = rules_.renew_margin ? pool_.max_clock_skew : 0;
        if (expected_end < now + margin && (expected_end < now || expected_end < high_water_ - 1) &&
            rules_.renew_before_end)
            return Refuse(Refusal::kState);
        Lease renewed = *lease;
        renewed.end = now + std::min(duration, pool_.max_duration);
        if (rules_.renew_keeps_end)
            renewed.end = std::max({expected_end + 1, lease->end, renewed.end});
        renewed.end = std::min(renewed.end, Horizon());
        renewed.renewed_at = now;
        if (renewed.end <= renewed.start || Overlaps(renewed))
            return Refuse(Refusal::kState);
        *lease = renewed;
        return renewed.end - 1;
    }

    // Without `last_used`, nothing was.
    bool Release(uint64_t identity, int64_t now, int64_t lease_id, const Incarnation& incarnation,
                 std::optional<int64_t> last_used) {
        refusal_ = Refusal::kNone;
        LockPool(identity, now);
        Lease* lease = Find(lease_id, incarnation);
        if (lease == nullptr) {
            Refuse(Refusal::kState);
            return false;
        }
        if (lease->released)
            return true;
        if (!last_used || *last_used < lease->start) {
            leases_.erase(leases_.begin() + (lease - leases_.data()));
            return true;
        }
        lease->end = std::min(*last_used, lease->end - 1) + 1;
        lease->released = true;
        return true;
    }

    // How many were forgotten.
    std::optional<int64_t> Purge(uint64_t identity, int64_t now, int64_t keep_ms) {
        refusal_ = Refusal::kNone;
        if (keep_ms < 0)
            return Refuse(Refusal::kArgument);
        LockPool(identity, now);
        const int64_t keep = (keep_ms + 999) / 1000;
        const size_t before = leases_.size();
        for (size_t i = leases_.size(); i-- > 0;) {
            if (leases_[i].end > now - keep)
                continue;
            if (rules_.purge_raises_mark)
                high_water_ = std::max(high_water_, leases_[i].end);
            leases_.erase(leases_.begin() + static_cast<ptrdiff_t>(i));
        }
        return static_cast<int64_t>(before - leases_.size());
    }

    bool Configure(uint64_t identity, int64_t now, const Change& change) {
        refusal_ = Refusal::kNone;
        LockPool(identity, now);
        Pool pool = pool_;
        pool.first_node_id = change.first_node_id.value_or(pool.first_node_id);
        pool.node_count =
            change.node_count.value_or(pool_.first_node_id + pool_.node_count - pool.first_node_id);
        pool.max_duration = change.max_duration.value_or(pool.max_duration);
        pool.max_clock_skew = change.max_clock_skew.value_or(pool.max_clock_skew);
        if (pool.first_node_id < 0 || pool.first_node_id >= NodeIds() || pool.node_count < 1 ||
            pool.node_count > NodeIds() - pool.first_node_id || pool.max_duration < 1 ||
            pool.max_duration > 86400 || pool.max_clock_skew < 0 || pool.max_clock_skew > 3600) {
            Refuse(Refusal::kArgument);
            return false;
        }
        // What is left of a hold-off gets longer with what it was made of.
        if (high_water_ > now)
            high_water_ += std::max(pool.max_duration - pool_.max_duration, int64_t{0}) +
                           std::max(pool.max_clock_skew - pool_.max_clock_skew, int64_t{0});
        pool_ = pool;
        if (change.forget_key)
            key_ = kNone;
        return true;
    }

    const Pool& pool() const { return pool_; }
    const std::vector<Lease>& leases() const { return leases_; }
    int64_t high_water() const { return high_water_; }
    int64_t Horizon() const { return kWindowEpochSeconds + SecondsEnd(layout_); }

private:
    static constexpr uint64_t kNone = 0;
    static constexpr int64_t kNever = std::numeric_limits<int64_t>::min();

    std::nullopt_t Refuse(Refusal refusal) {
        refusal_ = refusal;
        return std::nullopt;
    }

    int64_t NodeIds() const { return static_cast<int64_t>(layout_.max_node_id()) + 1; }

    // As randflake_lease_lock_pool and randflake_lease_taken_over.
    void LockPool(uint64_t identity, int64_t now) {
        const bool made_here = takeover_identity_ == identity && takeover_ == 0;
        if (identity_ == kNone && (made_here || !rules_.knows_where_made))
            identity_ = identity;
        if (identity_ == identity)
            return;
        if (takeover_identity_ != identity || takeover_ == 0) {
            int64_t since = now;
            for (const Lease& lease : leases_)
                since = std::max({since, lease.granted_at, lease.renewed_at});
            takeover_ = std::min(since, Horizon());
            takeover_identity_ = identity;
        }
        identity_ = identity;
        if (rules_.hold_off)
            high_water_ =
                std::max(high_water_, takeover_ + pool_.max_duration + 1 +
                                          (rules_.hold_off_for_skew ? pool_.max_clock_skew : 0));
    }

    Lease* Find(int64_t lease_id, const Incarnation& incarnation) {
        for (Lease& lease : leases_)
            if (lease.lease_id == lease_id &&
                (lease.incarnation == incarnation || !rules_.own_incarnation))
                return &lease;
        return nullptr;
    }

    bool Overlaps(const Lease& with) const {
        return rules_.exclusion && std::any_of(leases_.begin(), leases_.end(), [&](const Lease& l) {
                   return l.lease_id != with.lease_id &&
                          SharesNodes(l, with.first_node_id, with.node_count) &&
                          l.start < with.end && with.start < l.end;
               });
    }

    static bool SharesNodes(const Lease& lease, int64_t first, int64_t count) {
        return lease.first_node_id < first + count &&
               first < lease.first_node_id + lease.node_count;
    }

    // When they are free, and the first node id, negative if there is none.
    std::pair<int64_t, int64_t> UnusedForLongest(int64_t nodes) const {
        std::pair<int64_t, int64_t> best{INT64_MAX, -1};
        for (int64_t first = pool_.first_node_id;
             first + nodes <= pool_.first_node_id + pool_.node_count; first++) {
            int64_t free_at = 0;
            for (const Lease& lease : leases_)
                if (SharesNodes(lease, first, nodes))
                    free_at = std::max(free_at, lease.end);
            best = std::min(best, {free_at, first});
        }
        return best;
    }

    Layout layout_;
    CoordinatorRules rules_;
    int64_t keep_;
    Pool pool_;
    std::vector<Lease> leases_;
    int64_t next_id_ = 1;
    int64_t high_water_ = 0;
    uint64_t key_ = kNone;
    uint64_t identity_ = kNone;  // who granted last
    // The sequence randflake_lease_takeover, which the extension's script sets for where it runs.
    int64_t takeover_ = 0;
    uint64_t takeover_identity_;
    Refusal refusal_ = Refusal::kNone;
};

}  // namespace randflake::simulation

#endif
