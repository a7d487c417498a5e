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

// These layouts have ticks of a half or a quarter second, and epochs that differ from the windows'.
constexpr Layout kHalfSeconds{kWindowEpochMs - 500, 10, 3, 1, 500};
constexpr Layout kQuarterSeconds{kWindowEpochMs + 750, 11, 3, 1, 250};

uint64_t FromEnvironment(const char* name, uint64_t otherwise) {
    const char* value = std::getenv(name);
    return value == nullptr ? otherwise : std::strtoull(value, nullptr, 10);
}

// So many schedules show the rate of each event. Fewer must show each event that is frequent.
constexpr uint64_t kEnoughForRates = 20000;
constexpr double kFrequent = 100;

// `all_least` names events, each with the least mean number over all schedules.
void ExpectEvents(const Events& seen, uint64_t schedules, const char* all_least) {
    std::istringstream words(all_least);
    double average = 0;
    for (std::string name; words >> name >> average;) {
        const Counter* counter = std::ranges::find(kCounters, name, &Counter::name);
        ASSERT_NE(counter, std::end(kCounters)) << name;
        const double expected = average * static_cast<double>(schedules);
        const bool enough = schedules >= kEnoughForRates;
        if (enough || expected >= kFrequent) {
            EXPECT_GT(static_cast<double>(seen.*counter->count), enough ? expected : 0) << name;
        }
    }
    EXPECT_TRUE(words.eof()) << all_least;
}

// Runs the recorded schedules and many others, or the schedule of RANDFLAKE_SEED. Expects no
// violation and enough events.
void ExpectNothingTwiceIn(const Scenario& scenario, uint64_t schedules, const char* all_least) {
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
    ExpectEvents(seen, count, all_least);
}

void ExpectNothingTwice(Scenario scenario, uint64_t schedules, const char* all_least) {
    scenario.set_back_far = scenario.changes_settings = scenario.loses_nothing = true;
    ExpectNothingTwiceIn(scenario, schedules, all_least);
}

void ExpectNothingTwiceAmongLeases(const Layout& numbers, uint64_t schedules) {
    ExpectNothingTwice(
        {.numbers = numbers}, schedules,
        "numbers 7 narrow_numbers 0.3 granted 5 resumed 1 renewed 5 refused 0 released 0 "
        "unclear 0 failovers 0.5 restores 0.1 lost_transactions 1 nothing_lost 0.1 "
        "reserved_during_change 0 lost_swaps 0 fresh 0.1 closings 0.1 openings 0.1");
}

TEST(FleetSimulation, NothingTwiceUnderAnySchedule) {
    ExpectNothingTwiceAmongLeases(Scenario{}.numbers, 1500);
}

TEST(FleetSimulation, NothingTwiceInHalfSeconds) {
    ExpectNothingTwiceAmongLeases(kHalfSeconds, 600);
}

TEST(FleetSimulation, NothingTwiceInQuarterSeconds) {
    ExpectNothingTwiceAmongLeases(kQuarterSeconds, 600);
}

TEST(FleetSimulation, NothingTwiceInAFleet) {
    ExpectNothingTwice(
        {.fleet = Fleet::kEverything}, 1500,
        "static_numbers 15 narrow_numbers 0.3 taken_over 0.3 failed_back 0.04 "
        "static_to_leased 0.01 leased_to_static 0.04 granted 1 renewed 1 proven_starts 0.2 "
        "held_off_starts 1.5 failed_writes 0.2 skew_changes 1 pauses 3 clock_steps 15 "
        "lost_memories 2 lost_workers 0.5 stops 5 crashes 3 boots 0.7 promotions 0.6 copies 2 "
        "twins 0.2 rollbacks 1 rewinds 0.3 damages 0.5 moved_disks 1 changed_nodes 0.8 "
        "quick_changes 0.3 to_leases 1 to_static 1 moved_holders 2 meddlings 0.07 "
        "pool_changes 0.6 closings 0.8 openings 0.6 fresh 0.5 moved_coordinators 0.2 failovers 2 "
        "nothing_lost 0.1 restores 0.7");
}

