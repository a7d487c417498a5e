// The simulation of leases with one rule left out at a time. Each must be found out: so the
// simulation is known to fail where it should, and each rule to be needed.

#include "expect_violation.h"

namespace randflake::simulation {
namespace {

constexpr Layout kSmall{kWindowEpochMs, 8, 3, 2};

template <typename Holder = ShippedHolder, typename State = ShippedState>
void ExpectViolation(Scenario scenario, uint64_t first_seed = 1) {
    scenario.layout = scenario.numbers = kSmall;
    ExpectViolationOf<Holder, State>(scenario, first_seed);
}

template <typename Holder = ShippedHolder>
void ExpectViolation(const CoordinatorRules& rules = {}, uint64_t first_seed = 1) {
    ExpectViolation<Holder>(Scenario{.layout = kSmall, .rules = rules}, first_seed);
}

template <typename State = ShippedState>
void ExpectViolationIn(Fleet fleet) {
    ExpectViolation<ShippedHolder, State>(Scenario{.layout = kSmall, .fleet = fleet});
}

void ExpectViolationWith(const CoordinatorRules& rules) {
    ExpectViolation(Scenario{.layout = kSmall, .fleet = Fleet::kEverything, .rules = rules});
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
        26000);
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
    ExpectViolation({.renew_margin = false});
}

TEST(LeaseSimulationFinds, RenewalThatTakesTimeAway) {
    ExpectViolation({.renew_keeps_end = false});
}

TEST(LeaseSimulationFinds, RenewalByAnotherIncarnation) {
    ExpectViolation({.own_incarnation = false});
}

TEST(LeaseSimulationFinds, NoExclusionConstraint) {
    ExpectViolation({.exclusion = false});
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
    ExpectViolationWith({.bounded_renewal = false});
}

TEST(LeaseSimulationFinds, ReleaseByAnotherRole) {
    ExpectViolationWith({.own_role = false});
}

TEST(LeaseSimulationFinds, NodeIdsOfTheCoordinatorsOwnServerLeasedOut) {
    ExpectViolationWith({.own_nodes = false});
}

TEST(LeaseSimulationFinds, NodeIdsThatWereStaticLeasedOutAtOnce) {
    ExpectViolationWith({.added_nodes_wait = false});
}

TEST(LeaseSimulationFinds, APoolThatIsOpenedAgainAndGrantsAtOnce) {
    ExpectViolationWith({.reopening_waits = false});
}

// --- the rules of a start

StartPlan OpenAt(StartPlan plan, uint32_t second) {
    plan.opens_at = second;
    plan.opens_at_ms = 0;
    return plan;
}

struct OpensOwnStateAtTheWrittenEnd : ShippedState {
    static StartPlan PlanStart(StateError error, const WindowState& found, const Start& start) {
        const StartPlan plan = randflake::PlanStart(error, found, start);
        const uint32_t end = found.EndFor(start.nodes);
        return plan.finding == Finding::kOwn && end != 0 ? OpenAt(plan, end) : plan;
    }
};

TEST(LeaseSimulationFinds, OwnStateTakenForAProofThatNobodyElseUsedTheNodeIds) {
    ExpectViolationIn<OpensOwnStateAtTheWrittenEnd>(Fleet::kTwoNodeIds);
}

// Windows that begin anywhere, which the state asserts against.
struct AnnouncesAnyWindow : ShippedState {
    static void Announce(WindowState* state, const NodeRange& nodes, const Window& window) {
        const uint32_t start = std::max(window.start, state->EndFor(nodes));
        state->Announce(nodes, Window{start, std::max(window.end, start + 1)});
    }
};

struct OpensBelowTheWrittenEnd : AnnouncesAnyWindow {
    static StartPlan PlanStart(StateError error, const WindowState& found, const Start& start) {
        StartPlan plan = randflake::PlanStart(error, found, start);
        plan.opens_at = plan.proven ? 0 : plan.held_off;
        return plan;
    }
};

TEST(LeaseSimulationFinds, AStartBelowTheWrittenEnd) {
    ExpectViolationIn<OpensBelowTheWrittenEnd>(Fleet::kOneDirectory);
}

// A proof without one of its conditions.
template <typename Weaken>
StartPlan PlanWith(Weaken&& weaken, StateError error, const WindowState& found,
                   const Start& start) {
    WindowState weakened = found;
    Start other = start;
    weaken(&weakened, &other);
    const StartPlan plan = randflake::PlanStart(error, found, start);
    return randflake::PlanStart(error, weakened, other).proven
               ? OpenAt(plan, found.EndFor(start.nodes))
               : plan;
}

struct IgnoresOtherRuns : ShippedState {
    static StartPlan PlanStart(StateError error, const WindowState& found, const Start& start) {
        return PlanWith([](WindowState* state, Start* to) { to->last_run = state->stop.run; },
                        error, found, start);
    }
};

TEST(LeaseSimulationFinds, ADiskThatIsRolledBackToAStopBeforeTheLastRun) {
    ExpectViolationIn<IgnoresOtherRuns>(Fleet::kTwoNodeIds);
}

struct StartsUnknownNodeIdsAtOnce : ShippedState {
    static StartPlan PlanStart(StateError error, const WindowState& found, const Start& start) {
        const StartPlan plan = randflake::PlanStart(error, found, start);
        return plan.finding == Finding::kOwn && found.EndFor(start.nodes) == 0
                   ? OpenAt(plan, plan.held_off - start.skew.largest_ms / 1000)
                   : plan;
    }
};

TEST(LeaseSimulationFinds, NodeIdsNewToADirectoryUsedAtOnce) {
    ExpectViolationIn<StartsUnknownNodeIdsAtOnce>(Fleet::kEverything);
}

struct TakesOneNodeIdForAll : ShippedState {
    static StartPlan PlanStart(StateError error, const WindowState& found, const Start& start) {
        const StartPlan plan = randflake::PlanStart(error, found, start);
        const NodeRange& known = found.ends[0].nodes;
        return plan.finding == Finding::kOwn && known.Overlaps(start.nodes) &&
                       !known.Covers(start.nodes)
                   ? OpenAt(plan, found.EndFor(start.nodes))
                   : plan;
    }
};

TEST(LeaseSimulationFinds, PartlyKnownNodeIdsTakenForKnown) {
    ExpectViolationIn<TakesOneNodeIdForAll>(Fleet::kTwoNodeIds);
}

struct TrustsEveryKnownRange : ShippedState {
    static StartPlan PlanStart(StateError error, const WindowState& found, const Start& start) {
        const StartPlan plan = randflake::PlanStart(error, found, start);
        for (uint32_t i = 1; i < found.end_count; i++)
            if (plan.finding == Finding::kOwn && found.ends[i].nodes == start.nodes)
                return OpenAt(plan, found.EndFor(start.nodes));
        return plan;
    }
};

TEST(LeaseSimulationFinds, EndsOfOtherRangesThatACopyTakesForItsOwn) {
    ExpectViolationIn<TrustsEveryKnownRange>(Fleet::kTwoNodeIds);
}

struct TakesCopiesForTheOriginal : ShippedState {
    static StartPlan PlanStart(StateError error, const WindowState& found, const Start& start) {
        return PlanWith(
            [](WindowState* state, Start* to) {
                to->origin = state->origin;
                to->last_run = state->stop.run;
            },
            error, found, start);
    }
};

TEST(LeaseSimulationFinds, ACopyTakenForTheOriginal) {
    ExpectViolationIn<TakesCopiesForTheOriginal>(Fleet::kTwoNodeIds);
}

struct IgnoresTheTimeSinceTheStop : ShippedState {
    static StartPlan PlanStart(StateError error, const WindowState& found, const Start& start) {
        return PlanWith(
            [](WindowState* state, Start* to) {
                state->stop.at_ms = to->at_ms;
                state->stop.clock_ms = to->clock_ms;
            },
            error, found, start);
    }
};

TEST(LeaseSimulationFinds, AStopOfAnyTimeTakenForAProof) {
    ExpectViolationIn<IgnoresTheTimeSinceTheStop>(Fleet::kTwoNodeIds);
}

struct ComparesTheStopWithTheSettingOfNow : ShippedState {
    static StartPlan PlanStart(StateError error, const WindowState& found, const Start& start) {
        return PlanWith([](WindowState* state, Start* to) { state->skew = to->skew; }, error, found,
                        start);
    }
};

TEST(LeaseSimulationFinds, AStopThatIsProvenByATolerableDifferenceThatWasRaisedSince) {
    ExpectViolationIn<ComparesTheStopWithTheSettingOfNow>(Fleet::kTwoNodeIds);
}

struct HoldsOffFromTheServersStart : ShippedState {
    static void SetTime(const Moment& started, const Moment& now, bool, Start* start) {
        randflake::SetTime(started, now, false, start);
    }
};

TEST(LeaseSimulationFinds, AHoldOffThatRunsWhileTheServerIsAStandby) {
    ExpectViolationIn<HoldsOffFromTheServersStart>(Fleet::kEverything);
}

struct MovesTheWindowFirst : ShippedState {
    static constexpr bool kWritesFirst = false;
};

TEST(LeaseSimulationFinds, AWindowMovedBeforeItsEndIsWritten) {
    ExpectViolationIn<MovesTheWindowFirst>(Fleet::kOneDirectory);
}

struct OpensLeasesAnywhere : AnnouncesAnyWindow {
    static uint32_t LeaseOpensAt(StateError, const WindowState&, const NodeRange&, uint32_t) {
        return 0;
    }
};

TEST(LeaseSimulationFinds, ALeaseOpenedBelowAWrittenEnd) {
    ExpectViolationIn<OpensLeasesAnywhere>(Fleet::kOneDirectory);
}

struct AnnouncesNoLeases : ShippedState {
    static constexpr bool kAnnouncesLeases = false;
};

TEST(LeaseSimulationFinds, AStartBelowTheEndOfALeaseThatWasUsed) {
    ExpectViolationIn<AnnouncesNoLeases>(Fleet::kOneDirectory);
}

struct TakesBackWhatAFormerWindowAnnounced : ShippedState {
    static void TakeBack(WindowState* state, uint32_t end) {
        // What lease_seal() wrote when nothing was used: the end of what the lease had before.
        state->end_before = 0;
        state->TakeBack(end);
    }
};

TEST(LeaseSimulationFinds, AnUnusedWindowThatTakesBackWhatAFormerOneAnnounced) {
    ExpectViolationIn<TakesBackWhatAFormerWindowAnnounced>(Fleet::kOneDirectory);
}

// --- what operators must guarantee

void ExpectViolationBy(const Operation& operation) {
    ExpectViolation(
        Scenario{.layout = kSmall, .fleet = Fleet::kEverything, .operation = operation});
}

TEST(LeaseSimulationFinds, NodeIdsTakenOutOfAPoolAndUsedBeforeTheyAreFree) {
    ExpectViolationBy({.waits_until_free = false});
}

TEST(LeaseSimulationFinds, ACoordinatorMadeWhileItsPredecessorGrants) {
    ExpectViolationBy({.closes_first = false});
}

TEST(LeaseSimulationFinds, NodeIdsGivenUpByACoordinatorsServerThatAreInThePool) {
    ExpectViolationBy({.takes_own_nodes_out = false});
}

TEST(LeaseSimulationFinds, APoolThatIsNotConfiguredAgainAfterAFailover) {
    ExpectViolationBy({.configures_again = false});
}

TEST(LeaseSimulationFinds, ClocksThatDifferByMore) {
    ExpectViolationBy({.clocks_agree = false});
}

// --- the holder's rules

struct TakesUnclearGrants : ShippedHolder {
    static constexpr bool kUnclearIsNoGrant = false;
};

TEST(LeaseSimulationFinds, AnUnclearCommitTakenForAGrant) {
    ExpectViolation<TakesUnclearGrants>();
}

struct SameIncarnation : ShippedHolder {
    static constexpr bool kFreshIncarnation = false;
};

TEST(LeaseSimulationFinds, OneIncarnationForAll) {
    ExpectViolation<SameIncarnation>();
}

struct ResumesLeases : ShippedHolder {
    void Forget() {
        const Lease last = open_;
        ShippedHolder::Forget();
        next_ = last;
    }
};

TEST(LeaseSimulationFinds, ALeaseThatIsResumedAfterACrash) {
    ExpectViolation<ResumesLeases>();
}

uint64_t Before(const Layout& layout, Window window, uint64_t node_id) {
    uint64_t word = 0;
    WordBefore(layout, window, node_id, &word);
    return word;
}

struct OpensFirst : ShippedHolder {
    static bool ChangeWindow(const Layout& layout, auto slot, uint32_t slots, uint64_t first_node,
                             Cell& window, Window next) {
        window.store(next.ToWord());
        for (uint32_t i = 0; i < slots; i++)
            slot(i).store(Before(layout, next, first_node + i));
        return true;
    }
};

TEST(LeaseSimulationFinds, WindowOpenedBeforeTheWordsAreStored) {
    ExpectViolation<OpensFirst>();
}

struct SealsByClosing : ShippedHolder {
    static int64_t SealWindow(const Layout& layout, auto slot, uint32_t slots, Cell& window) {
        const Window old = Window::FromWord(window.load());
        window.store(Window{old.end, old.end}.ToWord());
        int64_t last = int64_t{old.start} - 1;
        for (uint32_t i = 0; i < slots; i++)
            last = std::max(last, static_cast<int64_t>(layout.Unpack(slot(i).load()).timestamp));
        return last >= int64_t{old.start} ? last : -1;
    }
};

TEST(LeaseSimulationFinds, WordsLeftInASealedWindow) {
    ExpectViolation<SealsByClosing>();
}

struct GivesAllBack : ShippedHolder {
    LeaseReleases Sealed(int64_t) { return ShippedHolder::Sealed(-1); }
};

struct TakesAllBack : ShippedState {
    static void TakeBack(WindowState* state, uint32_t) { state->TakeBack(0); }
};

TEST(LeaseSimulationFinds, SecondsGivenBackThatWereUsed) {
    ExpectViolation<GivesAllBack, TakesAllBack>(Scenario{.layout = kSmall});
}

struct TakesSilenceForARenewal : ShippedHolder {
    LeaseNews Unanswered() {
        if (awaits_ == LeaseRequest::Kind::kRenew && next_.id == 0)
            open_.end += 5;
        return ShippedHolder::Unanswered();
    }
};

TEST(LeaseSimulationFinds, SilenceTakenForARenewal) {
    ExpectViolation<TakesSilenceForARenewal>();
}

struct ExtendsAnotherLease : ShippedHolder {
    LeaseNews Renewed(const Layout& layout, int64_t last_unix_second, int64_t now) {
        const LeaseNews news = ShippedHolder::Renewed(layout, last_unix_second, now);
        if (open_.id != 0)
            open_.end = std::max(open_.end, newest().end);
        return news;
    }
};

TEST(LeaseSimulationFinds, TheOpenLeaseExtendedByARenewalOfTheNext) {
    ExpectViolation<ExtendsAnotherLease>();
}

struct TakesRenewalsForLonger : ShippedHolder {
    LeaseNews Renewed(const Layout& layout, int64_t last_unix_second, int64_t now) {
        return ShippedHolder::Renewed(layout, last_unix_second + 1, now);
    }
};

TEST(LeaseSimulationFinds, ALastSecondTakenForAnEnd) {
    ExpectViolation<TakesRenewalsForLonger>();
}

struct OpensTooEarly : ShippedHolder {
    // The next lease becomes the open one before its time.
    Window OpenNext(int64_t, int64_t now) { return ShippedHolder::OpenNext(0, now); }
};

TEST(LeaseSimulationFinds, TheNextLeaseOpenedBeforeTheOpenOneIsOver) {
    ExpectViolation<OpensTooEarly, AnnouncesAnyWindow>(Scenario{.layout = kSmall});
}

// --- the generator's rules, which the explorer breaks too

struct PlainStore : ShippedHolder {
    static Run Reserve(const Layout& layout, Cell& slot, const Cell& window, uint32_t wanted,
                       auto clock) {
        const uint64_t word = slot.load();
        const Run run = NextRun(layout, word, clock(), Window::FromWord(window.load()), wanted);
        if (run.outcome == Outcome::kReserved)
            slot.store(run.first + run.count - 1);
        return run;
    }
};

TEST(LeaseSimulationFinds, StoreForCompareAndSwap) {
    ExpectViolation<PlainStore>();
}

}  // namespace
}  // namespace randflake::simulation
