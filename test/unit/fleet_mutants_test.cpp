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

const BrokenRule kBrokenRules[] = {
    {"LeasesThatStartBelowTheMark", {.rules = {.start_from_mark = false}}},
    // In only one schedule of 10,000, a failover loses a lease and a restore brings it back.
    {"LeasesThatAreGrantedAheadOfTheMark",
     {.rules = {.wait_for_mark = false}, .only_failovers = true}},
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
    {"RenewalToAnyEnd", {.fleet = kEverything, .rules = {.bounded_renewal = false}}},
    {"ReleaseByAnotherRole", {.fleet = kEverything, .rules = {.own_role = false}}},
    {"NodeIdsOfTheCoordinatorsOwnServerLeasedOut",
     {.fleet = kEverything, .rules = {.own_nodes = false}}},
    {"NodeIdsThatWereStaticLeasedOutAtOnce",
     {.fleet = kEverything, .rules = {.added_nodes_wait = false}, .only_pool_changes = true}},
    {"APoolThatIsOpenedAgainAndGrantsAtOnce",
     {.fleet = kEverything, .rules = {.reopening_waits = false}}},
    {"AFailoverThatLostNothingAfterOneThatDid",
     {.rules = {.lost_nothing_once = false}, .only_failovers = true, .loses_nothing = true}},
    {"AFailoverThatLostSomethingAfterOneThatDidNot",
     {.fleet = kEverything,
      .rules = {.lost_nothing_ends = false},
      .only_failovers = true,
      .loses_nothing = true}},
    {"ATakeoverThatNoChangeHasWrittenBeforeOneThatLostNothing",
     {.rules = {.promoted_once = false}, .only_failovers = true, .loses_nothing = true}},

    {"OwnStateTakenForAProofThatNobodyElseUsedTheNodeIds",
     {.fleet = kTwoNodeIds, .mutant = kOpensOwnStateAtTheWrittenEnd}},
    {"AStartBelowTheWrittenEnd", {.fleet = kOneDirectory, .mutant = kOpensBelowTheWrittenEnd}},
    {"ADiskThatIsRolledBackToAStopBeforeTheLastRun",
     {.fleet = kTwoNodeIds, .skew_stays = true, .mutant = kIgnoresOtherRuns}},
    {"NodeIdsNewToADirectoryUsedAtOnce",
     {.fleet = kEverything, .skew_stays = true, .mutant = kStartsUnknownNodeIdsAtOnce}},
    {"PartlyKnownNodeIdsTakenForKnown",
     {.fleet = kTwoNodeIds, .skew_stays = true, .mutant = kTakesOneNodeIdForAll}},
    {"EndsOfOtherRangesThatACopyTakesForItsOwn",
     {.fleet = kTwoNodeIds, .skew_stays = true, .mutant = kTrustsEveryKnownRange}},
    {"ACopyTakenForTheOriginal",
     {.fleet = kTwoNodeIds, .skew_stays = true, .mutant = kTakesCopiesForTheOriginal}},
    // In only one schedule of 50,000, a takeover and a failback happen within the same second.
    {"AStopOfAnyTimeTakenForAProof",
     {.fleet = kTwoNodeIds, .skew_stays = true, .mutant = kIgnoresTheTimeSinceTheStop}},
    {"AHoldOffThatRunsWhileTheServerIsAStandby",
     {.fleet = kEverything, .mutant = kHoldsOffFromTheServersStart}},
    {"AWindowMovedBeforeItsEndIsWritten", {.fleet = kOneDirectory, .mutant = kMovesTheWindowFirst}},
    {"ALeaseOpenedBelowAWrittenEnd", {.fleet = kOneDirectory, .mutant = kOpensLeasesAnywhere}},
    {"AStartBelowTheEndOfALeaseThatWasUsed",
     {.fleet = kOneDirectory, .mutant = kAnnouncesNoLeases}},
    {"AnUnusedWindowThatTakesBackWhatAFormerOneAnnounced",
     {.fleet = kOneDirectory, .mutant = kTakesBackWhatAFormerWindowAnnounced}},

    {"NodeIdsOfACoordinatorsServerThatOpenWithoutTheLook",
     {.fleet = kEverything, .mutant = kOpensWithoutTheLook}},

    {"ARangeEnteredBelowItsWrittenEnd",
     {.fleet = kOneDirectory, .set_back_far = true, .mutant = kChoosesRangesInUse}},
    {"ARangeChosenByAClockThatWasNotSetBack",
     {.fleet = kOneDirectory, .set_back_far = true, .mutant = kChoosesByAnotherClock}},
    {"ARangeWhoseEndsAreNotWritten",
     {.fleet = kOneDirectory, .set_back_far = true, .mutant = kLeavesRangesUnwritten}},
    {"ARangeEnteredAtSecondsOfWhomThisDirectoryFollowed",
     {.fleet = kTwoNodeIds, .set_back_far = true, .mutant = kForgetsTheFloor}},
    {"AStopOfSomeNodeIdsTakenForAProofOfAll",
     {.fleet = kTwoNodeIds, .set_back_far = true, .mutant = kProvesOneRangeForAll}},

    {"AStopOfTheFirstRangeTakenForAProofOfTheSpareOnes",
     {.fleet = kTwoNodeIds,
      .changes_settings = true,
      .set_back_far = true,
      .mutant = kProvesByTheFirstRange}},
    {"ASpareRangeEnteredDuringTheHoldOff",
     {.fleet = kOneDirectory,
      .changes_settings = true,
      .set_back_far = true,
      .mutant = kEntersRangesDuringTheHoldOff}},
    {"ARangeEnteredBeforeTheSecondsOfItsLastWindow",
     {.fleet = kOneDirectory,
      .changes_settings = true,
      .set_back_far = true,
      .mutant = kForgetsWhereARangeWasLeft}},
    {"WordsLeftInARangeThatIsLeft",
     {.fleet = kOneDirectory,
      .changes_settings = true,
      .set_back_far = true,
      .mutant = kLeavesRangesByClosing}},

    {"AHoldOffThatAChangeDoesNotProlong",
     {.fleet = kOneDirectory, .changes_settings = true, .mutant = kKeepsTheHoldOffOfTheStart}},
    {"AHoldOffOfALeaseThatAChangeDoesNotProlong",
     {.fleet = kEverything, .changes_settings = true, .mutant = kKeepsTheHoldOffOfALease}},
    {"AFloorThatAChangeDoesNotRaise",
     {.fleet = kOneDirectory, .changes_settings = true, .mutant = kRaisesNoFloor}},
    {"AStateWithoutTheDifferenceOfItsRun",
     {.fleet = kOneDirectory, .changes_settings = true, .mutant = kWritesNoSkew}},
    {"AStopWithoutTheDifferenceOfItsRun",
     {.fleet = kOneDirectory, .changes_settings = true, .mutant = kStopsWithoutSkew}},

    {"NodeIdsTakenOutOfAPoolAndUsedBeforeTheyAreFree",
     {.fleet = kEverything, .operation = {.waits_until_free = false}}},
    {"ACoordinatorMadeWhileItsPredecessorGrants",
     {.fleet = kEverything, .operation = {.closes_first = false}}},
    {"NodeIdsGivenUpByACoordinatorsServerThatAreInThePool",
     {.fleet = kEverything, .operation = {.takes_own_nodes_out = false}}},
    {"APoolThatIsNotConfiguredAgainAfterAFailover",
     {.fleet = kEverything, .operation = {.configures_again = false}}},
    {"AWordThatNothingWasLostThatIsUntrue",
     {.loses_nothing = true, .operation = {.says_what_is = false}}},
    {"ClocksThatDifferByMore",
     {.fleet = kTwoNodeIds, .skew_stays = true, .operation = {.clocks_agree = false}}},

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
    {"SecondsGivenBackThatAFormerWindowUsed",
     {.fleet = kOneDirectory, .mutant = kGivesBackWhatItUsedBefore}},
    {"SilenceTakenForARenewal", {.mutant = kTakesSilenceForARenewal}},
    {"TheOpenLeaseExtendedByARenewalOfTheNext", {.mutant = kExtendsAnotherLease}},
    {"ALastSecondTakenForAnEnd", {.mutant = kTakesRenewalsForLonger}},
    {"ARenewalThatIsTakenToAnyEnd", {.mutant = kTakesAnyRenewal}},
    {"AWindowThatEndsLaterThanTheClockAllows", {.mutant = kAnnouncesAnyEnd}},
    {"TheNextLeaseOpenedBeforeTheOpenOneIsOver", {.mutant = kOpensTooEarly}},

    {"StoreForCompareAndSwap", {.mutant = kPlainStore}},
};

