// Coordinators in the simulation of leases: the one in charge, the replicas and backups that could
// take its place, and its clock.
//
// What must be trusted, the extension script says: a coordinator whose place was taken grants no
// more, and the clock of the one that took it is never more than max_clock_skew behind what the
// former one's clock showed at a transaction that is lost. Otherwise clocks show anything.

#ifndef RANDFLAKE_UNIT_LEASE_CLUSTER_H
#define RANDFLAKE_UNIT_LEASE_CLUSTER_H

#include <deque>
#include <random>
#include <set>

#include "lease_coordinator.h"

namespace randflake::simulation {

// Numbers that are the same everywhere, unlike those of the standard library's distributions.
class Random {
public:
    explicit Random(uint64_t seed) : engine_(seed) {}
    int64_t Between(int64_t low, int64_t high) {
        return low + static_cast<int64_t>(engine_() % static_cast<uint64_t>(high - low + 1));
    }
    bool OneIn(int64_t n) { return Between(1, n) == 1; }

private:
    std::mt19937_64 engine_;
};

class Cluster {
public:
    static constexpr uint64_t kFirst = 1;  // identity

    Cluster(const Coordinator& first, int64_t max_clock_skew, Random* random)
        : current_{first, {}}, backup_(current_), skew_(max_clock_skew), random_(random) {}

    void Advance() { true_now_++; }
    void SetTime(int64_t unix_second) { true_now_ = unix_second; }

    int64_t true_now() const { return true_now_; }
    int64_t now() const { return std::max(true_now_ + offset_, earliest_); }
    uint64_t identity() const { return identity_; }
    bool up() const { return up_; }
    size_t lost_transactions() const { return lost_transactions_; }

    void StepClock(int64_t offset) { offset_ = offset; }
    void StopOrStart() { up_ = !up_; }

    // Runs a transaction, `act(coordinator)`, which says whether it is done. Even then it is rolled
    // back in the end unless `commit` is true.
    template <typename Act>
    bool Transact(bool commit, Act&& act) {
        const State before = current_;
        const bool done = act(current_.coordinator);
        if (!done || !commit) {
            current_.coordinator.RollBackTo(before.coordinator);
            return done;
        }
        replicas_.push_back(before);
        if (replicas_.size() > kReplicas)
            replicas_.pop_front();
        current_.transactions.insert(static_cast<int>(clocks_.size()));
        clocks_.push_back(now());
        return true;
    }

    void TakeBackup() { backup_ = current_; }

    // A replica that may have missed the last transactions, or an old copy, takes over.
    void FailOver() {
        if (replicas_.empty() || random_->OneIn(4)) {
            current_ = backup_;
        } else {
            const int64_t missed =
                random_->Between(1, std::min<int64_t>(random_->OneIn(2) ? 2 : kReplicas,
                                                      static_cast<int64_t>(replicas_.size())));
            current_ = replicas_[replicas_.size() - static_cast<size_t>(missed)];
        }
        for (size_t i = 0; i < clocks_.size(); i++) {
            if (current_.transactions.count(static_cast<int>(i)) != 0)
                continue;
            earliest_ = std::max(earliest_, clocks_[i] - skew_);
            lost_transactions_++;
        }
        replicas_.clear();
        identity_++;
        up_ = true;
        // Half of the time as far behind as can be.
        offset_ = random_->OneIn(2) && earliest_ > 0 ? earliest_ - true_now_
                                                     : random_->Between(-skew_, 2 * skew_);
    }

private:
    static constexpr size_t kReplicas = 12;

    struct State {
        Coordinator coordinator;
        std::set<int> transactions;  // those that it knows of, as indexes of clocks_
    };

    State current_;
    State backup_;
    std::deque<State> replicas_;
    std::vector<int64_t> clocks_;  // what the clock showed at each transaction, for good
    const int64_t skew_;
    Random* const random_;
    int64_t true_now_ = 0;
    int64_t offset_ = 0;
    int64_t earliest_ = 0;  // that the clock may show
    uint64_t identity_ = kFirst;
    bool up_ = true;
    size_t lost_transactions_ = 0;
};

}  // namespace randflake::simulation

#endif
