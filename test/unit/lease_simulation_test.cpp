// Leases under thousands of schedules (lease_simulation.h). A failure names the seed:
//
//   make check FILTER='LeaseSimulation.*'                        all schedules
//   RANDFLAKE_SEED=123 make check FILTER='LeaseSimulation.*'     one schedule, told in full
//   RANDFLAKE_SCHEDULES=1000000 make check FILTER=...            that many

#include <gtest/gtest.h>

#include <cstdlib>
#include <iostream>

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

void ExpectNothingTwice(const Layout& numbers, uint64_t schedules) {
    const uint64_t only = FromEnvironment("RANDFLAKE_SEED", 0);
    const uint64_t first = only != 0 ? only : 1;
    const uint64_t last = only != 0 ? only : FromEnvironment("RANDFLAKE_SCHEDULES", schedules);
    Findings seen;
    for (uint64_t seed = first; seed <= last; seed++) {
        const Findings found =
            Simulation<>(
                {.layout = kSmall, .numbers = numbers, .trace = only != 0 ? &std::cout : nullptr},
                seed)
                .Run();
        ASSERT_EQ(found.violation, "")
            << "at step " << found.step << " of the schedule with RANDFLAKE_SEED=" << seed;
        seen += found;
    }
    std::cout << "  " << seen << "\n";
    if (only != 0)
        return;
    EXPECT_GT(seen.numbers, 10 * last);
    EXPECT_GT(seen.granted, 5 * last);
    EXPECT_GT(seen.renewed, 5 * last);
    EXPECT_GT(seen.refused, 0u);
    EXPECT_GT(seen.released, 0u);
    EXPECT_GT(seen.unclear, 0u);
    EXPECT_GT(seen.failovers, last / 2);
    EXPECT_GT(seen.lost_transactions, last);
    EXPECT_GT(seen.reserved_during_change, 0u);
    EXPECT_GT(seen.lost_swaps, 0u);
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
