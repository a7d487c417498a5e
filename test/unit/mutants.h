// Lists the server's rules that the simulation breaks one at a time. The simulation must find a
// violation for each broken rule, which shows that the server needs the rule.

#pragma once

#include <algorithm>
#include <cstdint>

#include "core/lease/lease_holder.h"
#include "core/window/reload_plan.h"
#include "core/window/resumption.h"

namespace randflake::simulation {

// Each mutant stands with the scenario of fleet_mutants_test.cpp that finds it. SimulatedServer's
// own checks find those of RANDFLAKE_PROMISES before any number is used twice.
// clang-format off
#define RANDFLAKE_MUTANTS(MUTANT)                                                                 \
    MUTANT(kPair, kOpensOwnStateAtTheWrittenEnd) MUTANT(kOne, kOpensBelowTheWrittenEnd)           \
    MUTANT(kSteadyPair, kIgnoresOtherRuns) MUTANT(kPromptStarts, kStartsUnknownNodeIdsAtOnce)     \
    MUTANT(kSteadyPair, kTakesOneNodeIdForAll) MUTANT(kSteadyPair, kTrustsEveryKnownRange)        \
    MUTANT(kSteadyPair, kTakesCopiesForTheOriginal)                                               \
    MUTANT(kHandovers, kIgnoresTheTimeSinceTheStop) MUTANT(kFleet, kHoldsOffFromTheServersStart)  \
    MUTANT(kSecretPair, kStartsUnderAnySecrets) MUTANT(kFleet, kOpensWithoutTheLook)              \
    MUTANT(kSetBack, kChoosesRangesInUse) MUTANT(kSetBack, kChoosesByAnotherClock)                \
    MUTANT(kHandovers, kForgetsTheFloor) MUTANT(kSetBackPair, kProvesOneRangeForAll)              \
    MUTANT(kSetBack, kLeavesRangesUnwritten) MUTANT(kHandovers, kProvesByTheFirstRange)           \
    MUTANT(kOne, kMovesTheWindowFirst) MUTANT(kOne, kRecordsNoLeases)                             \
    MUTANT(kWrongFiles, kForgetsAddedSecrets) MUTANT(kOne, kTakesBackWhatAFormerWindowRecorded)   \
    MUTANT(kOne, kOpensLeasesAnywhere) MUTANT(kLeasing, kTakesUnclearGrants)                      \
    MUTANT(kLeasing, kSameIncarnation) MUTANT(kLeasing, kGivesAllBack)                            \
    MUTANT(kLeasing, kTakesSilenceForARenewal) MUTANT(kLeasing, kExtendsAnotherLease)             \
    MUTANT(kLeasing, kTakesRenewalsForLonger) MUTANT(kLeasing, kTakesAnyRenewal)                  \
    MUTANT(kLeasing, kRecordsAnyEnd) MUTANT(kLeasing, kOpensTooEarly)                             \
    MUTANT(kSecretLeases, kHearsOldAnswers) MUTANT(kLeasing, kResumesAfterAnyCrash)               \
    MUTANT(kLeasing, kResumesInCopies) MUTANT(kLeasing, kResumesWithoutTheLock)                   \
    MUTANT(kLeasing, kMarksWithoutTheLock) MUTANT(kLeasing, kComparesRunsOnly)                    \
    MUTANT(kLeasing, kCountsNoFailedWrites) MUTANT(kLeasing, kMarksTheWriteBefore)                \
    MUTANT(kLeasing, kResumesOtherNodeCounts) MUTANT(kSecretLeases, kResumesUnderAnySecrets)      \
    MUTANT(kSecretLeases, kLooksAtLeasesFirst) MUTANT(kLeasing, kReleasesBeforeItStrikes)         \
    MUTANT(kLeasing, kReleasesWhatItDoesNotResume) MUTANT(kLeasing, kOpensFirst)                  \
    MUTANT(kLeasing, kSealsByClosing) MUTANT(kLeasing, kPlainStore)                               \
    MUTANT(kSecretPair, kTakesSecretsOfThePast) MUTANT(kSecretPair, kTakesSecretsOfThePresent)    \
    MUTANT(kSecretLeases, kForgetsLeases) MUTANT(kSecretLeases, kReloadsAnything)                 \
    MUTANT(kSecretLeases, kReloadsWithoutTheLock) MUTANT(kSecretFleet, kSkipsNothing)             \
    MUTANT(kSecretFleet, kSkipsByTheNumbersInterval) MUTANT(kSecretPair, kEncryptsByTheClock)     \
    MUTANT(kSecretLeases, kKeepsTheSessionsSecrets) MUTANT(kSecretLeases, kLooksBeforeItReserves)
#define RANDFLAKE_PROMISES(MUTANT)                                                                \
    MUTANT(kChangingAndSetBack, kEntersRangesDuringTheHoldOff)                                    \
    MUTANT(kChangingAndSetBack, kForgetsWhereARangeWasLeft)                                       \
    MUTANT(kChangingAndSetBack, kLeavesRangesByClosing)                                           \
    MUTANT(kChanging, kKeepsTheHoldOffOfTheStart)                                                 \
    MUTANT(kChangingFleet, kKeepsTheHoldOffOfALease) MUTANT(kChanging, kRaisesNoFloor)            \
    MUTANT(kChanging, kWritesNoSkew) MUTANT(kChanging, kStopsWithoutSkew)                         \
    MUTANT(kOne, kGivesBackWhatItUsedBefore) MUTANT(kLeasing, kResumesNothing)                    \
    MUTANT(kLeasing, kResumesInOnePostmasterOnly)
// clang-format on

#define RANDFLAKE_MUTANT(scenario, mutant) mutant,
enum class Mutant : uint8_t {
    kNothing,
    RANDFLAKE_MUTANTS(RANDFLAKE_MUTANT)
    // outage_test.cpp finds these.
    kStrikesUnheard,
    kResumesOnce,
    kWritesNoRenewals,
    kExtendsWhenAnswered,
    RANDFLAKE_PROMISES(RANDFLAKE_MUTANT)
};

using enum Mutant;

constexpr bool BreaksPromise(Mutant mutant) { return mutant >= kEntersRangesDuringTheHoldOff; }

class Holder : public LeaseHolder {
public:
    Mutant mutant = kNothing;

