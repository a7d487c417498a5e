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

template <typename Part> Scenario With(Scenario scenario, Part Scenario::*part, const Part& value) {
    scenario.*part = value;
    return scenario;
}

#define MUTANT(scenario, broken) {#broken, With(scenario, &Scenario::mutant, broken)},
#define WITHOUT(scenario, part, rule) \
    { #rule, With(scenario, &Scenario::part, {.rule = false}) }

const BrokenRule kBrokenRules[] = {
    WITHOUT(kLeasing, rules, start_from_mark),
    WITHOUT(kRareFailovers, rules, wait_for_mark),
    WITHOUT(kLeasing, rules, purge_raises_mark),
    WITHOUT(kToldLeasing, rules, knows_where_made),
    WITHOUT(kLeasing, rules, hold_off),
    {"hold_off_for_skew_and_hold_off_for_renewals",
     With(kLeasing, &Scenario::rules,
          {.hold_off_for_skew = false, .hold_off_for_renewals = false})},
    WITHOUT(kLeasing, rules, longest_lease),
    WITHOUT(kLeasing, rules, renew_before_end),
    WITHOUT(kLeasing, rules, renew_margin),
    WITHOUT(kLeasing, rules, renew_keeps_end),
    WITHOUT(kLeasing, rules, own_incarnation),
    // Drops both rules, because either rule alone stops nearly all renewals that this case needs.
    {"renew_unless_followed_and_exclusion",
     With(kLeasing, &Scenario::rules, {.renew_unless_followed = false, .exclusion = false})},
    WITHOUT(kLeasing, rules, creation_counts),
    {"creation_counts_beside", With(kBeside, &Scenario::rules, {.creation_counts = false})},
    {"identity_has_birth", {.fleet = kEverything, .identity_has_birth = false}},
    WITHOUT(kFleet, rules, bounded_renewal),
    WITHOUT(kFleet, rules, own_role),
    WITHOUT(kFleet, rules, own_nodes),
    WITHOUT(kPoolChanges, rules, added_nodes_wait),
    WITHOUT(kFleet, rules, reopening_waits),
    WITHOUT(kFailovers, rules, lost_nothing_once),
    WITHOUT(kFleetFailovers, rules, lost_nothing_ends),
    WITHOUT(kFailovers, rules, promoted_once),
    WITHOUT(kSecretLeases, rules, stops_grants),
    WITHOUT(kSecretLeases, rules, stops_renewals),
    WITHOUT(kSecretLeases, rules, stops_at_missing),
    WITHOUT(kSecretLeases, rules, stops_at_unknown),
    {"secrets_after_leases_and_secrets_after_mark",
     With(kSecretLeases, &Scenario::rules,
          {.secrets_after_leases = false, .secrets_after_mark = false})},
    WITHOUT(kSecretLeases, rules, secrets_after_mark),

    WITHOUT(kFleet, operation, waits_until_free),
    WITHOUT(kFleet, operation, closes_first),
    WITHOUT(kHandovers, operation, takes_own_nodes_out),
    WITHOUT(kFleet, operation, configures_again),
    WITHOUT(kToldLeasing, operation, says_what_is),
    WITHOUT(kSteadyPair, operation, clocks_agree),
    WITHOUT(kSecretPair, operation, stops_in_time),
    WITHOUT(kSecretFleet, operation, adds_everywhere),
    WITHOUT(kSecretLeases, operation, sets_secrets_again),

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
