// Makes pool changes in every order, and checks the mark after each change. A coordinator grants
// nothing before its mark. The mark must be the earliest safe second. If a rule is removed, the
// test must find a wrong mark.

#include "lease_coordinator.h"
#include "test.h"

namespace randflake::simulation {
namespace {

using Step = int;
constexpr Step kLonger = 0, kShorter = 1, kWider = 2, kNarrower = 3, kAdd = 4, kClose = 5,
               kOpen = 6, kNeverLeased = 7, kNothingLost = 8, kPromote = 9, kRestore = 10,
               kLease = 11, kPurge = 12, kSteps = 13;

constexpr uint64_t kSystem = uint64_t{1} << 32;  // the lower bits are the timeline
constexpr Layout kLayout{kWindowEpochMs, 20, 4, 2};

// Describes why node ids may be in use although the coordinator's table has no lease of them.
struct Unknown {
    Step what;
    std::optional<int64_t> since;                     // empty while the pool is closed
    std::vector<std::pair<int64_t, int64_t>> values;  // max_duration, max_clock_skew in force since
    bool leases = true;                               // false: only servers' static node ids
    bool clearable = false;  // by the operator, who says that nothing was lost

    // Returns the time at which this use ends, by the same formula as randflake_lease_hold.until.
    int64_t Until() const {
        if (!since) return 0;
        if (what == kPurge) return *since;
        int64_t longest = 0, widest = 0;
        for (const auto& [duration, skew] : values) {
            longest = std::max(longest, duration);
            widest = std::max(widest, skew);
        }
        return *since + (leases ? longest + 2 * widest : widest) + 1;
    }
};

struct History {
    explicit History(const CoordinatorRules& rules)
        : coordinator(kLayout, {1, 4, 10, 2}, rules, kSystem, kEpoch + 1000) {
        unknown.push_back({kRestore, now, {{10, 2}}});
        Configure({});
    }

    template <typename Call> bool Do(Call&& call) {
        const Coordinator before = coordinator;
        const bool done = call();
        if (!done) coordinator.RollBackTo(before);
        return done;
    }
    bool Configure(const Coordinator::Change& change) {
        return Do([&] { return coordinator.Configure(identity, now, change).has_value(); });
    }
    void Note(Step what, std::optional<int64_t> since, bool leases = true) {
        unknown.push_back({what, since, {{pool().max_duration, pool().max_clock_skew}}, leases});
    }
    const Coordinator::Pool& pool() const { return coordinator.pool(); }

    void Take(Step step) {
        now += step == kLease ? 50 : step == kPurge ? 9 : 1;
        const Coordinator::Pool before = pool();
        const auto values = [&](std::optional<int64_t> duration, std::optional<int64_t> skew) {
            for (Unknown& u : unknown)
                if (!u.since || u.Until() > now)
                    u.values.push_back({duration.value_or(before.max_duration),
                                        skew.value_or(before.max_clock_skew)});
            Configure({.max_duration = duration, .max_clock_skew = skew});
        };
        switch (step) {
            case kLonger: return values(20, {});
            case kShorter: return values(5, {});
            case kWider: return values({}, 4);
            case kNarrower: return values({}, 1);
            case kAdd:
                Configure({.node_count = before.node_count + 1});
                return Note(kAdd, now, false);
            case kClose:
                Configure({.closed = true});
                return before.closed ? void() : Note(kOpen, {});
            case kOpen:
                Configure({.closed = false});
                for (Unknown& u : unknown) u.since = u.since.value_or(now);
                return;
            case kNeverLeased:
                if (Configure({.never_leased = true}))
                    Clear([](const Unknown& u) { return u.what == kRestore || u.what == kOpen; });
                return;
            case kNothingLost:
                if (Configure({.nothing_lost = true}))
                    Clear([](const Unknown& u) { return u.clearable; });
                return;
            case kPromote:
            case kRestore:
                identity = step == kPromote ? identity + 1 : (identity / kSystem + 1) * kSystem;
                Note(kRestore, now);
                for (Unknown& u : unknown) u.clearable = &u == &unknown.back() && step == kPromote;
                return;
            case kLease:
                Do([&] {
                    return coordinator.Acquire(identity, now, {{0, 1}}, 1, 3, FirstSecret(1), 1)
                        .has_value();
                });
                return;
            case kPurge:
                for (const Coordinator::Lease& lease : coordinator.leases())
                    if (lease.end <= now) unknown.push_back({kPurge, lease.end, {}});
                coordinator.Purge(identity, now, 0);
        }
    }
    void Clear(const std::function<bool(const Unknown&)>& cleared) {
        for (Unknown& u : unknown)
            if (u.since && cleared(u)) u.leases = false;
    }

    int64_t Least() const {
        int64_t least = 0;
        for (const Unknown& u : unknown) least = std::max(least, u.Until());
        return least;
    }

    int64_t now = kEpoch + 1000;
    uint64_t identity = kSystem;
    Coordinator coordinator;
    std::vector<Unknown> unknown;
};

// Counts all orders of steps, and the orders that end with a mark that is too low or too high.
struct Wrong {
    size_t orders = 0, low = 0, high = 0;
    std::string first;

    void Explore(const History& history, int steps, const std::string& path) {
        for (int step = 0; step < kSteps && steps > 0; step++) {
            History next = history;
            next.Take(step);
            const int64_t mark = next.coordinator.Mark(next.identity, next.now);
            const std::string here = path + ' ' + std::to_string(step);
            orders++;
            low += mark < next.Least();
            high += mark > next.Least();
            if (mark != next.Least() && first.empty())
                first = here + ": " + std::to_string(mark - next.now) + " instead of " +
                        std::to_string(next.Least() - next.now);
            Explore(next, steps - 1, here);
        }
    }
};

Wrong Explore(const CoordinatorRules& rules, int steps) {
    Wrong wrong;
    wrong.Explore(History(rules), steps, "");
    return wrong;
}

TEST(LeaseMarks, AreTheLeastThatAreRightAfterEveryOrderOfChanges) {
    const Wrong wrong = Explore({}, 5);
    EXPECT_EQ(wrong.low + wrong.high, 0u) << wrong.low << " too low, " << wrong.high
                                          << " too high, the first after the steps" << wrong.first;
    std::cout << "  " << wrong.orders << " orders\n";
}

TEST(LeaseMarks, ARuleThatIsLeftOutMakesOneTooLow) {
    const std::pair<const char*, CoordinatorRules> broken[] = {
        {"takeover", {.hold_off = false}},
        {"takeover under clocks that differ", {.hold_off_for_skew = false}},
        {"takeover after renewals", {.hold_off_for_renewals = false}},
        {"added node ids", {.added_nodes_wait = false}},
        {"reopened pool", {.reopening_waits = false}},
        {"purge", {.purge_raises_mark = false}},
        {"greater values", {.raises_holds = false}},
        {"values while it was closed", {.closed_counts = false}},
        {"earlier takeovers of which something was lost", {.lost_nothing_once = false}},
        {"later takeovers", {.lost_nothing_ends = false}},
        {"clocks, when nothing was lost", {.lost_nothing_clocks = false}},
        {"takeovers that no change has written", {.promoted_once = false}},
        {"added node ids, when nobody ever leased", {.never_leased_keeps = false}},
    };
    for (const auto& [mark, rules] : broken) EXPECT_GT(Explore(rules, 4).low, 0u) << mark;
}

}  // namespace
}  // namespace randflake::simulation
