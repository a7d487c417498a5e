// The simulation of leases where secrets change, with one rule left out at a time. Each must be
// found out, as in lease_simulation_broken_test.cpp.

#include "expect_violation.h"

namespace randflake::simulation {
namespace {

void ExpectViolationIn(Fleet fleet, const CoordinatorRules& rules, const Operation& operation = {},
                       Broken broken = {}, uint64_t first_seed = 1) {
    ExpectViolationOf({.layout = {.epoch = kWindowEpochMs,
                                  .timestamp_bits = 8,
                                  .node_bits = 3,
                                  .sequence_bits = 2,
                                  .lowest_stands_for_second = true},
                       .fleet = fleet,
                       .rules = rules,
                       .rotates = true,
                       .broken = broken,
                       .operation = operation},
                      first_seed);
}

void ExpectViolationIn(Fleet fleet, Broken broken, uint64_t first_seed = 1) {
    ExpectViolationIn(fleet, {}, {}, broken, first_seed);
}

// --- what becomes of numbers

TEST(LeaseSimulationFinds, NumbersThatAreNotSkipped) {
    ExpectViolationIn(Fleet::kEverything, Broken::kSkipsNothing);
}

TEST(LeaseSimulationFinds, NumbersSkippedByTheWrongInterval) {
    ExpectViolationIn(Fleet::kEverything, Broken::kSkipsByTheNumbersInterval);
}

TEST(LeaseSimulationFinds, ARunThatIsEncryptedUnderTheSecretOfTheClock) {
    ExpectViolationIn(Fleet::kTwoNodeIds, Broken::kEncryptsByTheClock);
}

TEST(LeaseSimulationFinds, ASessionThatKeepsTheSecretsItBeganWith) {
    ExpectViolationIn(Fleet::kLeases, Broken::kKeepsTheSessionsSecrets);
}

TEST(LeaseSimulationFinds, SecretsThatAreReadBeforeTheNumberIsReserved) {
    ExpectViolationIn(Fleet::kLeases, Broken::kLooksBeforeItReserves);
}

// --- when secrets are taken

TEST(LeaseSimulationFinds, SecretsOfThePastThatAreTaken) {
    ExpectViolationIn(Fleet::kTwoNodeIds, Broken::kTakesSecretsOfThePast);
}

TEST(LeaseSimulationFinds, SecretsOfSecondsThatOthersMayHaveReached) {
    ExpectViolationIn(Fleet::kTwoNodeIds, Broken::kTakesSecretsOfThePresent);
}

TEST(LeaseSimulationFinds, SecretsOfSecondsThatWereLeasedBefore) {
    ExpectViolationIn(Fleet::kLeases, Broken::kForgetsLeases);
}

TEST(LeaseSimulationFinds, AnAnswerFromBeforeASecretWasAdded) {
    ExpectViolationIn(Fleet::kLeases, Broken::kHearsOldAnswers);
}

TEST(LeaseSimulationFinds, SecretsThatAreReplacedWhileAServerRuns) {
    ExpectViolationIn(Fleet::kLeases, Broken::kReloadsAnything);
}

TEST(LeaseSimulationFinds, AWindowThatIsExtendedWhileSecretsAreAdded) {
    ExpectViolationIn(Fleet::kLeases, Broken::kReloadsWithoutTheLock);
}

TEST(LeaseSimulationFinds, AStartUnderFewerOrOtherSecrets) {
    ExpectViolationIn(Fleet::kTwoNodeIds, Broken::kStartsUnderAnySecrets);
}

TEST(LeaseSimulationFinds, AStateWithoutTheSecretsThatWereAdded) {
    // Takes a start with a file that lacks just that secret, and no other one since it began: one
    // schedule in some 10,000.
    ExpectViolationIn(Fleet::kTwoNodeIds, Broken::kForgetsAddedSecrets, 77000);
}

// --- secrets and the coordinator

TEST(LeaseSimulationFinds, LeasesBeyondASecretThatOneSideLacks) {
    ExpectViolationIn(Fleet::kLeases, {.stops_grants = false});
}

TEST(LeaseSimulationFinds, RenewalsBeyondASecretThatOneSideLacks) {
    ExpectViolationIn(Fleet::kLeases, {.stops_renewals = false});
}

TEST(LeaseSimulationFinds, LeasesBeyondASecretThatTheHolderLacks) {
    ExpectViolationIn(Fleet::kLeases, {.stops_at_missing = false});
}

TEST(LeaseSimulationFinds, LeasesBeyondASecretThatTheCoordinatorLacks) {
    ExpectViolationIn(Fleet::kLeases, {.stops_at_unknown = false});
}

TEST(LeaseSimulationFinds, SecretsAddedThatLeasesReach) {
    ExpectViolationIn(Fleet::kLeases, {.secrets_after_leases = false, .secrets_after_mark = false});
}

TEST(LeaseSimulationFinds, SecretsAddedThatUnknownLeasesReach) {
    ExpectViolationIn(Fleet::kLeases, {.secrets_after_mark = false});
}

TEST(LeaseSimulationFinds, AServerThatIsNotStoppedBeforeASecretThatItLacks) {
    ExpectViolationIn(Fleet::kTwoNodeIds, {}, {.stops_in_time = false});
}

TEST(LeaseSimulationFinds, ASecondCoordinatorThatIsNotToldOfASecret) {
    ExpectViolationIn(Fleet::kEverything, {}, {.adds_everywhere = false});
}

TEST(LeaseSimulationFinds, ACoordinatorThatIsNotToldOfSecretsAfterAFailover) {
    ExpectViolationIn(Fleet::kLeases, {}, {.sets_secrets_again = false});
}

}  // namespace
}  // namespace randflake::simulation