    LeaseOutcome Renewed(const Layout& layout, UnixSecond known, const LeaseTerms& asked,
                         Second now) {
        const UnixSecond last = known + (mutant == kTakesRenewalsForLonger);
        const LeaseOutcome outcome =
            LeaseHolder::Renewed(layout, last, mutant == kTakesAnyRenewal ? kAnyTerms : asked, now);
        if (mutant == kExtendsAnotherLease && open_.id != 0)
            open_.end = std::max(open_.end, newest().end);
        return outcome;
    }
    LeaseOutcome Unanswered() {
        if (mutant == kTakesSilenceForARenewal && awaits_ == LeaseRequest::Kind::kRenew &&
            next_.id == 0)
            open_.end = open_.end + 5;
        return LeaseHolder::Unanswered();
    }
    Window OpenNext(Second earliest, Second now, Second latest) {
        return LeaseHolder::OpenNext(mutant == kOpensTooEarly ? Second{} : earliest, now,
                                     Latest(latest));
    }
    Window Extended(Window window, Second latest) const {
        const bool stays = mutant == kExtendsWhenAnswered && retry_interval_ != 0;
        return stays ? window : LeaseHolder::Extended(window, Latest(latest));
    }
    LeaseReleases Sealed(Second last) {
        return LeaseHolder::Sealed(mutant == kGivesAllBack ? kNotUsed : last);
    }

private:
    Second Latest(Second latest) const { return mutant == kRecordsAnyEnd ? kNoSecond : latest; }

