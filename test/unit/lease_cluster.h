// Models a simulated coordinator, its clock, and the replicas and backups that can replace it.
//
// The model makes the same assumptions as the extension script. A replaced coordinator grants no
// lease. If a coordinator committed a transaction that its successor lacks, the coordinator's clock
// was at most max_clock_skew ahead of the successor's clock. Apart from that, clocks may show any
// time.

#pragma once

#include "lease_coordinator.h"

namespace randflake::simulation {

// Implements SplitMix64 (Steele, Lea and Flood, OOPSLA 2014). Unlike the standard distributions, it
// gives the same numbers with every library. With a standard engine, a third of the simulation's
// run time would go into random numbers.
class Random {
public:
    explicit Random(uint64_t seed) : state_(seed) {}
    int64_t Between(int64_t low, int64_t high) {
        const auto width = static_cast<uint64_t>(high - low + 1);
        return low + static_cast<int64_t>(static_cast<unsigned __int128>(Next()) * width >> 64);
    }
    bool OneIn(int64_t n) { return Between(1, n) == 1; }
    size_t Index(size_t count) {
        return static_cast<size_t>(Between(0, static_cast<int64_t>(count) - 1));
    }
    template <typename List> auto& Pick(List& list) { return list[Index(list.size())]; }

private:
    uint64_t Next() {
        state_ += 0x9e3779b97f4a7c15;
        uint64_t z = state_;
        z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
        z = (z ^ z >> 27) * 0x94d049bb133111eb;
        return z ^ z >> 31;
    }

    uint64_t state_;
};

class Cluster {
public:
    // `true_ms` is the true time. No clock shows it. With identity_has_birth, an older copy that
    // replaces a coordinator has an identity different from that coordinator's.
    Cluster(const Coordinator& first, uint64_t identity, int64_t max_clock_skew,
            bool identity_has_birth, const int64_t* true_ms, Random* random)
        : current_{first, {}},
          backup_(current_),
          skew_(max_clock_skew),
          identity_has_birth_(identity_has_birth),
          true_ms_(true_ms),
          random_(random),
          identity_(identity) {}

    int64_t now() const { return std::max(FloorDivide(*true_ms_ + offset_ms_, 1000), earliest_); }
    uint64_t identity() const { return identity_; }
    bool up() const { return up_; }
    const Coordinator& coordinator() const { return current_.coordinator; }
    size_t lost_transactions() const { return lost_transactions_; }
    // Returns true until a replica, a backup or a new coordinator has taken over.
    bool knows_all() const { return knows_all_; }
    bool missed_nothing() const { return missed_nothing_; }

    void StepClock(int64_t offset_ms) { offset_ms_ = offset_ms; }
    int64_t offset_ms() const { return offset_ms_; }
    void StopOrStart() { up_ = !up_; }

    // Runs act(coordinator), and rolls back if act returns false or if `commit` is false.
    template <typename Act> bool Transact(bool commit, Act&& act) {
        const State before = current_;
        const bool done = act(current_.coordinator);
        if (!done || !commit) {
            current_.coordinator.RollBackTo(before.coordinator);
            return done;
        }
        replicas_.push_back(before);
        if (replicas_.size() > kReplicas) replicas_.pop_front();
        current_.transactions.resize(clocks_.size());
        current_.transactions.push_back(true);
        clocks_.push_back(now());
        return true;
    }

    void LookedAt(PoolLook* look) const { current_.coordinator.LookedAt(identity_, now(), look); }

    void Serve(const Coordinator::Nodes& nodes) { current_.coordinator.Serve(nodes); }

    void TakeBackup() { backup_ = current_; }

    // Replaces the coordinator with a complete replica, a replica that lacks the last transactions,
    // or the backup. Without offset_ms, the successor's clock is as far behind as allowed. Returns
    // true if the successor is the backup.
    bool FailOver(uint64_t identity, std::optional<int64_t> offset_ms, bool may_miss_nothing) {
        missed_nothing_ = may_miss_nothing && random_->OneIn(3);
        const bool restored = !missed_nothing_ && (replicas_.empty() || random_->OneIn(4));
        if (missed_nothing_) {
        } else if (restored) {
            current_ = backup_;
        } else {
            const int64_t missed =
                random_->Between(1, std::min<int64_t>(random_->OneIn(2) ? 2 : kReplicas,
                                                      static_cast<int64_t>(replicas_.size())));
            current_ = replicas_[replicas_.size() - static_cast<size_t>(missed)];
        }
        current_.coordinator.Serve({0, 0});
        TakePlace();
        if (!restored || identity_has_birth_) identity_ = identity;
        offset_ms_ = offset_ms.value_or(earliest_ > 0 ? earliest_ * 1000 - *true_ms_ : 0);
        return restored;
    }

    // Replaces the coordinator and all copies with the coordinator that `make(now)` returns.
    template <typename Make> void Replace(uint64_t identity, Make&& make) {
        current_.transactions.clear();
        TakePlace();
        current_.coordinator = make(now());
        identity_ = identity;
        backup_ = current_;
    }

private:
    static constexpr size_t kReplicas = 12;

    struct State {
        Coordinator coordinator;
        std::vector<bool> transactions;  // which transactions of clocks_ it knows
    };

    void TakePlace() {
        for (size_t i = 0; i < clocks_.size(); i++) {
            if (i < current_.transactions.size() && current_.transactions[i]) continue;
            earliest_ = std::max(earliest_, clocks_[i] - skew_);
            lost_transactions_++;
        }
        replicas_.clear();
        up_ = true;
        knows_all_ = false;
    }

    State current_;
    State backup_;
    std::deque<State> replicas_;
    std::vector<int64_t> clocks_;  // the clock at each transaction, kept after failovers
    int64_t skew_;
    bool identity_has_birth_;
    const int64_t* true_ms_;
    Random* random_;
    int64_t offset_ms_ = 0;
    int64_t earliest_ = 0;  // the earliest time that the clock may show
    uint64_t identity_;
    bool up_ = true;
    bool knows_all_ = true;
    bool missed_nothing_ = false;
    size_t lost_transactions_ = 0;
};

}  // namespace randflake::simulation
