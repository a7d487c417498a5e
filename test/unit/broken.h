// Rules of a server that the simulation can break, one at a time, to show that each is needed and
// that it would be noticed.

#ifndef RANDFLAKE_UNIT_BROKEN_H
#define RANDFLAKE_UNIT_BROKEN_H

#include <algorithm>
#include <cstdint>

#include "core/lease/lease_holder.h"
#include "core/window/window_state.h"

namespace randflake::simulation {

enum class Broken : uint8_t {
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

// Those that break a promise which FleetServer looks at itself, long before a number comes twice.
constexpr bool BreaksPromise(Broken broken) {
    switch (broken) {
        case Broken::kEntersRangesDuringTheHoldOff:
        case Broken::kForgetsWhereARangeWasLeft:
        case Broken::kLeavesRangesByClosing:
        case Broken::kKeepsTheHoldOffOfTheStart:
        case Broken::kKeepsTheHoldOffOfALease:
        case Broken::kRaisesNoFloor:
        case Broken::kWritesNoSkew:
        case Broken::kStopsWithoutSkew:
        case Broken::kGivesBackWhatItUsedBefore:
            return true;
        default:
            return false;
    }
}

// The holder, with its rules broken.
class Holder : public LeaseHolder {
public:
    Broken broken = Broken::kNothing;

    // Shared memory was made anew.
    void Resume(const Lease& last) { next_ = last; }

    LeaseNews Renewed(const Layout& layout, UnixSecond known, const LeaseTerms& asked, Second now) {
        const UnixSecond last = known + (broken == Broken::kTakesRenewalsForLonger);
        const LeaseNews news = LeaseHolder::Renewed(
            layout, last, broken == Broken::kTakesAnyRenewal ? kAnyTerms : asked, now);
        if (broken == Broken::kExtendsAnotherLease && open_.id != 0)
            open_.end = std::max(open_.end, newest().end);
        return news;
    }
    LeaseNews Unanswered() {
        if (broken == Broken::kTakesSilenceForARenewal && awaits_ == LeaseRequest::Kind::kRenew &&
            next_.id == 0)
            open_.end = open_.end + 5;
        return LeaseHolder::Unanswered();
    }
    // The next lease becomes the open one before its time.
    Window OpenNext(Second earliest, Second now, Second latest) {
        return LeaseHolder::OpenNext(broken == Broken::kOpensTooEarly ? Second{} : earliest, now,
                                     Latest(latest));
    }
    Window Extended(Window window, Second latest) const {
        return LeaseHolder::Extended(window, Latest(latest));
    }
    LeaseReleases Sealed(Second last) {
        return LeaseHolder::Sealed(broken == Broken::kGivesAllBack ? kNotUsed : last);
    }

private:
    Second Latest(Second latest) const {
        return broken == Broken::kAnnouncesAnyEnd ? kNoSecond : latest;
    }

    static constexpr LeaseTerms kAnyTerms{1000, 0};
};

inline StartPlan OpenAt(StartPlan plan, Second second) {
    plan.state.floor = second;
    plan.opens_at_ms = {};
    return plan;
}

// PlanStart with a rule broken.
inline StartPlan PlanStartBroken(Broken broken, StateError error, const WindowState& found,
                                 const Start& start) {
    StartPlan plan = randflake::PlanStart(error, found, start);
    const bool own = plan.finding == Finding::kOwn;
    const Second end = found.EndFor(start.nodes);
    // A proof without one of its conditions.
    WindowState weakened = found;
    Start other = start;
    switch (broken) {
        case Broken::kOpensOwnStateAtTheWrittenEnd:
            return own && end != Second{} ? OpenAt(plan, end) : plan;
        case Broken::kStartsUnknownNodeIdsAtOnce:
            return own && end == Second{}
                       ? OpenAt(plan, plan.held_off_until - start.skew.largest_ms / 1000)
                       : plan;
        case Broken::kTakesOneNodeIdForAll: {
            const NodeRange& known = found.stop.nodes;
            return own && known.Overlaps(start.nodes) && !known.Covers(start.nodes)
                       ? OpenAt(plan, end)
                       : plan;
        }
        case Broken::kTrustsEveryKnownRange:
            for (uint32_t i = 1; i < found.end_count; i++)
                if (own && found.ends[i].nodes == start.nodes)
                    return OpenAt(plan, end);
            return plan;
        case Broken::kStartsUnderAnySecrets:
            plan.secrets = SecretsChange::kNone;
            return plan;
        case Broken::kProvesOneRangeForAll:
            if (found.end_count > 0 && found.stop.nodes.count > 0)
                weakened.stop.nodes = {0, UINT32_MAX};
            break;
        case Broken::kIgnoresOtherRuns:
            other.last_run = weakened.stop.run;
            break;
        case Broken::kTakesCopiesForTheOriginal:
            other.origin = weakened.origin;
            other.last_run = weakened.stop.run;
            break;
        case Broken::kIgnoresTheTimeSinceTheStop:
            weakened.stop.uptime_ms = other.uptime_ms;
            weakened.stop.wall_ms = other.wall_ms;
            break;
        default:
            return plan;
    }
    return randflake::PlanStart(error, weakened, other).proven ? OpenAt(plan, end) : plan;
}

// PlanReload with a rule broken.
inline ReloadPlan PlanReloadBroken(Broken broken, Reload reload, const WindowState* state) {
    if (broken == Broken::kTakesSecretsOfThePresent)
        reload.skew_ms = -reload.wall_ms.count;
    if (broken == Broken::kForgetsLeases)
        reload.leases_end = {};
    const ReloadPlan plan = randflake::PlanReload(reload, state);
    const bool taken =
        (broken == Broken::kTakesSecretsOfThePast && plan.error == ReloadError::kTooEarly) ||
        (broken == Broken::kReloadsAnything && plan.error == ReloadError::kNotGrown);
    return taken ? ReloadPlan{} : plan;
}

}  // namespace randflake::simulation

#endif
