// The simulation of leases with one rule left out at a time. Each must be found out: so the
// simulation is known to fail where it should, and each rule to be needed.

#include "expect_violation.h"

namespace randflake::simulation {
namespace {

const BrokenRule kBrokenRules[] = {
    // The coordinator's rules
    {"LeasesThatStartBelowTheMark", {.rules = {.start_from_mark = false}}},
    // Takes a failover that loses a lease, and then a restore that brings it back: one schedule in
    // 10,000.
    {"LeasesThatAreGrantedAheadOfTheMark",
     {.rules = {.wait_for_mark = false}, .only_failovers = true},
     12660},
    {"AMarkThatAPurgeDoesNotRaise", {.rules = {.purge_raises_mark = false}}},
    {"NoHoldOffBeforeTheFirstKnownGrant", {.rules = {.knows_where_made = false}}},
    {"NoHoldOffByAnotherCoordinator", {.rules = {.hold_off = false}}},
    {"AHoldOffThatTakesClocksForEqual",
     {.rules = {.hold_off_for_skew = false, .hold_off_for_renewals = false}}},
    {"LeasesThatAreLongerThanTheHoldOff", {.rules = {.longest_lease = false}}},
    {"RenewalOfALeaseThatHasEnded", {.rules = {.renew_before_end = false}}},
    {"RenewalThatTakesClocksForEqual", {.rules = {.renew_margin = false}}},
    {"RenewalThatTakesTimeAway", {.rules = {.renew_keeps_end = false}}},
    {"RenewalByAnotherIncarnation", {.rules = {.own_incarnation = false}}},
    {"NoExclusionConstraint", {.rules = {.exclusion = false}}},

    // Coordinators that follow each other, and servers with static node ids
    {"ACoordinatorMadeAnewInPlaceOfALostOneThatGrantsAtOnce",
     {.rules = {.creation_counts = false}}},
    {"ACoordinatorMadeBesideAClosedOneThatGrantsAtOnce",
     {.fleet = Fleet::kEverything, .rules = {.creation_counts = false}, .made_in_place = false}},
    {"AnOlderCopyInPlaceOfACoordinatorThatIsNotToldFromIt",
     {.fleet = Fleet::kEverything, .identity_has_birth = false}},
    {"RenewalToAnyEnd", {.fleet = Fleet::kEverything, .rules = {.bounded_renewal = false}}, 1970},
    {"ReleaseByAnotherRole", {.fleet = Fleet::kEverything, .rules = {.own_role = false}}},
    {"NodeIdsOfTheCoordinatorsOwnServerLeasedOut",
     {.fleet = Fleet::kEverything, .rules = {.own_nodes = false}}},
    {"NodeIdsThatWereStaticLeasedOutAtOnce",
     {.fleet = Fleet::kEverything,
      .rules = {.added_nodes_wait = false},
      .only_pool_changes = true}},
    {"APoolThatIsOpenedAgainAndGrantsAtOnce",
     {.fleet = Fleet::kEverything, .rules = {.reopening_waits = false}},
     2420},
    {"AFailoverThatLostNothingAfterOneThatDid",
     {.rules = {.lost_nothing_once = false}, .only_failovers = true, .loses_nothing = true}},
    {"AFailoverThatLostSomethingAfterOneThatDidNot",
     {.fleet = Fleet::kEverything,
      .rules = {.lost_nothing_ends = false},
      .only_failovers = true,
      .loses_nothing = true}},
    {"ATakeoverThatNoChangeHasWrittenBeforeOneThatLostNothing",
     {.rules = {.promoted_once = false}, .only_failovers = true, .loses_nothing = true}},

    // The rules of a start
    {"OwnStateTakenForAProofThatNobodyElseUsedTheNodeIds",
     {.fleet = Fleet::kTwoNodeIds, .mutant = Mutant::kOpensOwnStateAtTheWrittenEnd}},
    {"AStartBelowTheWrittenEnd",
     {.fleet = Fleet::kOneDirectory, .mutant = Mutant::kOpensBelowTheWrittenEnd}},
    {"ADiskThatIsRolledBackToAStopBeforeTheLastRun",
     {.fleet = Fleet::kTwoNodeIds, .skew_stays = true, .mutant = Mutant::kIgnoresOtherRuns}},
    {"NodeIdsNewToADirectoryUsedAtOnce",
     {.fleet = Fleet::kEverything,
      .skew_stays = true,
      .mutant = Mutant::kStartsUnknownNodeIdsAtOnce},
     1600},
    {"PartlyKnownNodeIdsTakenForKnown",
     {.fleet = Fleet::kTwoNodeIds, .skew_stays = true, .mutant = Mutant::kTakesOneNodeIdForAll}},
    {"EndsOfOtherRangesThatACopyTakesForItsOwn",
     {.fleet = Fleet::kTwoNodeIds, .skew_stays = true, .mutant = Mutant::kTrustsEveryKnownRange}},
    {"ACopyTakenForTheOriginal",
     {.fleet = Fleet::kTwoNodeIds,
      .skew_stays = true,
      .mutant = Mutant::kTakesCopiesForTheOriginal}},
    // Takes a takeover and a failback within a second: one schedule in some 50,000.
    {"AStopOfAnyTimeTakenForAProof",
     {.fleet = Fleet::kTwoNodeIds,
      .skew_stays = true,
      .mutant = Mutant::kIgnoresTheTimeSinceTheStop},
     8970},
    {"AHoldOffThatRunsWhileTheServerIsAStandby",
     {.fleet = Fleet::kEverything, .mutant = Mutant::kHoldsOffFromTheServersStart}},
    {"AWindowMovedBeforeItsEndIsWritten",
     {.fleet = Fleet::kOneDirectory, .mutant = Mutant::kMovesTheWindowFirst}},
    {"ALeaseOpenedBelowAWrittenEnd",
     {.fleet = Fleet::kOneDirectory, .mutant = Mutant::kOpensLeasesAnywhere}},
    {"AStartBelowTheEndOfALeaseThatWasUsed",
     {.fleet = Fleet::kOneDirectory, .mutant = Mutant::kAnnouncesNoLeases}},
    {"AnUnusedWindowThatTakesBackWhatAFormerOneAnnounced",
     {.fleet = Fleet::kOneDirectory, .mutant = Mutant::kTakesBackWhatAFormerWindowAnnounced},
     3750},

    // The look for coordinators
    {"NodeIdsOfACoordinatorsServerThatOpenWithoutTheLook",
     {.fleet = Fleet::kEverything, .mutant = Mutant::kOpensWithoutTheLook},
     4740},

    // Ranges of node ids
    {"ARangeEnteredBelowItsWrittenEnd",
     {.fleet = Fleet::kOneDirectory, .set_back_far = true, .mutant = Mutant::kChoosesRangesInUse}},
    {"ARangeChosenByAClockThatWasNotSetBack",
     {.fleet = Fleet::kOneDirectory,
      .set_back_far = true,
      .mutant = Mutant::kChoosesByAnotherClock}},
    {"ARangeWhoseEndsAreNotWritten",
     {.fleet = Fleet::kOneDirectory,
      .set_back_far = true,
      .mutant = Mutant::kLeavesRangesUnwritten}},
    {"ARangeEnteredAtSecondsOfWhomThisDirectoryFollowed",
     {.fleet = Fleet::kTwoNodeIds, .set_back_far = true, .mutant = Mutant::kForgetsTheFloor},
     3740},
    {"AStopOfSomeNodeIdsTakenForAProofOfAll",
     {.fleet = Fleet::kTwoNodeIds, .set_back_far = true, .mutant = Mutant::kProvesOneRangeForAll}},

    {"AStopOfTheFirstRangeTakenForAProofOfTheSpareOnes",
     {.fleet = Fleet::kTwoNodeIds,
      .changes_settings = true,
      .set_back_far = true,
      .mutant = Mutant::kProvesByTheFirstRange},
     9400},
    {"ASpareRangeEnteredDuringTheHoldOff",
     {.fleet = Fleet::kOneDirectory,
      .changes_settings = true,
      .set_back_far = true,
      .mutant = Mutant::kEntersRangesDuringTheHoldOff}},
    {"ARangeEnteredBeforeTheSecondsOfItsLastWindow",
     {.fleet = Fleet::kOneDirectory,
      .changes_settings = true,
      .set_back_far = true,
      .mutant = Mutant::kForgetsWhereARangeWasLeft}},
    {"WordsLeftInARangeThatIsLeft",
     {.fleet = Fleet::kOneDirectory,
      .changes_settings = true,
      .set_back_far = true,
      .mutant = Mutant::kLeavesRangesByClosing},
     810},

    // The tolerated difference of clocks, which changes
    {"AHoldOffThatAChangeDoesNotProlong",
     {.fleet = Fleet::kOneDirectory,
      .changes_settings = true,
      .mutant = Mutant::kKeepsTheHoldOffOfTheStart}},
    {"AHoldOffOfALeaseThatAChangeDoesNotProlong",
     {.fleet = Fleet::kEverything,
      .changes_settings = true,
      .mutant = Mutant::kKeepsTheHoldOffOfALease},
     2690},
    {"AFloorThatAChangeDoesNotRaise",
     {.fleet = Fleet::kOneDirectory, .changes_settings = true, .mutant = Mutant::kRaisesNoFloor}},
    {"AStateWithoutTheDifferenceOfItsRun",
     {.fleet = Fleet::kOneDirectory, .changes_settings = true, .mutant = Mutant::kWritesNoSkew}},
    {"AStopWithoutTheDifferenceOfItsRun",
     {.fleet = Fleet::kOneDirectory,
      .changes_settings = true,
      .mutant = Mutant::kStopsWithoutSkew}},

    // What operators must guarantee
    {"NodeIdsTakenOutOfAPoolAndUsedBeforeTheyAreFree",
     {.fleet = Fleet::kEverything, .operation = {.waits_until_free = false}},
     2550},
    {"ACoordinatorMadeWhileItsPredecessorGrants",
     {.fleet = Fleet::kEverything, .operation = {.closes_first = false}}},
    {"NodeIdsGivenUpByACoordinatorsServerThatAreInThePool",
     {.fleet = Fleet::kEverything, .operation = {.takes_own_nodes_out = false}},
     42060},
    {"APoolThatIsNotConfiguredAgainAfterAFailover",
     {.fleet = Fleet::kEverything, .operation = {.configures_again = false}}},
    {"AWordThatNothingWasLostThatIsUntrue",
     {.loses_nothing = true, .operation = {.says_what_is = false}}},
    {"ClocksThatDifferByMore",
     {.fleet = Fleet::kTwoNodeIds, .skew_stays = true, .operation = {.clocks_agree = false}}},

    // The holder's rules
    {"AnUnclearCommitTakenForAGrant", {.mutant = Mutant::kTakesUnclearGrants}},
    {"OneIncarnationForAll", {.mutant = Mutant::kSameIncarnation}},
    {"ALeaseThatIsResumedAfterACrash", {.mutant = Mutant::kResumesLeases}},
    {"WindowOpenedBeforeTheWordsAreStored", {.mutant = Mutant::kOpensFirst}},
    {"WordsLeftInASealedWindow", {.mutant = Mutant::kSealsByClosing}},
    {"SecondsGivenBackThatWereUsed", {.mutant = Mutant::kGivesAllBack}},
    {"SecondsGivenBackThatAFormerWindowUsed",
     {.fleet = Fleet::kOneDirectory, .mutant = Mutant::kGivesBackWhatItUsedBefore}},
    {"SilenceTakenForARenewal", {.mutant = Mutant::kTakesSilenceForARenewal}},
    {"TheOpenLeaseExtendedByARenewalOfTheNext", {.mutant = Mutant::kExtendsAnotherLease}},
    {"ALastSecondTakenForAnEnd", {.mutant = Mutant::kTakesRenewalsForLonger}},
    {"ARenewalThatIsTakenToAnyEnd", {.mutant = Mutant::kTakesAnyRenewal}},
    {"AWindowThatEndsLaterThanTheClockAllows", {.mutant = Mutant::kAnnouncesAnyEnd}},
    {"TheNextLeaseOpenedBeforeTheOpenOneIsOver", {.mutant = Mutant::kOpensTooEarly}},

    // The generator's rules, which the explorer breaks too
    {"StoreForCompareAndSwap", {.mutant = Mutant::kPlainStore}},
};

TEST_P(FleetSimulationFinds, ARuleThatIsLeftOut) {
    Scenario scenario = GetParam().scenario;
    scenario.layout = {kWindowEpochMs, 8, 3, 2};
    ExpectViolation(scenario);
}

INSTANTIATE_TEST_SUITE_P(Leases, FleetSimulationFinds, testing::ValuesIn(kBrokenRules), NameOf);

}  // namespace
}  // namespace randflake::simulation
