// The simulation of leases where secrets change, with one rule left out at a time. Each must be
// found out, as in fleet_mutants_test.cpp.

#include "expect_violation.h"

namespace randflake::simulation {
namespace {

const BrokenRule kBrokenRules[] = {
    // What becomes of numbers
    {"NumbersThatAreNotSkipped", {.fleet = Fleet::kEverything, .mutant = Mutant::kSkipsNothing}},
    {"NumbersSkippedByTheWrongInterval",
     {.fleet = Fleet::kEverything, .mutant = Mutant::kSkipsByTheNumbersInterval}},
    {"ARunThatIsEncryptedUnderTheSecretOfTheClock",
     {.fleet = Fleet::kTwoNodeIds, .mutant = Mutant::kEncryptsByTheClock}},
    {"ASessionThatKeepsTheSecretsItBeganWith", {.mutant = Mutant::kKeepsTheSessionsSecrets}},
    {"SecretsThatAreReadBeforeTheNumberIsReserved", {.mutant = Mutant::kLooksBeforeItReserves}},

    // When secrets are taken
    {"SecretsOfThePastThatAreTaken",
     {.fleet = Fleet::kTwoNodeIds, .mutant = Mutant::kTakesSecretsOfThePast}},
    {"SecretsOfSecondsThatOthersMayHaveReached",
     {.fleet = Fleet::kTwoNodeIds, .mutant = Mutant::kTakesSecretsOfThePresent}},
    {"SecretsOfSecondsThatWereLeasedBefore", {.mutant = Mutant::kForgetsLeases}},
    {"AnAnswerFromBeforeASecretWasAdded", {.mutant = Mutant::kHearsOldAnswers}},
    {"SecretsThatAreReplacedWhileAServerRuns", {.mutant = Mutant::kReloadsAnything}},
    {"AWindowThatIsExtendedWhileSecretsAreAdded", {.mutant = Mutant::kReloadsWithoutTheLock}},
    {"AStartUnderFewerOrOtherSecrets",
     {.fleet = Fleet::kTwoNodeIds, .mutant = Mutant::kStartsUnderAnySecrets}},
    // Takes a start with a file that lacks just that secret, and no other one since it
    // began: one schedule in some 10,000.
    {"AStateWithoutTheSecretsThatWereAdded",
     {.fleet = Fleet::kTwoNodeIds, .mutant = Mutant::kForgetsAddedSecrets},
     2410},

    // Secrets and the coordinator
    {"LeasesBeyondASecretThatOneSideLacks", {.rules = {.stops_grants = false}}},
    {"RenewalsBeyondASecretThatOneSideLacks", {.rules = {.stops_renewals = false}}},
    {"LeasesBeyondASecretThatTheHolderLacks", {.rules = {.stops_at_missing = false}}},
    {"LeasesBeyondASecretThatTheCoordinatorLacks", {.rules = {.stops_at_unknown = false}}},
    {"SecretsAddedThatLeasesReach",
     {.rules = {.secrets_after_leases = false, .secrets_after_mark = false}}},
    {"SecretsAddedThatUnknownLeasesReach", {.rules = {.secrets_after_mark = false}}},
    {"AServerThatIsNotStoppedBeforeASecretThatItLacks",
     {.fleet = Fleet::kTwoNodeIds, .operation = {.stops_in_time = false}}},
    {"ASecondCoordinatorThatIsNotToldOfASecret",
     {.fleet = Fleet::kEverything, .operation = {.adds_everywhere = false}}},
    {"ACoordinatorThatIsNotToldOfSecretsAfterAFailover",
     {.operation = {.sets_secrets_again = false}}},
};

TEST_P(FleetSimulationFinds, ARuleThatIsLeftOut) {
    Scenario scenario = GetParam().scenario;
    scenario.layout = {.epoch = kWindowEpochMs,
                       .timestamp_bits = 8,
                       .node_bits = 3,
                       .sequence_bits = 2,
                       .lowest_stands_for_second = true};
    scenario.rotates = true;
    ExpectViolation(scenario);
}

INSTANTIATE_TEST_SUITE_P(Secrets, FleetSimulationFinds, testing::ValuesIn(kBrokenRules), NameOf);

}  // namespace
}  // namespace randflake::simulation
