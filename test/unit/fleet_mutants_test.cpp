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

// The most frequent scenarios. The secret ones also change the servers' secrets.
const Scenario kFleet{.fleet = kEverything}, kPair{.fleet = kTwoNodeIds},
    kOne{.fleet = kOneDirectory}, kSteadyPair{.fleet = kTwoNodeIds, .skew_stays = true},
    kSetBackPair{.fleet = kTwoNodeIds, .set_back_far = true},
    kSetBack{.fleet = kOneDirectory, .set_back_far = true},
    kChanging{.fleet = kOneDirectory, .changes_settings = true},
    kChangingAndSetBack{.fleet = kOneDirectory, .changes_settings = true, .set_back_far = true},
    kFailovers{.only_failovers = true, .loses_nothing = true}, kSecretLeases{.rotates = true},
    kSecretFleet{.fleet = kEverything, .rotates = true},
    kSecretPair{.fleet = kTwoNodeIds, .rotates = true};

Scenario With(Scenario scenario, Mutant mutant, const Rules& rules = {},
              const Operation& operation = {}) {
    scenario.mutant = mutant;
    scenario.rules = rules;
    scenario.operation = operation;
    return scenario;
}
Scenario With(const Scenario& scenario, const Rules& rules) {
    return With(scenario, kNothing, rules);
}
Scenario With(const Scenario& scenario, const Operation& operation) {
    return With(scenario, kNothing, {}, operation);
}