// These rules concern secrets, so the simulation also changes the secrets.
const BrokenRule kBrokenSecretRules[] = {
    {"NumbersThatAreNotSkipped", {.fleet = kEverything, .mutant = kSkipsNothing}},
    {"NumbersSkippedByTheWrongInterval",
     {.fleet = kEverything, .mutant = kSkipsByTheNumbersInterval}},
    {"ARunThatIsEncryptedUnderTheSecretOfTheClock",
     {.fleet = kTwoNodeIds, .mutant = kEncryptsByTheClock}},
    {"ASessionThatKeepsTheSecretsItBeganWith", {.mutant = kKeepsTheSessionsSecrets}},
    {"SecretsThatAreReadBeforeTheNumberIsReserved", {.mutant = kLooksBeforeItReserves}},

    {"SecretsOfThePastThatAreTaken", {.fleet = kTwoNodeIds, .mutant = kTakesSecretsOfThePast}},
    {"SecretsOfSecondsThatOthersMayHaveReached",
     {.fleet = kTwoNodeIds, .mutant = kTakesSecretsOfThePresent}},
    {"SecretsOfSecondsThatWereLeasedBefore", {.mutant = kForgetsLeases}},
    {"ALeaseResumedUnderAnotherRing", {.mutant = kResumesUnderAnySecrets}},
    {"SecretsOfSecondsOfALeaseThatIsResumedMeanwhile", {.mutant = kLooksAtLeasesFirst}},
    {"AnAnswerFromBeforeASecretWasAdded", {.mutant = kHearsOldAnswers}},
    {"SecretsThatAreReplacedWhileAServerRuns", {.mutant = kReloadsAnything}},
    {"AWindowThatIsExtendedWhileSecretsAreAdded", {.mutant = kReloadsWithoutTheLock}},
    {"AStartUnderFewerOrOtherSecrets", {.fleet = kTwoNodeIds, .mutant = kStartsUnderAnySecrets}},
    // In one of 10,000 schedules, a server starts with a file that lacks only the added secret.
    {"AStateWithoutTheSecretsThatWereAdded",
     {.fleet = kTwoNodeIds, .mutant = kForgetsAddedSecrets}},

    {"LeasesBeyondASecretThatOneSideLacks", {.rules = {.stops_grants = false}}},
    {"RenewalsBeyondASecretThatOneSideLacks", {.rules = {.stops_renewals = false}}},
    {"LeasesBeyondASecretThatTheHolderLacks", {.rules = {.stops_at_missing = false}}},
    {"LeasesBeyondASecretThatTheCoordinatorLacks", {.rules = {.stops_at_unknown = false}}},
    {"SecretsAddedThatLeasesReach",
     {.rules = {.secrets_after_leases = false, .secrets_after_mark = false}}},
    {"SecretsAddedThatUnknownLeasesReach", {.rules = {.secrets_after_mark = false}}},
    {"AServerThatIsNotStoppedBeforeASecretThatItLacks",
     {.fleet = kTwoNodeIds, .operation = {.stops_in_time = false}}},
    {"ASecondCoordinatorThatIsNotToldOfASecret",
     {.fleet = kEverything, .operation = {.adds_everywhere = false}}},
    {"ACoordinatorThatIsNotToldOfSecretsAfterAFailover",
     {.operation = {.sets_secrets_again = false}}},
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
    const bool rotates = std::ranges::any_of(
        kBrokenSecretRules,
        [&, name = name](const BrokenRule& other) { return other.name == name; });
    Scenario scenario = rule;
    scenario.rotates = rotates;
    scenario.layout = {kWindowEpochMs, 8, 3, 2};
    scenario.layout.lowest_stands_for_second = rotates;
    scenario.numbers = scenario.layout;
    const std::vector<uint64_t> recorded = RecordedSeeds(name);
    if (std::ranges::any_of(recorded, [&](uint64_t seed) { return Finds(scenario, seed); }))
        return;
    uint64_t seed = 1;
    while (seed <= kSchedules && !Finds(scenario, seed))
        seed++;
    ASSERT_LE(seed, kSchedules) << "no violation in " << kSchedules << " schedules";
    if (recorded.empty() && seed <= kWithoutRecord)
        return;
    std::cout << "stale seed of " << name << ", now " << seed << ": run make -C test/unit record\n";
    if (std::getenv("RANDFLAKE_RECORD") != nullptr)
        RecordSeed(name, seed);
}

const auto NameOf = [](const auto& rule) { return rule.param.name; };
INSTANTIATE_TEST_SUITE_P(Leases, FleetSimulationFinds, testing::ValuesIn(kBrokenRules), NameOf);
INSTANTIATE_TEST_SUITE_P(Secrets, FleetSimulationFinds, testing::ValuesIn(kBrokenSecretRules),
                         NameOf);

}  // namespace
}  // namespace randflake::simulation