TEST(FleetSimulation, NothingTwiceUnderTwoNodeIds) {
    ExpectNothingTwice(
        {.fleet = Fleet::kTwoNodeIds}, 800,
        "static_numbers 15 left_ranges 0.05 quick_changes 0.3 floor_waits 0.15 set_back 2 "
        "taken_over 0.15 failed_back 0.005 proven_starts 0.3 held_off_starts 1.5 skew_changes 1 "
        "rollbacks 1 copies 1 promotions 0.3");
}

TEST(FleetSimulation, NothingTwiceInADirectoryWhateverItsClockShows) {
    ExpectNothingTwice(
        {.fleet = Fleet::kOneDirectory}, 800,
        "static_numbers 15 left_ranges 0.1 entered_again 0.05 floor_waits 0.4 kept_behind 0.6 "
        "static_to_leased 0.04 leased_to_static 0.15 granted 0.9 proven_starts 0.1 "
        "held_off_starts 1 clock_steps 9 changed_nodes 0.5 quick_changes 1 skew_changes 1 "
        "to_leases 1 to_static 1");
}

constexpr int kManySteps = 16000;

TEST(FleetSimulation, NothingTwiceWhileSecretsOfHoldersChange) {
    ExpectNothingTwice(
        {.rotates = true, .steps = kManySteps}, 300,
        "issued 4 later_identifiers 1 skipped 0.6 added 4 not_added 1 withdrawn 2 granted 7 "
        "renewed 3 bounded_leases 0.4 bounded_renewals 0.1 told_to_stop 25 reloads 4 "
        "late_reloads 1.5 refused_reloads 25 refused_starts 0.2 unheard_answers 0.015 "
        "reserved_then_added 0.06 encrypted_then_added 0.01 failovers 3 lost_memories 4 "
        "lost_secrets 1");
}

TEST(FleetSimulation, NothingTwiceWhileSecretsOfAFleetChange) {
    ExpectNothingTwice(
        {.fleet = Fleet::kEverything, .rotates = true, .steps = kManySteps}, 300,
        "static_numbers 12 issued 10 later_identifiers 1.8 skipped 1 added 4 withdrawn 2 "
        "stopped_in_time 1 granted 1.5 renewed 1 bounded_leases 0.05 told_to_stop 8 reloads 4 "
        "late_reloads 0.5 refused_reloads 20 refused_starts 0.15 reserved_then_added 0.09 "
        "encrypted_then_added 0.03 taken_over 0.3 promotions 1 copies 3 to_leases 1 to_static 1");
}

TEST(FleetSimulation, NothingTwiceWhileSecretsChangeUnderTwoNodeIds) {
    ExpectNothingTwice(
        {.fleet = Fleet::kTwoNodeIds, .rotates = true}, 300,
        "static_numbers 15 issued 12 later_identifiers 0.8 skipped 0.3 added 4 withdrawn 3 "
        "stopped_in_time 1.5 reloads 4 refused_reloads 20 refused_starts 0.02 "
        "reserved_then_added 0.06 encrypted_then_added 0.03 taken_over 0.15 rollbacks 1 "
        "copies 1");
}

TEST(FleetSimulation, NothingTwiceAroundRareFailovers) {
    ExpectNothingTwiceIn(kRareFailovers, 700, "granted 5 failovers 0.5 restores 0.1");
}

TEST(FleetSimulation, NothingTwiceAfterPromptStarts) {
    ExpectNothingTwiceIn(kPromptStarts, 1200, "static_numbers 1 taken_over 0.1 changed_nodes 0.3");
}

TEST(FleetSimulation, NothingTwiceAroundHandovers) {
    ExpectNothingTwiceIn(
        kHandovers, 600,
        "static_numbers 15 taken_over 0.3 failed_back 0.1 proven_starts 1 left_ranges 0.3 "
        "set_back 2 static_to_leased 0.001");
}

TEST(FleetSimulation, NothingTwiceUnderWrongFiles) {
    ExpectNothingTwiceIn(kWrongFiles, 300, "static_numbers 10 added 4 refused_starts 0.05");
}

TEST(FleetSimulation, ASeedIsASchedule) {
    const Findings once = Simulate({}, 7);
    const Findings again = Simulate({}, 7);
    EXPECT_EQ(once.numbers, again.numbers);
    EXPECT_EQ(once.granted, again.granted);
    EXPECT_EQ(once.renewed, again.renewed);
}

}  // namespace
}  // namespace randflake::simulation
