// The simulation of leases with one rule left out at a time. Each must be found out: so the
// simulation is known to fail where it should, and each rule to be needed.

#include "expect_violation.h"

namespace randflake::simulation {
namespace {

constexpr Layout kSmall{kWindowEpochMs, 8, 3, 2};

void ExpectViolation(Scenario scenario, uint64_t first_seed = 1) {
    scenario.layout = scenario.numbers = kSmall;
    ExpectViolationOf(scenario, first_seed);
}

void ExpectViolation(const CoordinatorRules& rules, uint64_t first_seed = 1) {
    ExpectViolation(Scenario{.layout = kSmall, .rules = rules}, first_seed);
}

void ExpectViolation(Broken broken) {
    ExpectViolation(Scenario{.layout = kSmall, .broken = broken});
}

void ExpectViolationIn(Fleet fleet, Broken broken) {
    ExpectViolation(Scenario{.layout = kSmall, .fleet = fleet, .broken = broken});
}

void ExpectViolationWith(const CoordinatorRules& rules, uint64_t first_seed = 1) {
    ExpectViolation(Scenario{.layout = kSmall, .fleet = Fleet::kEverything, .rules = rules},
                    first_seed);
}

// --- the coordinator's rules

TEST(LeaseSimulationFinds, LeasesThatStartBelowTheMark) {
    ExpectViolation({.start_from_mark = false});
}

TEST(LeaseSimulationFinds, LeasesThatAreGrantedAheadOfTheMark) {
    // Takes a failover that loses a lease, and then a restore that brings it back: one schedule in
    // 10,000.
    ExpectViolation(
        Scenario{.layout = kSmall, .rules = {.wait_for_mark = false}, .only_failovers = true},
        33000);
}

TEST(LeaseSimulationFinds, AMarkThatAPurgeDoesNotRaise) {
    ExpectViolation({.purge_raises_mark = false});
}

TEST(LeaseSimulationFinds, NoHoldOffBeforeTheFirstKnownGrant) {
    ExpectViolation({.knows_where_made = false});
}

TEST(LeaseSimulationFinds, NoHoldOffByAnotherCoordinator) {
    ExpectViolation({.hold_off = false});
}

TEST(LeaseSimulationFinds, AHoldOffThatTakesClocksForEqual) {
    ExpectViolation({.hold_off_for_skew = false, .hold_off_for_renewals = false});
}

TEST(LeaseSimulationFinds, LeasesThatAreLongerThanTheHoldOff) {
    ExpectViolation({.longest_lease = false});
}

TEST(LeaseSimulationFinds, RenewalOfALeaseThatHasEnded) {
    ExpectViolation({.renew_before_end = false});
}

TEST(LeaseSimulationFinds, RenewalThatTakesClocksForEqual) {
    ExpectViolation({.renew_margin = false}, 2060);
}

TEST(LeaseSimulationFinds, RenewalThatTakesTimeAway) {
    ExpectViolation({.renew_keeps_end = false});
}

TEST(LeaseSimulationFinds, RenewalByAnotherIncarnation) {
    ExpectViolation({.own_incarnation = false}, 1000);
}

TEST(LeaseSimulationFinds, NoExclusionConstraint) {
    ExpectViolation({.exclusion = false}, 2600);
}

// --- coordinators that follow each other, and servers with static node ids

TEST(LeaseSimulationFinds, ACoordinatorMadeAnewInPlaceOfALostOneThatGrantsAtOnce) {
    ExpectViolation({.creation_counts = false});
}

TEST(LeaseSimulationFinds, ACoordinatorMadeBesideAClosedOneThatGrantsAtOnce) {
    ExpectViolation(Scenario{.layout = kSmall,
                             .fleet = Fleet::kEverything,
                             .rules = {.creation_counts = false},
                             .made_in_place = false});
}

TEST(LeaseSimulationFinds, AnOlderCopyInPlaceOfACoordinatorThatIsNotToldFromIt) {
    ExpectViolation(
        Scenario{.layout = kSmall, .fleet = Fleet::kEverything, .identity_has_birth = false});
}

TEST(LeaseSimulationFinds, RenewalToAnyEnd) {
    ExpectViolationWith({.bounded_renewal = false}, 19600);
}

TEST(LeaseSimulationFinds, ReleaseByAnotherRole) {
    ExpectViolationWith({.own_role = false});
}

TEST(LeaseSimulationFinds, NodeIdsOfTheCoordinatorsOwnServerLeasedOut) {
    ExpectViolationWith({.own_nodes = false});
}

TEST(LeaseSimulationFinds, NodeIdsThatWereStaticLeasedOutAtOnce) {
    ExpectViolation(Scenario{.layout = kSmall,
                             .fleet = Fleet::kEverything,
                             .rules = {.added_nodes_wait = false},
                             .only_pool_changes = true});
}

TEST(LeaseSimulationFinds, APoolThatIsOpenedAgainAndGrantsAtOnce) {
    ExpectViolationWith({.reopening_waits = false});
}

// --- the rules of a start

TEST(LeaseSimulationFinds, OwnStateTakenForAProofThatNobodyElseUsedTheNodeIds) {
    ExpectViolationIn(Fleet::kTwoNodeIds, Broken::kOpensOwnStateAtTheWrittenEnd);
}

TEST(LeaseSimulationFinds, AStartBelowTheWrittenEnd) {
    ExpectViolationIn(Fleet::kOneDirectory, Broken::kOpensBelowTheWrittenEnd);
}

TEST(LeaseSimulationFinds, ADiskThatIsRolledBackToAStopBeforeTheLastRun) {
    ExpectViolationIn(Fleet::kTwoNodeIds, Broken::kIgnoresOtherRuns);
}

TEST(LeaseSimulationFinds, NodeIdsNewToADirectoryUsedAtOnce) {
    ExpectViolationIn(Fleet::kEverything, Broken::kStartsUnknownNodeIdsAtOnce);
}

TEST(LeaseSimulationFinds, PartlyKnownNodeIdsTakenForKnown) {
    ExpectViolationIn(Fleet::kTwoNodeIds, Broken::kTakesOneNodeIdForAll);
}

TEST(LeaseSimulationFinds, EndsOfOtherRangesThatACopyTakesForItsOwn) {
    ExpectViolationIn(Fleet::kTwoNodeIds, Broken::kTrustsEveryKnownRange);
}

TEST(LeaseSimulationFinds, ACopyTakenForTheOriginal) {
    ExpectViolationIn(Fleet::kTwoNodeIds, Broken::kTakesCopiesForTheOriginal);
}

TEST(LeaseSimulationFinds, AStopOfAnyTimeTakenForAProof) {
    ExpectViolationIn(Fleet::kTwoNodeIds, Broken::kIgnoresTheTimeSinceTheStop);
}

TEST(LeaseSimulationFinds, AHoldOffThatRunsWhileTheServerIsAStandby) {
    ExpectViolationIn(Fleet::kEverything, Broken::kHoldsOffFromTheServersStart);
}

TEST(LeaseSimulationFinds, AWindowMovedBeforeItsEndIsWritten) {
    ExpectViolationIn(Fleet::kOneDirectory, Broken::kMovesTheWindowFirst);
}

TEST(LeaseSimulationFinds, ALeaseOpenedBelowAWrittenEnd) {
    ExpectViolationIn(Fleet::kOneDirectory, Broken::kOpensLeasesAnywhere);
}

TEST(LeaseSimulationFinds, AStartBelowTheEndOfALeaseThatWasUsed) {
    ExpectViolationIn(Fleet::kOneDirectory, Broken::kAnnouncesNoLeases);
}

TEST(LeaseSimulationFinds, AnUnusedWindowThatTakesBackWhatAFormerOneAnnounced) {
    ExpectViolationIn(Fleet::kOneDirectory, Broken::kTakesBackWhatAFormerWindowAnnounced);
}

// --- ranges of node ids

void ExpectViolationOfRanges(Fleet fleet, Broken broken) {
    ExpectViolation(
        Scenario{.layout = kSmall, .fleet = fleet, .set_back_far = true, .broken = broken});
}

TEST(LeaseSimulationFinds, ARangeEnteredBelowItsWrittenEnd) {
    ExpectViolationOfRanges(Fleet::kOneDirectory, Broken::kChoosesRangesInUse);
}

TEST(LeaseSimulationFinds, ARangeChosenByAClockThatWasNotSetBack) {
    ExpectViolationOfRanges(Fleet::kOneDirectory, Broken::kChoosesByAnotherClock);
}

TEST(LeaseSimulationFinds, ARangeWhoseEndsAreNotWritten) {
    ExpectViolationOfRanges(Fleet::kOneDirectory, Broken::kLeavesRangesUnwritten);
}

TEST(LeaseSimulationFinds, ARangeEnteredAtSecondsOfWhomThisDirectoryFollowed) {
    ExpectViolationOfRanges(Fleet::kTwoNodeIds, Broken::kForgetsTheFloor);
}

TEST(LeaseSimulationFinds, AStopOfSomeNodeIdsTakenForAProofOfAll) {
    ExpectViolationOfRanges(Fleet::kTwoNodeIds, Broken::kProvesOneRangeForAll);
}

// --- what operators must guarantee

void ExpectViolationBy(const Operation& operation, uint64_t first_seed = 1) {
    ExpectViolation(Scenario{.layout = kSmall, .fleet = Fleet::kEverything, .operation = operation},
                    first_seed);
}

TEST(LeaseSimulationFinds, NodeIdsTakenOutOfAPoolAndUsedBeforeTheyAreFree) {
    ExpectViolationBy({.waits_until_free = false});
}

TEST(LeaseSimulationFinds, ACoordinatorMadeWhileItsPredecessorGrants) {
    ExpectViolationBy({.closes_first = false});
}

TEST(LeaseSimulationFinds, NodeIdsGivenUpByACoordinatorsServerThatAreInThePool) {
    ExpectViolationBy({.takes_own_nodes_out = false}, 32000);
}

TEST(LeaseSimulationFinds, APoolThatIsNotConfiguredAgainAfterAFailover) {
    ExpectViolationBy({.configures_again = false});
}

TEST(LeaseSimulationFinds, ClocksThatDifferByMore) {
    ExpectViolationBy({.clocks_agree = false});
}

// --- the holder's rules

TEST(LeaseSimulationFinds, AnUnclearCommitTakenForAGrant) {
    ExpectViolation(Broken::kTakesUnclearGrants);
}

TEST(LeaseSimulationFinds, OneIncarnationForAll) {
    ExpectViolation(Broken::kSameIncarnation);
}

TEST(LeaseSimulationFinds, ALeaseThatIsResumedAfterACrash) {
    ExpectViolation(Broken::kResumesLeases);
}

TEST(LeaseSimulationFinds, WindowOpenedBeforeTheWordsAreStored) {
    ExpectViolation(Broken::kOpensFirst);
}

TEST(LeaseSimulationFinds, WordsLeftInASealedWindow) {
    ExpectViolation(Broken::kSealsByClosing);
}

TEST(LeaseSimulationFinds, SecondsGivenBackThatWereUsed) {
    ExpectViolation(Broken::kGivesAllBack);
}

TEST(LeaseSimulationFinds, SilenceTakenForARenewal) {
    ExpectViolation(Broken::kTakesSilenceForARenewal);
}

TEST(LeaseSimulationFinds, TheOpenLeaseExtendedByARenewalOfTheNext) {
    ExpectViolation(Broken::kExtendsAnotherLease);
}

TEST(LeaseSimulationFinds, ALastSecondTakenForAnEnd) {
    ExpectViolation(Broken::kTakesRenewalsForLonger);
}

TEST(LeaseSimulationFinds, AGrantThatIsTakenToAnyEnd) {
    ExpectViolation(Broken::kTakesAnyGrant);
}

TEST(LeaseSimulationFinds, ARenewalThatIsTakenToAnyEnd) {
    ExpectViolation(Broken::kTakesAnyRenewal);
}

TEST(LeaseSimulationFinds, AWindowThatEndsLaterThanTheClockAllows) {
    ExpectViolation(Broken::kAnnouncesAnyEnd);
}

TEST(LeaseSimulationFinds, TheNextLeaseOpenedBeforeTheOpenOneIsOver) {
    ExpectViolation(Broken::kOpensTooEarly);
}

// --- the generator's rules, which the explorer breaks too

TEST(LeaseSimulationFinds, StoreForCompareAndSwap) {
    ExpectViolation(Broken::kPlainStore);
}

}  // namespace
}  // namespace randflake::simulation
