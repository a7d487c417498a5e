// Lists what the simulation counts. The counts measure coverage: a simulation without events would
// find no violation.

#pragma once

#include "test.h"

namespace randflake::simulation {

// left_ranges counts changes of the range, entered_again those to a range used before, floor_waits
// those that the floor alone prevents, and set_back clocks set back so far that the range changes.
// A server of another name takes node ids over, and a former user fails back. kept_behind counts
// leases kept by a clock behind, unclear the answers that are no grant although one was made,
// nothing_lost the operator's words, and fresh new coordinators. quick_changes of node ids come
// right after a stop. told_to_stop counts holders refused because of a secret, and bounded_ leases
// those up to a secret that one side lacks. late_reloads come after the secret has begun by the
// clock. unheard_answers are to fewer secrets than there are now. later_identifiers are of another
// secret than the first, and numbers are skipped by the ring.
// clang-format off
#define RANDFLAKE_EVENTS(COUNT)                                                                   \
    COUNT(numbers) COUNT(narrow_numbers) COUNT(static_numbers) COUNT(left_ranges)                 \
    COUNT(entered_again) COUNT(floor_waits) COUNT(set_back) COUNT(taken_over) COUNT(failed_back)  \
    COUNT(static_to_leased) COUNT(leased_to_static) COUNT(granted) COUNT(renewed) COUNT(refused)  \
    COUNT(released) COUNT(kept_behind) COUNT(unclear) COUNT(failovers) COUNT(restores)            \
    COUNT(lost_transactions) COUNT(nothing_lost) COUNT(reserved_during_change) COUNT(lost_swaps)  \
    COUNT(proven_starts) COUNT(held_off_starts) COUNT(failed_writes) COUNT(skew_changes)          \
    COUNT(pauses) COUNT(clock_steps) COUNT(lost_memories) COUNT(lost_workers) COUNT(stops)        \
    COUNT(crashes) COUNT(boots) COUNT(promotions) COUNT(copies) COUNT(twins) COUNT(resumed)       \
    COUNT(rollbacks) COUNT(rewinds) COUNT(damages) COUNT(moved_disks) COUNT(changed_nodes)        \
    COUNT(quick_changes) COUNT(to_leases) COUNT(to_static) COUNT(moved_holders) COUNT(meddlings)  \
    COUNT(pool_changes) COUNT(closings) COUNT(openings) COUNT(fresh) COUNT(moved_coordinators)    \
    COUNT(added) COUNT(not_added) COUNT(withdrawn) COUNT(stopped_in_time) COUNT(bounded_leases)   \
    COUNT(bounded_renewals) COUNT(told_to_stop) COUNT(reloads) COUNT(late_reloads)                \
    COUNT(refused_reloads) COUNT(refused_starts) COUNT(lost_secrets) COUNT(unheard_answers)       \
    COUNT(issued) COUNT(later_identifiers) COUNT(skipped) COUNT(reserved_then_added)              \
    COUNT(encrypted_then_added)
// clang-format on

#define RANDFLAKE_MEMBER(name) size_t name = 0;
struct Events {
    RANDFLAKE_EVENTS(RANDFLAKE_MEMBER)

    Events& operator+=(const Events& other);
};

struct Counter {
    size_t Events::*count;
    std::string_view name;
};
#define RANDFLAKE_COUNTER(name) {&Events::name, #name},
inline constexpr Counter kCounters[] = {RANDFLAKE_EVENTS(RANDFLAKE_COUNTER)};

inline Events& Events::operator+=(const Events& other) {
    for (const Counter& counter : kCounters) this->*counter.count += other.*counter.count;
    return *this;
}

inline std::ostream& operator<<(std::ostream& out, const Events& events) {
    for (const auto& [count, name] : kCounters)
        if (events.*count != 0) out << ' ' << name << ' ' << events.*count;
    return out;
}

}  // namespace randflake::simulation
