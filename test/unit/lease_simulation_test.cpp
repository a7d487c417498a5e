// Servers and coordinators under thousands of schedules (lease_simulation.h). A failure names the
// seed:
//
//   make check FILTER='LeaseSimulation.*'                        all schedules
//   RANDFLAKE_SEED=123 make check FILTER='LeaseSimulation.*'     one schedule, told in full
//   RANDFLAKE_SCHEDULES=1000000 make check FILTER=...            that many

#include <gtest/gtest.h>

#include <cstdlib>
#include <initializer_list>
#include <iostream>
#include <utility>

#include "lease_simulation.h"

namespace randflake::simulation {
namespace {

// Seconds for a schedule and the clocks that are ahead, node ids for the servers and those that
// crashed, few numbers a second, so that they are used up.
constexpr Layout kSmall{kWindowEpochMs, 8, 3, 2};

// Numbers in ticks of less than a second, from epochs that are not the windows'.
constexpr Layout kHalfSeconds{kWindowEpochMs - 500, 10, 3, 1, 500};
constexpr Layout kQuarterSeconds{kWindowEpochMs + 750, 11, 3, 1, 250};

uint64_t FromEnvironment(const char* name, uint64_t otherwise) {
    const char* value = std::getenv(name);
    return value == nullptr ? otherwise : std::strtoull(value, nullptr, 10);
}

Findings Simulate(const Scenario& scenario, uint64_t schedules) {
    const uint64_t only = FromEnvironment("RANDFLAKE_SEED", 0);
    const uint64_t first = only != 0 ? only : 1;
    const uint64_t last = only != 0 ? only : FromEnvironment("RANDFLAKE_SCHEDULES", schedules);
    Findings seen;
    for (uint64_t seed = first; seed <= last; seed++) {
        Scenario told = scenario;
        told.trace = only != 0 ? &std::cout : nullptr;
        const Findings found = Simulation<>(told, seed).Run();
        EXPECT_EQ(found.violation, "")
            << "at step " << found.step << " of the schedule with RANDFLAKE_SEED=" << seed;
        if (!found.violation.empty())
            break;
        seen += found;
    }
    std::cout << "  " << seen << "\n";
    return seen;
}

// So many of each in a schedule, on average; none of it in one that is told.
void ExpectSeen(const Findings& seen, uint64_t schedules,
                std::initializer_list<std::pair<size_t Findings::*, double>> least) {
    if (FromEnvironment("RANDFLAKE_SEED", 0) != 0)
        return;
    const auto count = static_cast<double>(FromEnvironment("RANDFLAKE_SCHEDULES", schedules));
    for (const auto& [counter, average] : least)
        EXPECT_GT(static_cast<double>(seen.*counter), average * count)
            << "the counter with at least " << average << " a schedule";
}

void ExpectNothingTwice(const Layout& numbers, uint64_t schedules) {
    using F = Findings;
    ExpectSeen(Simulate({.layout = kSmall, .numbers = numbers}, schedules), schedules,
               {{&F::numbers, 10},
                {&F::granted, 5},
                {&F::renewed, 5},
                {&F::refused, 0},
                {&F::released, 0},
                {&F::unclear, 0},
                {&F::failovers, 0.5},
                {&F::lost_transactions, 1},
                {&F::reserved_during_change, 0},
                {&F::lost_swaps, 0},
                {&F::fresh, 0.1},
                {&F::closings, 0.1},
                {&F::openings, 0.1}});
}

TEST(LeaseSimulation, NothingTwiceUnderAnySchedule) {
    ExpectNothingTwice(kSmall, 15000);
}

TEST(LeaseSimulation, NothingTwiceInHalfSeconds) {
    ExpectNothingTwice(kHalfSeconds, 5000);
}

TEST(LeaseSimulation, NothingTwiceInQuarterSeconds) {
    ExpectNothingTwice(kQuarterSeconds, 5000);
}

TEST(LeaseSimulation, NothingTwiceInAFleet) {
    using F = Findings;
    ExpectSeen(Simulate({.layout = kSmall, .fleet = Fleet::kEverything}, 25000), 25000,
               {{&F::static_numbers, 20},
                {&F::granted, 1},
                {&F::renewed, 1},
                {&F::proven_starts, 0.3},
                {&F::held_off_starts, 2},
                {&F::failed_writes, 0.2},
                {&F::stops, 5},
                {&F::crashes, 3},
                {&F::boots, 1},
                {&F::promotions, 1},
                {&F::copies, 2},
                {&F::rollbacks, 1},
                {&F::damages, 0.5},
                {&F::moved_disks, 1},
                {&F::changed_nodes, 2},
                {&F::to_leases, 0.5},
                {&F::to_static, 0.5},
                {&F::moved_holders, 1},
                {&F::pool_changes, 0.5},
                {&F::closings, 0.5},
                {&F::openings, 0.5},
                {&F::fresh, 0.5},
                {&F::moved_coordinators, 0.2},
                {&F::failovers, 2}});
}

TEST(LeaseSimulation, NothingTwiceInADirectoryWhateverItsClockShows) {
    using F = Findings;
    ExpectSeen(Simulate({.layout = kSmall, .fleet = Fleet::kOneDirectory}, 10000), 10000,
               {{&F::static_numbers, 10},
                {&F::granted, 0.5},
                {&F::proven_starts, 0.1},
                {&F::held_off_starts, 1},
                {&F::changed_nodes, 0.5},
                {&F::to_leases, 0.5},
                {&F::to_static, 0.5}});
}

// The same seed is the same schedule, everywhere.
TEST(LeaseSimulation, ASeedIsASchedule) {
    const Findings once = Simulation<>({.layout = kSmall}, 7).Run();
    const Findings again = Simulation<>({.layout = kSmall}, 7).Run();
    EXPECT_EQ(once.numbers, again.numbers);
    EXPECT_EQ(once.granted, again.granted);
    EXPECT_EQ(once.renewed, again.renewed);
}

}  // namespace
}  // namespace randflake::simulation
