// Rules of a server that the simulation can break, one at a time, to show that each is needed and
// that it would be noticed.

#ifndef RANDFLAKE_UNIT_MUTANTS_H
#define RANDFLAKE_UNIT_MUTANTS_H

#include <algorithm>
#include <cstdint>

#include "core/lease/lease_holder.h"
#include "core/window/window_state.h"

namespace randflake::simulation {

enum class Mutant : uint8_t {
    kNothing,

    // --- starts: PlanStart, SetTime
    kOpensOwnStateAtTheWrittenEnd,
    kOpensBelowTheWrittenEnd,
    kIgnoresOtherRuns,
    kStartsUnknownNodeIdsAtOnce,
    kTakesOneNodeIdForAll,
    kTrustsEveryKnownRange,
    kTakesCopiesForTheOriginal,
    kIgnoresTheTimeSinceTheStop,
    kHoldsOffFromTheServersStart,
    kStartsUnderAnySecrets,

    // --- the look for coordinators
    kOpensWithoutTheLook,

    // --- ranges of node ids: ChooseRange, and the floor of PlanStart
    kChoosesRangesInUse,
    kChoosesByAnotherClock,
    kForgetsTheFloor,
    kProvesOneRangeForAll,
    kLeavesRangesUnwritten,
    kProvesByTheFirstRange,
    kEntersRangesDuringTheHoldOff,
    kForgetsWhereARangeWasLeft,
    kLeavesRangesByClosing,

    // --- the tolerated difference of clocks, which changes
    kKeepsTheHoldOffOfTheStart,
    kKeepsTheHoldOffOfALease,
    kRaisesNoFloor,
    kWritesNoSkew,
    kStopsWithoutSkew,

    // --- the disk
    kMovesTheWindowFirst,  // what is written gets there when the window has moved
    kAnnouncesNoLeases,
    kForgetsAddedSecrets,
    kTakesBackWhatAFormerWindowAnnounced,

    // --- leases
    kOpensLeasesAnywhere,
    kTakesUnclearGrants,
    kSameIncarnation,
    kResumesLeases,
    kGivesAllBack,
    kGivesBackWhatItUsedBefore,
    kTakesSilenceForARenewal,
    kExtendsAnotherLease,
    kTakesRenewalsForLonger,
    kTakesAnyRenewal,
    kAnnouncesAnyEnd,
    kOpensTooEarly,
    kHearsOldAnswers,

    // --- slots and window
    kOpensFirst,
    kSealsByClosing,
    kPlainStore,

    // --- secrets
    kTakesSecretsOfThePast,
    kTakesSecretsOfThePresent,
    kForgetsLeases,
    kReloadsAnything,
    kReloadsWithoutTheLock,
    kSkipsNothing,
    kSkipsByTheNumbersInterval,
    kEncryptsByTheClock,
    kKeepsTheSessionsSecrets,
    kLooksBeforeItReserves,
};

// Those that break a promise which SimulatedServer looks at itself, long before a number comes
// twice.
constexpr bool BreaksPromise(Mutant mutant) {
    switch (mutant) {
        case Mutant::kEntersRangesDuringTheHoldOff:
        case Mutant::kForgetsWhereARangeWasLeft:
        case Mutant::kLeavesRangesByClosing:
        case Mutant::kKeepsTheHoldOffOfTheStart:
        case Mutant::kKeepsTheHoldOffOfALease:
        case Mutant::kRaisesNoFloor:
        case Mutant::kWritesNoSkew:
        case Mutant::kStopsWithoutSkew:
        case Mutant::kGivesBackWhatItUsedBefore:
            return true;
        default:
            return false;
    }
}

// The holder, with its rules broken.
class Holder : public LeaseHolder {
public:
    Mutant mutant = Mutant::kNothing;

    // Shared memory was made anew.
    void Resume(const Lease& last) { next_ = last; }

