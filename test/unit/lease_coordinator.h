// The coordinator as the simulation of leases sees it: the rules of the functions randflake_lease_*
// in extension/randflake_coordinator--1.0.sql, statement by statement, on plain data. A state can be copied, and that
// is what a replica, a backup or a rolled-back transaction is.

#ifndef RANDFLAKE_UNIT_LEASE_COORDINATOR_H
#define RANDFLAKE_UNIT_LEASE_COORDINATOR_H

#include <algorithm>
#include <cstdint>
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

class Coordinator {
public:
    struct Lease {
        int64_t lease_id;
        uint64_t incarnation;
        int64_t first_node_id, node_count;
        int64_t start, end;  // Unix seconds, half-open
        int64_t stamp;       // the later of granted_at and renewed_at
        bool released;
    };

    struct Pool {
        int64_t first_node_id, node_count;
        int64_t max_duration, max_clock_skew;
    };

    // `identity` made the extension.
    Coordinator(const Layout& layout, const Pool& pool, const CoordinatorRules& rules,
                uint64_t identity)
        : layout_(layout), rules_(rules), pool_(pool), takeover_identity_(identity) {}

    // What a refused or broken transaction leaves behind: sequences are not rolled back.
    void RollBackTo(const Coordinator& before) {
        const auto identity = takeover_identity_;
        const auto second = takeover_;
        const auto next_id = next_id_;
        *this = before;
        takeover_identity_ = identity;
        takeover_ = second;
        next_id_ = next_id;
    }

    std::optional<LeaseGrant> Acquire(uint64_t identity, int64_t now, uint64_t incarnation,
                                      int64_t nodes, int64_t duration) {
        LockPool(identity, now);
        if (now <= kWindowEpochSeconds || now >= Horizon())
            return {};
        const auto [free_at, first] = UnusedForLongest(nodes);
        if (first < 0 || free_at > now)
            return {};
        if (now < high_water_ && rules_.start_from_mark && rules_.wait_for_mark)
            return {};
        const int64_t start = rules_.start_from_mark ? std::max(now, high_water_) : now;
        int64_t end = std::min(start + duration, Horizon());
        if (rules_.longest_lease)
            end = std::min(end, now + pool_.max_duration);
        if (end <= start)
            return {};
        const Lease lease{next_id_++, incarnation, first, nodes, start, end, now, false};
        if (Overlaps(lease))
            return {};
        leases_.push_back(lease);
        Purge(identity, now, kKeep);
        return LeaseGrant{lease.lease_id, first, nodes, start, end - 1};
    }

    // The last second.
    std::optional<int64_t> Renew(uint64_t identity, int64_t now, int64_t lease_id,
                                 uint64_t incarnation, int64_t expected_end, int64_t duration) {
        LockPool(identity, now);
        Lease* lease = Find(lease_id, incarnation);
        if (lease == nullptr || lease->released)
            return {};
        if (lease->first_node_id < pool_.first_node_id ||
            lease->first_node_id + lease->node_count > pool_.first_node_id + pool_.node_count)
            return {};
        if (lease->start > now + pool_.max_duration)
            return {};
        if (expected_end >= lease->end + pool_.max_duration + pool_.max_clock_skew)
            return {};
        const int64_t margin = rules_.renew_margin ? pool_.max_clock_skew : 0;
        if (expected_end < now + margin && (expected_end < now || expected_end < high_water_ - 1) &&
            rules_.renew_before_end)
            return {};
        Lease renewed = *lease;
        renewed.end = now + std::min(duration, pool_.max_duration);
        if (rules_.renew_keeps_end)
            renewed.end = std::max({expected_end + 1, lease->end, renewed.end});
        renewed.end = std::min(renewed.end, Horizon());
        renewed.stamp = std::max(now, lease->stamp);
        if (renewed.end <= renewed.start || Overlaps(renewed))
            return {};
        *lease = renewed;
        return renewed.end - 1;
    }

    bool Release(uint64_t identity, int64_t now, int64_t lease_id, uint64_t incarnation,
                 int64_t last_used) {
        LockPool(identity, now);
        Lease* lease = Find(lease_id, incarnation);
        if (lease == nullptr)
            return false;
        if (lease->released)
            return true;
        if (last_used < lease->start) {
            leases_.erase(leases_.begin() + (lease - leases_.data()));
            return true;
        }
        lease->end = std::min(last_used, lease->end - 1) + 1;
        lease->released = true;
        return true;
    }

    void Purge(uint64_t identity, int64_t now, int64_t keep) {
        LockPool(identity, now);
        for (size_t i = leases_.size(); i-- > 0;) {
            if (leases_[i].end > now - keep)
                continue;
            if (rules_.purge_raises_mark)
                high_water_ = std::max(high_water_, leases_[i].end);
            leases_.erase(leases_.begin() + static_cast<ptrdiff_t>(i));
        }
    }

    void Configure(uint64_t identity, int64_t now, int64_t first_node_id, int64_t node_count) {
        LockPool(identity, now);
        pool_.first_node_id = first_node_id;
        pool_.node_count = node_count;
    }

    int64_t high_water() const { return high_water_; }

private:
    // How long randflake_lease_acquire keeps ended leases; a day, at the simulation's scale.
    static constexpr int64_t kKeep = 60;

    int64_t Horizon() const {
        return kWindowEpochSeconds + static_cast<int64_t>(layout_.max_timestamp()) + 1;
    }

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
                since = std::max(since, lease.stamp);
            takeover_ = std::min(since, Horizon());
            takeover_identity_ = identity;
        }
        identity_ = identity;
        if (rules_.hold_off)
            high_water_ =
                std::max(high_water_, takeover_ + pool_.max_duration + 1 +
                                          (rules_.hold_off_for_skew ? pool_.max_clock_skew : 0));
    }

    Lease* Find(int64_t lease_id, uint64_t incarnation) {
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
    Pool pool_;
    std::vector<Lease> leases_;
    int64_t next_id_ = 1;
    int64_t high_water_ = 0;
    static constexpr uint64_t kNone = 0;
    uint64_t identity_ = kNone;  // who granted last
    // The sequence randflake_lease_takeover, which the extension's script sets for where it runs.
    int64_t takeover_ = 0;
    uint64_t takeover_identity_;
};

}  // namespace randflake::simulation

#endif