    static constexpr LeaseTerms kAnyTerms{1000, 0};
};

inline StartPlan OpenAt(StartPlan plan, Second second) {
    plan.state.floor = second;
    plan.opens_at_ms = {};
    return plan;
}

inline StartPlan PlanStartBroken(Mutant mutant, StateError error, const WindowState& found,
                                 const Start& start) {
    StartPlan plan = randflake::PlanStart(error, found, start);
    const bool own = plan.finding == Finding::kOwn;
    const Second end = start.nodes.count > 0 ? found.EndFor(start.nodes) : Second{};
    // Some mutants drop one condition of the proof that no other server has used the node ids.
    WindowState weakened = found;
    Start other = start;
    switch (mutant) {
        case kOpensOwnStateAtTheWrittenEnd:
            return own && end != Second{} ? OpenAt(plan, end) : plan;
        case kStartsUnknownNodeIdsAtOnce:
            return own && end == Second{}
                       ? OpenAt(plan, plan.held_off_until - start.skew.largest_ms / 1000)
                       : plan;
        case kTakesOneNodeIdForAll: {
            const NodeRange& known = found.stop.nodes;
            return own && known.Overlaps(start.nodes) && !known.Covers(start.nodes)
                       ? OpenAt(plan, end)
                       : plan;
        }
        case kTrustsEveryKnownRange:
            for (uint32_t i = 1; i < found.end_count; i++)
                if (own && found.ends[i].nodes == start.nodes) return OpenAt(plan, end);
            return plan;
        case kStartsUnderAnySecrets: plan.secrets = SecretsChange::kNone; return plan;
        case kProvesOneRangeForAll:
            if (found.end_count > 0 && found.stop.nodes.count > 0)
                weakened.stop.nodes = {0, UINT32_MAX};
            break;
        case kIgnoresOtherRuns: other.marker = weakened.write.number; break;
        case kTakesCopiesForTheOriginal:
            other.origin = weakened.origin;
            other.marker = weakened.write.number;
            break;
        case kIgnoresTheTimeSinceTheStop:
            weakened.stop.uptime_ms = other.uptime_ms;
            weakened.stop.wall_ms = other.wall_ms;
            break;
        default: return plan;
    }
    return randflake::PlanStart(error, weakened, other).proven ? OpenAt(plan, end) : plan;
}

inline bool ResumesBroken(Mutant mutant, WindowState found, Start start, Lease lease) {
    switch (mutant) {
        case kResumesAfterAnyCrash:  // of shared memory, without another condition
            if (!start.after_crash_restart) break;
            start.postmaster = found.write.postmaster;
            [[fallthrough]];
        case kResumesInCopies:
            start.origin = found.origin;
            start.marker = found.write.number;
            break;
        case kResumesNothing: return false;
        case kResumesInOnePostmasterOnly: start.machine_boot[0] = 0; break;
        case kComparesRunsOnly:
            if (start.marker - found.write.number + 1000 < 2000) start.marker = found.write.number;
            break;
        case kResumesOtherNodeCounts:
            if (lease.id != 0 && start.leased_nodes != 0) lease.nodes.count = start.leased_nodes;
            break;
        case kResumesUnderAnySecrets: found.secrets = start.secrets; break;
        default: break;
    }
    return randflake::Resumes(found, start, lease);
}

inline ReloadPlan PlanReloadBroken(Mutant mutant, Reload reload, const WindowState* state) {
    if (mutant == kTakesSecretsOfThePresent) reload.skew = -reload.wall_ms.count;
    if (mutant == kForgetsLeases) reload.leases_end = {};
    const ReloadPlan plan = randflake::PlanReload(reload, state);
    const bool taken = (mutant == kTakesSecretsOfThePast && plan.error == ReloadError::kTooEarly) ||
                       (mutant == kReloadsAnything && plan.error == ReloadError::kNotGrown);
    return taken ? ReloadPlan{} : plan;
}

}  // namespace randflake::simulation
