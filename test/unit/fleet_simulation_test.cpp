// Runs thousands of schedules (fleet_simulation.h). A failure prints the schedule's seed.
//
//   make check FILTER='FleetSimulation.*'                        all schedules
//   RANDFLAKE_SEED=123 make check FILTER='FleetSimulation.*'     one schedule, with a full trace
//   RANDFLAKE_SCHEDULES=1000000 make check FILTER=...            this many for each test
//   RANDFLAKE_FIRST_SEED=123 make check FILTER=...               from this seed on
//
// By default, the first seed is a hash of the sources (run.sh). With RANDFLAKE_RECORD=1, a test
// adds the seed of a failed schedule to fleet_seeds.txt, and runs this schedule first from then on.

#include <gtest/gtest.h>

#include <cstdlib>
#include <iostream>
#include <string>

#include "fleet_simulation.h"

namespace randflake::simulation {
namespace {

using F = Events;

// The layout has enough seconds for a schedule, even on clocks that are ahead, and enough node ids
// for all servers. A node id has only 4 numbers per second, so servers run out of numbers.
constexpr Layout kSmall{kWindowEpochMs, 8, 3, 2};

// These layouts have ticks of a half or a quarter second, and epochs that differ from the windows'.
constexpr Layout kHalfSeconds{kWindowEpochMs - 500, 10, 3, 1, 500};
constexpr Layout kQuarterSeconds{kWindowEpochMs + 750, 11, 3, 1, 250};

uint64_t FromEnvironment(const char* name, uint64_t otherwise) {
    const char* value = std::getenv(name);
    return value == nullptr ? otherwise : std::strtoull(value, nullptr, 10);
}

// Over all schedules, the mean number of these events must be at least `average`.
struct Least {
    size_t F::*count;
    double average;
};

const char* NameOf(size_t F::*count) {
    for (const Counter& counter : kCounters)
        if (counter.count == count) return counter.name;
    return "?";
}

// So many schedules show the rate of each event. Fewer must show each event that is frequent.
constexpr uint64_t kEnoughForRates = 20000;
constexpr double kFrequent = 100;

void ExpectEvents(const Events& seen, uint64_t schedules, const Least& least) {
    const double expected = least.average * static_cast<double>(schedules);
    const bool enough = schedules >= kEnoughForRates;
    if (enough || expected >= kFrequent) {
        EXPECT_GT(static_cast<double>(seen.*least.count), enough ? expected : 0)
            << NameOf(least.count);
    }
}

// Runs the recorded schedules and many others, or the schedule of RANDFLAKE_SEED. Expects no
// violation and enough events.
template <typename... All>
void ExpectNothingTwiceIn(const Scenario& scenario, uint64_t schedules, const All&... all_least) {
    const char* name = testing::UnitTest::GetInstance()->current_test_info()->name();
    const uint64_t only = FromEnvironment("RANDFLAKE_SEED", 0);
    const uint64_t first = FromEnvironment("RANDFLAKE_FIRST_SEED", 1);
    const uint64_t count = FromEnvironment("RANDFLAKE_SCHEDULES", schedules);
    Scenario told = scenario;
    told.trace = only != 0 ? &std::cout : nullptr;
    Events seen;
    const auto run = [&](uint64_t seed) {
        const Findings found = Simulate(told, seed);
        EXPECT_EQ(found.violation, "")
            << "at step " << found.step << " of the schedule with RANDFLAKE_SEED=" << seed;
        seen += found;
        return found.violation.empty();
    };
    if (only != 0) {
        run(only);
        return;
    }
    for (const uint64_t seed : RecordedSeeds(name)) ASSERT_TRUE(run(seed)) << "a recorded schedule";
    for (uint64_t seed = first; seed < first + count; seed++)
        if (!run(seed)) {
            if (std::getenv("RANDFLAKE_RECORD") != nullptr) RecordSeed(name, seed);
            return;
        }
    std::cout << "  " << count << " schedules from " << first << ": " << seen << "\n";
    for (const Least& least : {all_least...}) ExpectEvents(seen, count, least);
}

template <typename... All>
void ExpectNothingTwice(Scenario scenario, uint64_t schedules, const All&... all_least) {
    scenario.set_back_far = scenario.changes_settings = scenario.loses_nothing = true;
    ExpectNothingTwiceIn(scenario, schedules, all_least...);
}

// As above, in a scenario that some broken rule needs.
template <typename... All>
void ExpectNothingTwiceInRare(Scenario scenario, const Layout& layout, uint64_t schedules,
                              const All&... all_least) {
    scenario.layout = scenario.numbers = layout;
    ExpectNothingTwiceIn(scenario, schedules, all_least...);
}

constexpr Least Over(size_t F::*count, double average) { return {count, average}; }

void ExpectNothingTwiceAmongLeases(const Layout& numbers, uint64_t schedules) {
    ExpectNothingTwice({.layout = kSmall, .numbers = numbers}, schedules, Over(&F::numbers, 7),
                       Over(&F::narrow_numbers, 0.3), Over(&F::granted, 5), Over(&F::resumed, 1),
                       Over(&F::renewed, 5), Over(&F::refused, 0), Over(&F::released, 0),
                       Over(&F::unclear, 0), Over(&F::failovers, 0.5), Over(&F::restores, 0.1),
                       Over(&F::lost_transactions, 1), Over(&F::nothing_lost, 0.1),
                       Over(&F::reserved_during_change, 0), Over(&F::lost_swaps, 0),
                       Over(&F::fresh, 0.1), Over(&F::closings, 0.1), Over(&F::openings, 0.1));
}

TEST(FleetSimulation, NothingTwiceUnderAnySchedule) { ExpectNothingTwiceAmongLeases(kSmall, 1500); }

TEST(FleetSimulation, NothingTwiceInHalfSeconds) {
    ExpectNothingTwiceAmongLeases(kHalfSeconds, 600);
}

TEST(FleetSimulation, NothingTwiceInQuarterSeconds) {
    ExpectNothingTwiceAmongLeases(kQuarterSeconds, 600);
}

TEST(FleetSimulation, NothingTwiceInAFleet) {
    ExpectNothingTwice(
        {.layout = kSmall, .fleet = Fleet::kEverything}, 1500, Over(&F::static_numbers, 15),
        Over(&F::narrow_numbers, 0.3), Over(&F::taken_over, 0.3), Over(&F::failed_back, 0.04),
        Over(&F::static_to_leased, 0.01), Over(&F::leased_to_static, 0.04), Over(&F::granted, 1),
        Over(&F::renewed, 1), Over(&F::proven_starts, 0.2), Over(&F::held_off_starts, 1.5),
        Over(&F::failed_writes, 0.2), Over(&F::skew_changes, 1), Over(&F::pauses, 3),
        Over(&F::clock_steps, 15), Over(&F::lost_memories, 2), Over(&F::lost_workers, 0.5),
        Over(&F::stops, 5), Over(&F::crashes, 3), Over(&F::boots, 0.7), Over(&F::promotions, 0.6),
        Over(&F::copies, 2), Over(&F::twins, 0.2), Over(&F::rollbacks, 1), Over(&F::rewinds, 0.3),
        Over(&F::damages, 0.5), Over(&F::moved_disks, 1), Over(&F::changed_nodes, 0.8),
        Over(&F::quick_changes, 0.3), Over(&F::to_leases, 1), Over(&F::to_static, 1),
        Over(&F::moved_holders, 2), Over(&F::meddlings, 0.07), Over(&F::pool_changes, 0.6),
        Over(&F::closings, 0.8), Over(&F::openings, 0.6), Over(&F::fresh, 0.5),
        Over(&F::moved_coordinators, 0.2), Over(&F::failovers, 2), Over(&F::nothing_lost, 0.1),
        Over(&F::restores, 0.7));
}

TEST(FleetSimulation, NothingTwiceUnderTwoNodeIds) {
    ExpectNothingTwice(
        {.layout = kSmall, .fleet = Fleet::kTwoNodeIds}, 800, Over(&F::static_numbers, 15),
        Over(&F::left_ranges, 0.05), Over(&F::quick_changes, 0.3), Over(&F::floor_waits, 0.15),
        Over(&F::set_back, 2), Over(&F::taken_over, 0.15), Over(&F::failed_back, 0.005),
        Over(&F::proven_starts, 0.3), Over(&F::held_off_starts, 1.5), Over(&F::skew_changes, 1),
        Over(&F::rollbacks, 1), Over(&F::copies, 1), Over(&F::promotions, 0.3));
}

TEST(FleetSimulation, NothingTwiceInADirectoryWhateverItsClockShows) {
    ExpectNothingTwice(
        {.layout = kSmall, .fleet = Fleet::kOneDirectory}, 800, Over(&F::static_numbers, 15),
        Over(&F::left_ranges, 0.1), Over(&F::entered_again, 0.05), Over(&F::floor_waits, 0.4),
        Over(&F::kept_behind, 0.6), Over(&F::static_to_leased, 0.04),
        Over(&F::leased_to_static, 0.15), Over(&F::granted, 0.9), Over(&F::proven_starts, 0.1),
        Over(&F::held_off_starts, 1), Over(&F::clock_steps, 9), Over(&F::changed_nodes, 0.5),
        Over(&F::quick_changes, 1), Over(&F::skew_changes, 1), Over(&F::to_leases, 1),
        Over(&F::to_static, 1));
}

constexpr Layout kSecrets{.epoch = kWindowEpochMs,
                          .timestamp_bits = 8,
                          .node_bits = 3,
                          .sequence_bits = 2,
                          .lowest_stands_for_second = true};

constexpr int kManySteps = 16000;

TEST(FleetSimulation, NothingTwiceWhileSecretsOfHoldersChange) {
    ExpectNothingTwice(
        {.layout = kSecrets, .rotates = true, .steps = kManySteps}, 300, Over(&F::issued, 4),
        Over(&F::later_identifiers, 1), Over(&F::skipped, 0.6), Over(&F::added, 4),
        Over(&F::not_added, 1), Over(&F::withdrawn, 2), Over(&F::granted, 7), Over(&F::renewed, 3),
        Over(&F::bounded_leases, 0.4), Over(&F::bounded_renewals, 0.1), Over(&F::told_to_stop, 25),
        Over(&F::reloads, 4), Over(&F::late_reloads, 1.5), Over(&F::refused_reloads, 25),
        Over(&F::refused_starts, 0.2), Over(&F::unheard_answers, 0.015),
        Over(&F::reserved_then_added, 0.06), Over(&F::encrypted_then_added, 0.01),
        Over(&F::failovers, 3), Over(&F::lost_memories, 4), Over(&F::lost_secrets, 1));
}

TEST(FleetSimulation, NothingTwiceWhileSecretsOfAFleetChange) {
    ExpectNothingTwice(
        {.layout = kSecrets, .fleet = Fleet::kEverything, .rotates = true, .steps = kManySteps},
        300, Over(&F::static_numbers, 12), Over(&F::issued, 10), Over(&F::later_identifiers, 1.8),
        Over(&F::skipped, 1), Over(&F::added, 4), Over(&F::withdrawn, 2),
        Over(&F::stopped_in_time, 1), Over(&F::granted, 1.5), Over(&F::renewed, 1),
        Over(&F::bounded_leases, 0.05), Over(&F::told_to_stop, 8), Over(&F::reloads, 4),
        Over(&F::late_reloads, 0.5), Over(&F::refused_reloads, 20), Over(&F::refused_starts, 0.15),
        Over(&F::reserved_then_added, 0.09), Over(&F::encrypted_then_added, 0.03),
        Over(&F::taken_over, 0.3), Over(&F::promotions, 1), Over(&F::copies, 3),
        Over(&F::to_leases, 1), Over(&F::to_static, 1));
}

TEST(FleetSimulation, NothingTwiceWhileSecretsChangeUnderTwoNodeIds) {
    ExpectNothingTwice({.layout = kSecrets, .fleet = Fleet::kTwoNodeIds, .rotates = true}, 300,
                       Over(&F::static_numbers, 15), Over(&F::issued, 12),
                       Over(&F::later_identifiers, 0.8), Over(&F::skipped, 0.3), Over(&F::added, 4),
                       Over(&F::withdrawn, 3), Over(&F::stopped_in_time, 1.5), Over(&F::reloads, 4),
                       Over(&F::refused_reloads, 20), Over(&F::refused_starts, 0.02),
                       Over(&F::reserved_then_added, 0.06), Over(&F::encrypted_then_added, 0.03),
                       Over(&F::taken_over, 0.15), Over(&F::rollbacks, 1), Over(&F::copies, 1));
}

TEST(FleetSimulation, NothingTwiceAroundRareFailovers) {
    ExpectNothingTwiceInRare(kRareFailovers, kSmall, 700, Over(&F::granted, 5),
                             Over(&F::failovers, 0.5), Over(&F::restores, 0.1));
}

TEST(FleetSimulation, NothingTwiceAfterPromptStarts) {
    ExpectNothingTwiceInRare(kPromptStarts, kSmall, 1200, Over(&F::static_numbers, 1),
                             Over(&F::taken_over, 0.1), Over(&F::changed_nodes, 0.3));
}

TEST(FleetSimulation, NothingTwiceAroundHandovers) {
    ExpectNothingTwiceInRare(kHandovers, kSmall, 600, Over(&F::static_numbers, 15),
                             Over(&F::taken_over, 0.3), Over(&F::failed_back, 0.1),
                             Over(&F::proven_starts, 1), Over(&F::left_ranges, 0.3),
                             Over(&F::set_back, 2), Over(&F::static_to_leased, 0.001));
}

TEST(FleetSimulation, NothingTwiceUnderWrongFiles) {
    ExpectNothingTwiceInRare(kWrongFiles, kSecrets, 300, Over(&F::static_numbers, 10),
                             Over(&F::added, 4), Over(&F::refused_starts, 0.05));
}

TEST(FleetSimulation, ASeedIsASchedule) {
    const Findings once = Simulate({.layout = kSmall}, 7);
    const Findings again = Simulate({.layout = kSmall}, 7);
    EXPECT_EQ(once.numbers, again.numbers);
    EXPECT_EQ(once.granted, again.granted);
    EXPECT_EQ(once.renewed, again.renewed);
}

}  // namespace
}  // namespace randflake::simulation