const BrokenRule kBrokenRules[] = {
    {"LeasesThatStartBelowTheMark", {.rules = {.start_from_mark = false}}},
    {"LeasesThatAreGrantedAheadOfTheMark", With(kRareFailovers, Rules{.wait_for_mark = false})},
    {"AMarkThatAPurgeDoesNotRaise", {.rules = {.purge_raises_mark = false}}},
    {"NoHoldOffBeforeTheFirstKnownGrant",
     {.rules = {.knows_where_made = false}, .loses_nothing = true}},
    {"NoHoldOffByAnotherCoordinator", {.rules = {.hold_off = false}}},
    {"AHoldOffThatTakesClocksForEqual",
     {.rules = {.hold_off_for_skew = false, .hold_off_for_renewals = false}}},
    {"LeasesThatAreLongerThanTheHoldOff", {.rules = {.longest_lease = false}}},
    {"RenewalOfALeaseThatHasEnded", {.rules = {.renew_before_end = false}}},
    {"RenewalThatTakesClocksForEqual", {.rules = {.renew_margin = false}}},
    {"RenewalThatTakesTimeAway", {.rules = {.renew_keeps_end = false}}},
    {"RenewalByAnotherIncarnation", {.rules = {.own_incarnation = false}}},
    // Drops both rules, because either rule alone stops nearly all renewals that this case needs.
    {"NoExclusionConstraintAndRenewalsOfNodeIdsThatALaterLeaseHad",
     {.rules = {.renew_unless_followed = false, .exclusion = false}}},

    {"ACoordinatorMadeAnewInPlaceOfALostOneThatGrantsAtOnce",
     {.rules = {.creation_counts = false}}},
    {"ACoordinatorMadeBesideAClosedOneThatGrantsAtOnce",
     {.fleet = kEverything, .rules = {.creation_counts = false}, .made_in_place = false}},
    {"AnOlderCopyInPlaceOfACoordinatorThatIsNotToldFromIt",
     {.fleet = kEverything, .identity_has_birth = false}},
    {"RenewalToAnyEnd", With(kFleet, Rules{.bounded_renewal = false})},
    {"ReleaseByAnotherRole", With(kFleet, Rules{.own_role = false})},
    {"NodeIdsOfTheCoordinatorsOwnServerLeasedOut", With(kFleet, Rules{.own_nodes = false})},
    {"NodeIdsThatWereStaticLeasedOutAtOnce",
     {.fleet = kEverything, .rules = {.added_nodes_wait = false}, .only_pool_changes = true}},
    {"APoolThatIsOpenedAgainAndGrantsAtOnce", With(kFleet, Rules{.reopening_waits = false})},
    {"AFailoverThatLostNothingAfterOneThatDid",
     With(kFailovers, Rules{.lost_nothing_once = false})},
    {"AFailoverThatLostSomethingAfterOneThatDidNot",
     {.fleet = kEverything,
      .rules = {.lost_nothing_ends = false},
      .only_failovers = true,
      .loses_nothing = true}},
    {"ATakeoverThatNoChangeHasWrittenBeforeOneThatLostNothing",
     With(kFailovers, Rules{.promoted_once = false})},

    {"OwnStateTakenForAProofThatNobodyElseUsedTheNodeIds",
     With(kPair, kOpensOwnStateAtTheWrittenEnd)},
    {"AStartBelowTheWrittenEnd", With(kOne, kOpensBelowTheWrittenEnd)},
    {"ADiskThatIsRolledBackToAStopBeforeTheLastRun", With(kSteadyPair, kIgnoresOtherRuns)},
    {"NodeIdsNewToADirectoryUsedAtOnce", With(kPromptStarts, kStartsUnknownNodeIdsAtOnce)},
    {"PartlyKnownNodeIdsTakenForKnown", With(kSteadyPair, kTakesOneNodeIdForAll)},
    {"EndsOfOtherRangesThatACopyTakesForItsOwn", With(kSteadyPair, kTrustsEveryKnownRange)},
    {"ACopyTakenForTheOriginal", With(kSteadyPair, kTakesCopiesForTheOriginal)},
    {"AStopOfAnyTimeTakenForAProof", With(kHandovers, kIgnoresTheTimeSinceTheStop)},
    {"AHoldOffThatRunsWhileTheServerIsAStandby", With(kFleet, kHoldsOffFromTheServersStart)},
    {"AWindowMovedBeforeItsEndIsWritten", With(kOne, kMovesTheWindowFirst)},
    {"ALeaseOpenedBelowAWrittenEnd", With(kOne, kOpensLeasesAnywhere)},
    {"AStartBelowTheEndOfALeaseThatWasUsed", With(kOne, kRecordsNoLeases)},
    {"AnUnusedWindowThatTakesBackWhatAFormerOneRecorded",
     With(kOne, kTakesBackWhatAFormerWindowRecorded)},

    {"NodeIdsOfACoordinatorsServerThatOpenWithoutTheLook", With(kFleet, kOpensWithoutTheLook)},

    {"ARangeEnteredBelowItsWrittenEnd", With(kSetBack, kChoosesRangesInUse)},
    {"ARangeChosenByAClockThatWasNotSetBack", With(kSetBack, kChoosesByAnotherClock)},
    {"ARangeWhoseEndsAreNotWritten", With(kSetBack, kLeavesRangesUnwritten)},
    {"ARangeEnteredAtSecondsOfWhomThisDirectoryFollowed", With(kHandovers, kForgetsTheFloor)},
    {"AStopOfSomeNodeIdsTakenForAProofOfAll", With(kSetBackPair, kProvesOneRangeForAll)},

    {"AStopOfTheFirstRangeTakenForAProofOfTheSpareOnes", With(kHandovers, kProvesByTheFirstRange)},
    {"ASpareRangeEnteredDuringTheHoldOff",
     With(kChangingAndSetBack, kEntersRangesDuringTheHoldOff)},
    {"ARangeEnteredBeforeTheSecondsOfItsLastWindow",
     With(kChangingAndSetBack, kForgetsWhereARangeWasLeft)},
    {"WordsLeftInARangeThatIsLeft", With(kChangingAndSetBack, kLeavesRangesByClosing)},

    {"AHoldOffThatAChangeDoesNotProlong", With(kChanging, kKeepsTheHoldOffOfTheStart)},
    {"AHoldOffOfALeaseThatAChangeDoesNotProlong",
     {.fleet = kEverything, .changes_settings = true, .mutant = kKeepsTheHoldOffOfALease}},
    {"AFloorThatAChangeDoesNotRaise", With(kChanging, kRaisesNoFloor)},
    {"AStateWithoutTheDifferenceOfItsRun", With(kChanging, kWritesNoSkew)},
    {"AStopWithoutTheDifferenceOfItsRun", With(kChanging, kStopsWithoutSkew)},

    {"NodeIdsTakenOutOfAPoolAndUsedBeforeTheyAreFree",
     With(kFleet, Operation{.waits_until_free = false})},
    {"ACoordinatorMadeWhileItsPredecessorGrants", With(kFleet, Operation{.closes_first = false})},
    {"NodeIdsGivenUpByACoordinatorsServerThatAreInThePool",
     With(kHandovers, Operation{.takes_own_nodes_out = false})},
    {"APoolThatIsNotConfiguredAgainAfterAFailover",
     With(kFleet, Operation{.configures_again = false})},
    {"AWordThatNothingWasLostThatIsUntrue",
     {.loses_nothing = true, .operation = {.says_what_is = false}}},
    {"ClocksThatDifferByMore", With(kSteadyPair, Operation{.clocks_agree = false})},

    {"AnUnclearCommitTakenForAGrant", {.mutant = kTakesUnclearGrants}},
    {"OneIncarnationForAll", {.mutant = kSameIncarnation}},

    {"ALeaseThatIsLostInACrash", {.mutant = kResumesNothing}},
    {"ALeaseThatIsLostWithItsPostmaster", {.mutant = kResumesInOnePostmasterOnly}},
    {"ALeaseOfThePrimaryThatAPromotedStandbyResumesAfterACrash", {.mutant = kResumesAfterAnyCrash}},
    {"ALeaseThatIsResumedInACopy", {.mutant = kResumesInCopies}},
    {"ALeaseThatIsResumedWithoutTheLock", {.mutant = kResumesWithoutTheLock}},
    {"AMarkerThatIsWrittenWithoutItsLock", {.mutant = kMarksWithoutTheLock}},
    {"ADiskThatIsSetBackWithinARun", {.mutant = kComparesRunsOnly}},
    {"AFailedWriteThatIsTakenForTheNext", {.mutant = kCountsNoFailedWrites}},
    {"AWindowThatTheMarkerDoesNotShow", {.mutant = kMarksTheWriteBefore}},
    {"ALeaseOfOneNodeIdResumedForTwo", {.mutant = kResumesOtherNodeCounts}},
    {"AReleaseBeforeTheLeaseIsStruck", {.mutant = kReleasesBeforeItStrikes}},
    {"ALeaseReleasedThatMayNotBeResumed", {.mutant = kReleasesWhatItDoesNotResume}},
    {"WindowOpenedBeforeTheWordsAreStored", {.mutant = kOpensFirst}},
    {"WordsLeftInASealedWindow", {.mutant = kSealsByClosing}},
    {"SecondsGivenBackThatWereUsed", {.mutant = kGivesAllBack}},
    {"SecondsGivenBackThatAFormerWindowUsed", With(kOne, kGivesBackWhatItUsedBefore)},
    {"SilenceTakenForARenewal", {.mutant = kTakesSilenceForARenewal}},
    {"TheOpenLeaseExtendedByARenewalOfTheNext", {.mutant = kExtendsAnotherLease}},
    {"ALastSecondTakenForAnEnd", {.mutant = kTakesRenewalsForLonger}},
    {"ARenewalThatIsTakenToAnyEnd", {.mutant = kTakesAnyRenewal}},
    {"AWindowThatEndsLaterThanTheClockAllows", {.mutant = kRecordsAnyEnd}},
    {"TheNextLeaseOpenedBeforeTheOpenOneIsOver", {.mutant = kOpensTooEarly}},

    {"StoreForCompareAndSwap", {.mutant = kPlainStore}},

    {"NumbersThatAreNotSkipped", With(kSecretFleet, kSkipsNothing)},
    {"NumbersSkippedByTheWrongInterval", With(kSecretFleet, kSkipsByTheNumbersInterval)},
    {"ARunThatIsEncryptedUnderTheSecretOfTheClock", With(kSecretPair, kEncryptsByTheClock)},
    {"ASessionThatKeepsTheSecretsItBeganWith", With(kSecretLeases, kKeepsTheSessionsSecrets)},
    {"SecretsThatAreReadBeforeTheNumberIsReserved", With(kSecretLeases, kLooksBeforeItReserves)},

    {"SecretsOfThePastThatAreTaken", With(kSecretPair, kTakesSecretsOfThePast)},
    {"SecretsOfSecondsThatOthersMayHaveReached", With(kSecretPair, kTakesSecretsOfThePresent)},
    {"SecretsOfSecondsThatWereLeasedBefore", With(kSecretLeases, kForgetsLeases)},
    {"ALeaseResumedUnderAnotherRing", With(kSecretLeases, kResumesUnderAnySecrets)},
    {"SecretsOfSecondsOfALeaseThatIsResumedMeanwhile", With(kSecretLeases, kLooksAtLeasesFirst)},
    {"AnAnswerFromBeforeASecretWasAdded", With(kSecretLeases, kHearsOldAnswers)},
    {"SecretsThatAreReplacedWhileAServerRuns", With(kSecretLeases, kReloadsAnything)},
    {"AWindowThatIsExtendedWhileSecretsAreAdded", With(kSecretLeases, kReloadsWithoutTheLock)},
    {"AStartUnderFewerOrOtherSecrets", With(kSecretPair, kStartsUnderAnySecrets)},
    {"AStateWithoutTheSecretsThatWereAdded", With(kWrongFiles, kForgetsAddedSecrets)},

    {"LeasesBeyondASecretThatOneSideLacks", With(kSecretLeases, Rules{.stops_grants = false})},
    {"RenewalsBeyondASecretThatOneSideLacks", With(kSecretLeases, Rules{.stops_renewals = false})},
    {"LeasesBeyondASecretThatTheHolderLacks",
     With(kSecretLeases, Rules{.stops_at_missing = false})},
    {"LeasesBeyondASecretThatTheCoordinatorLacks",
     With(kSecretLeases, Rules{.stops_at_unknown = false})},
    {"SecretsAddedThatLeasesReach",
     With(kSecretLeases, Rules{.secrets_after_leases = false, .secrets_after_mark = false})},
    {"SecretsAddedThatUnknownLeasesReach", With(kSecretLeases, Rules{.secrets_after_mark = false})},
    {"AServerThatIsNotStoppedBeforeASecretThatItLacks",
     With(kSecretPair, Operation{.stops_in_time = false})},
    {"ASecondCoordinatorThatIsNotToldOfASecret",
     With(kSecretFleet, Operation{.adds_everywhere = false})},
    {"ACoordinatorThatIsNotToldOfSecretsAfterAFailover",
     With(kSecretLeases, Operation{.sets_secrets_again = false})},
};

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
    const auto& [name, rule] = GetParam();
    Scenario scenario = rule;
    scenario.layout = {kWindowEpochMs, 8, 3, 2};
    scenario.layout.lowest_stands_for_second = scenario.rotates;
    scenario.numbers = scenario.layout;
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