    LeaseOutcome Renewed(const Layout& layout, UnixSecond known, const LeaseTerms& asked,
                         Second now) {
        const UnixSecond last = known + (mutant == Mutant::kTakesRenewalsForLonger);
        const LeaseOutcome outcome = LeaseHolder::Renewed(
            layout, last, mutant == Mutant::kTakesAnyRenewal ? kAnyTerms : asked, now);
        if (mutant == Mutant::kExtendsAnotherLease && open_.id != 0)
            open_.end = std::max(open_.end, newest().end);
        return outcome;
    }
    LeaseOutcome Unanswered() {
        if (mutant == Mutant::kTakesSilenceForARenewal && awaits_ == LeaseRequest::Kind::kRenew &&
            next_.id == 0)
            open_.end = open_.end + 5;
        return LeaseHolder::Unanswered();
    }
    // The next lease becomes the open one before its time.
    Window OpenNext(Second earliest, Second now, Second latest) {
        return LeaseHolder::OpenNext(mutant == Mutant::kOpensTooEarly ? Second{} : earliest, now,
                                     Latest(latest));
    }
    Window Extended(Window window, Second latest) const {
        return LeaseHolder::Extended(window, Latest(latest));
    }
    LeaseReleases Sealed(Second last) {
        return LeaseHolder::Sealed(mutant == Mutant::kGivesAllBack ? kNotUsed : last);
    }

private:
    Second Latest(Second latest) const {
        return mutant == Mutant::kAnnouncesAnyEnd ? kNoSecond : latest;
    }

    static constexpr LeaseTerms kAnyTerms{1000, 0};
};

inline StartPlan OpenAt(StartPlan plan, Second second) {
    plan.state.floor = second;
    plan.opens_at_ms = {};
    return plan;
}

// PlanStart with a rule broken.
inline StartPlan PlanStartBroken(Mutant mutant, StateError error, const WindowState& found,
                                 const Start& start) {
    StartPlan plan = randflake::PlanStart(error, found, start);
    const bool own = plan.finding == Finding::kOwn;
    const Second end = found.EndFor(start.nodes);
    // A proof without one of its conditions.
    WindowState weakened = found;
    Start other = start;
    switch (mutant) {
        case Mutant::kOpensOwnStateAtTheWrittenEnd:
            return own && end != Second{} ? OpenAt(plan, end) : plan;
        case Mutant::kStartsUnknownNodeIdsAtOnce:
            return own && end == Second{}
                       ? OpenAt(plan, plan.held_off_until - start.skew.largest_ms / 1000)
                       : plan;
        case Mutant::kTakesOneNodeIdForAll: {
            const NodeRange& known = found.stop.nodes;
            return own && known.Overlaps(start.nodes) && !known.Covers(start.nodes)
                       ? OpenAt(plan, end)
                       : plan;
        }
        case Mutant::kTrustsEveryKnownRange:
            for (uint32_t i = 1; i < found.end_count; i++)
                if (own && found.ends[i].nodes == start.nodes)
                    return OpenAt(plan, end);
            return plan;
        case Mutant::kStartsUnderAnySecrets:
            plan.secrets = SecretsChange::kNone;
            return plan;
        case Mutant::kProvesOneRangeForAll:
            if (found.end_count > 0 && found.stop.nodes.count > 0)
                weakened.stop.nodes = {0, UINT32_MAX};
            break;
        case Mutant::kIgnoresOtherRuns:
            other.last_run = weakened.stop.run;
            break;
        case Mutant::kTakesCopiesForTheOriginal:
            other.origin = weakened.origin;
            other.last_run = weakened.stop.run;
            break;
        case Mutant::kIgnoresTheTimeSinceTheStop:
            weakened.stop.uptime_ms = other.uptime_ms;
            weakened.stop.wall_ms = other.wall_ms;
            break;
        default:
            return plan;
    }
    return randflake::PlanStart(error, weakened, other).proven ? OpenAt(plan, end) : plan;
}

// PlanReload with a rule broken.
inline ReloadPlan PlanReloadBroken(Mutant mutant, Reload reload, const WindowState* state) {
    if (mutant == Mutant::kTakesSecretsOfThePresent)
        reload.skew = -reload.wall_ms.count;
    if (mutant == Mutant::kForgetsLeases)
        reload.leases_end = {};
    const ReloadPlan plan = randflake::PlanReload(reload, state);
    const bool taken =
        (mutant == Mutant::kTakesSecretsOfThePast && plan.error == ReloadError::kTooEarly) ||
        (mutant == Mutant::kReloadsAnything && plan.error == ReloadError::kNotGrown);
    return taken ? ReloadPlan{} : plan;
}

}  // namespace randflake::simulation

#endif
