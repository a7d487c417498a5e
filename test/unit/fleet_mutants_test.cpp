// Runs the simulation of leases with one rule left out at a time. The simulation must find a
// violation each time, which shows that the servers or coordinators need the rule.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <iostream>

#include "fleet_simulation.h"

namespace randflake::simulation {
namespace {

struct BrokenRule {
    const char* name;
    Scenario scenario;
};

class FleetSimulationFinds : public testing::TestWithParam<BrokenRule> {};

using enum Fleet;
using enum Mutant;
using Rules = CoordinatorRules;

// The secret scenarios also change the servers' secrets.
const Scenario kLeasing{}, kToldLeasing{.loses_nothing = true}, kFleet{.fleet = kEverything},
    kBeside{.fleet = kEverything, .made_in_place = false},
    kPoolChanges{.fleet = kEverything, .only_pool_changes = true},
    kChangingFleet{.fleet = kEverything, .changes_settings = true}, kPair{.fleet = kTwoNodeIds},
    kOne{.fleet = kOneDirectory}, kSteadyPair{.fleet = kTwoNodeIds, .skew_stays = true},
    kSetBackPair{.fleet = kTwoNodeIds, .set_back_far = true},
    kSetBack{.fleet = kOneDirectory, .set_back_far = true},
    kChanging{.fleet = kOneDirectory, .changes_settings = true},
    kChangingAndSetBack{.fleet = kOneDirectory, .changes_settings = true, .set_back_far = true},
    kFailovers{.only_failovers = true, .loses_nothing = true},
    kFleetFailovers{.fleet = kEverything, .only_failovers = true, .loses_nothing = true},
    kSecretLeases{.rotates = true}, kSecretFleet{.fleet = kEverything, .rotates = true},
    kSecretPair{.fleet = kTwoNodeIds, .rotates = true};

Scenario With(Scenario scenario, Mutant mutant) {
    scenario.mutant = mutant;
    return scenario;
}
Scenario With(Scenario scenario, const Rules& rules) {
    scenario.rules = rules;
    return scenario;
}
Scenario With(Scenario scenario, const Operation& operation) {
    scenario.operation = operation;
    return scenario;
}

#define MUTANT(scenario, mutant) {#mutant, With(scenario, mutant)},
#define WITHOUT(scenario, Kind, rule) \
    { #rule, With(scenario, Kind{.rule = false}) }

const BrokenRule kBrokenRules[] = {
    WITHOUT(kLeasing, Rules, start_from_mark),
    WITHOUT(kRareFailovers, Rules, wait_for_mark),
    WITHOUT(kLeasing, Rules, purge_raises_mark),
    WITHOUT(kToldLeasing, Rules, knows_where_made),
    WITHOUT(kLeasing, Rules, hold_off),
    {"hold_off_for_skew_and_hold_off_for_renewals",
     With(kLeasing, Rules{.hold_off_for_skew = false, .hold_off_for_renewals = false})},
    WITHOUT(kLeasing, Rules, longest_lease),
    WITHOUT(kLeasing, Rules, renew_before_end),
    WITHOUT(kLeasing, Rules, renew_margin),
    WITHOUT(kLeasing, Rules, renew_keeps_end),
    WITHOUT(kLeasing, Rules, own_incarnation),
    // Drops both rules, because either rule alone stops nearly all renewals that this case needs.
    {"renew_unless_followed_and_exclusion",
     With(kLeasing, Rules{.renew_unless_followed = false, .exclusion = false})},
    WITHOUT(kLeasing, Rules, creation_counts),
    {"creation_counts_beside", With(kBeside, Rules{.creation_counts = false})},
    {"identity_has_birth", {.fleet = kEverything, .identity_has_birth = false}},
    WITHOUT(kFleet, Rules, bounded_renewal),
    WITHOUT(kFleet, Rules, own_role),
    WITHOUT(kFleet, Rules, own_nodes),
    WITHOUT(kPoolChanges, Rules, added_nodes_wait),
    WITHOUT(kFleet, Rules, reopening_waits),
    WITHOUT(kFailovers, Rules, lost_nothing_once),
    WITHOUT(kFleetFailovers, Rules, lost_nothing_ends),
    WITHOUT(kFailovers, Rules, promoted_once),
    WITHOUT(kSecretLeases, Rules, stops_grants),
    WITHOUT(kSecretLeases, Rules, stops_renewals),
    WITHOUT(kSecretLeases, Rules, stops_at_missing),
    WITHOUT(kSecretLeases, Rules, stops_at_unknown),
    {"secrets_after_leases_and_secrets_after_mark",
     With(kSecretLeases, Rules{.secrets_after_leases = false, .secrets_after_mark = false})},
    WITHOUT(kSecretLeases, Rules, secrets_after_mark),

    WITHOUT(kFleet, Operation, waits_until_free),
    WITHOUT(kFleet, Operation, closes_first),
    WITHOUT(kHandovers, Operation, takes_own_nodes_out),
    WITHOUT(kFleet, Operation, configures_again),
    WITHOUT(kToldLeasing, Operation, says_what_is),
    WITHOUT(kSteadyPair, Operation, clocks_agree),
    WITHOUT(kSecretPair, Operation, stops_in_time),
    WITHOUT(kSecretFleet, Operation, adds_everywhere),
    WITHOUT(kSecretLeases, Operation, sets_secrets_again),

    RANDFLAKE_MUTANTS(MUTANT) RANDFLAKE_PROMISES(MUTANT)};

bool Finds(const Scenario& scenario, uint64_t seed) {
    const Findings found = Simulate(scenario, seed);
    if (!found.violation.empty())
        std::cout << "  schedule " << seed << ": " << found.violation << '\n';
    return !found.violation.empty();
}

// Runs the recorded schedule first. A record is stale if its schedule finds nothing.
TEST_P(FleetSimulationFinds, ARuleThatIsLeftOut) {
    constexpr uint64_t kSchedules = 100000;  // many times the number needed
    constexpr uint64_t kWithoutRecord = 100;
    const std::string name = GetParam().name;
    const Scenario& scenario = GetParam().scenario;
    const std::vector<uint64_t> recorded = RecordedSeeds(name);
    if (std::ranges::any_of(recorded, [&](uint64_t seed) { return Finds(scenario, seed); })) return;
    uint64_t seed = 1;
    while (seed <= kSchedules && !Finds(scenario, seed)) seed++;
    ASSERT_LE(seed, kSchedules) << "no violation in " << kSchedules << " schedules";
    if (recorded.empty() && seed <= kWithoutRecord) return;
    std::cout << "stale seed of " << name << ", now " << seed << ": run make -C test/unit record\n";
    if (std::getenv("RANDFLAKE_RECORD") != nullptr) RecordSeed(name, seed);
}

INSTANTIATE_TEST_SUITE_P(Rules, FleetSimulationFinds, testing::ValuesIn(kBrokenRules),
                         [](const auto& rule) { return rule.param.name; });

}  // namespace
}  // namespace randflake::simulation
