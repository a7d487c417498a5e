// Lists what the simulation counts, each count with its words. The counts measure coverage: a
// simulation without events would find no violation.

#pragma once

#include <array>
#include <ostream>

#include "refused.h"

namespace randflake::simulation {

// clang-format off
#define RANDFLAKE_EVENTS(COUNT)                                                                    \
    COUNT(numbers, "numbers") COUNT(narrow_numbers, "of a narrow layout")                           \
    COUNT(static_numbers, "of static node ids") COUNT(left_ranges, "changes of the range")          \
    COUNT(entered_again, "of these to one used before")                                             \
    COUNT(floor_waits, "changes that the floor alone prevents")                                     \
    COUNT(set_back, "clocks set back so far that the range changes")                                \
    COUNT(taken_over, "node ids taken over by a server of another name")                            \
    COUNT(failed_back, "of these by a former user")                                                 \
    COUNT(static_to_leased, "node ids leased that were static")                                     \
    COUNT(leased_to_static, "node ids static that were leased")                                     \
    COUNT(granted, "grants") COUNT(renewed, "renewals") COUNT(refused, "refusals")                  \
    COUNT(released, "releases") COUNT(declined, "leases declined: they end too late")               \
    COUNT(kept_behind, "leases kept by a clock behind")                                             \
    COUNT(unclear, "answers that are no grant although one was made")                               \
    COUNT(failovers, "failovers") COUNT(restores, "of these restores")                              \
    COUNT(lost_transactions, "transactions lost") COUNT(nothing_lost, "words that nothing was")     \
    COUNT(reserved_during_change, "reserved during a change") COUNT(lost_swaps, "lost swaps")       \
    COUNT(proven_starts, "starts without a hold-off") COUNT(held_off_starts, "starts with one")     \
    COUNT(failed_writes, "failed writes")                                                           \
    COUNT(skew_changes, "changes of the tolerated difference")                                      \
    COUNT(aborted, "calls that did not come back") COUNT(pauses, "pauses")                          \
    COUNT(clock_steps, "steps of a clock") COUNT(lost_memories, "losses of shared memory")          \
    COUNT(lost_workers, "lost lease workers") COUNT(stops, "stops") COUNT(crashes, "crashes")       \
    COUNT(boots, "boots") COUNT(promotions, "promotions") COUNT(copies, "copies")                   \
    COUNT(twins, "hard-linked copies and snapshots")                                                \
    COUNT(resumed, "leases resumed after a crash or a stop") COUNT(rollbacks, "rollbacks")          \
    COUNT(rewinds, "rewinds") COUNT(damages, "damages") COUNT(moved_disks, "moved disks")           \
    COUNT(changed_nodes, "starts with other node ids")                                              \
    COUNT(quick_changes, "of these right after a stop")                                             \
    COUNT(to_leases, "static to leased") COUNT(to_static, "leased to static")                       \
    COUNT(moved_holders, "reloads with another coordinator") COUNT(meddlings, "meddlings")          \
    COUNT(pool_changes, "changes of a pool") COUNT(closings, "pools closed")                        \
    COUNT(openings, "pools opened") COUNT(fresh, "coordinators made")                               \
    COUNT(moved_coordinators, "coordinators moved") COUNT(planned, "secrets planned")               \
    COUNT(added, "secrets added") COUNT(not_added, "secrets too early to add")                      \
    COUNT(withdrawn, "secrets withdrawn")                                                           \
    COUNT(stopped_in_time, "servers stopped before their secrets differ")                           \
    COUNT(bounded_leases, "leases up to a secret that one side lacks")                              \
    COUNT(bounded_renewals, "renewals up to one")                                                   \
    COUNT(told_to_stop, "holders refused because of a secret")                                      \
    COUNT(reloads, "reloads of secrets")                                                            \
    COUNT(late_reloads, "of these after the secret has begun by the clock")                         \
    COUNT(refused_reloads, "refused reloads")                                                       \
    COUNT(refused_starts, "starts refused for their secrets")                                       \
    COUNT(lost_secrets, "losses of secrets with the shared memory")                                 \
    COUNT(unheard_answers, "answers to fewer secrets than there are now")                           \
    COUNT(issued, "identifiers") COUNT(later_identifiers, "of another secret than the first")       \
    COUNT(skipped, "numbers that the ring skips")                                                   \
    COUNT(reserved_then_added, "reservations encrypted after a secret was added")                   \
    COUNT(encrypted_then_added, "identifiers issued after one was added")
// clang-format on

#define RANDFLAKE_MEMBER(name, text) size_t name = 0;
struct Events {
    RANDFLAKE_EVENTS(RANDFLAKE_MEMBER)
    std::array<size_t, kCauses> refused_for{};  // moments without a number, by cause

    Events& operator+=(const Events& other);
};

struct Counter {
    size_t Events::*count;
    const char* name;
};
#define RANDFLAKE_COUNTER(name, text) {&Events::name, text},
inline constexpr Counter kCounters[] = {RANDFLAKE_EVENTS(RANDFLAKE_COUNTER)};

inline Events& Events::operator+=(const Events& other) {
    for (const Counter& counter : kCounters)
        this->*counter.count += other.*counter.count;
    for (size_t i = 0; i < kCauses; i++)
        refused_for[i] += other.refused_for[i];
    return *this;
}

inline std::ostream& operator<<(std::ostream& out, const Events& events) {
    const char* separator = "";
    for (const Counter& counter : kCounters) {
        if (events.*counter.count == 0)
            continue;
        out << separator << events.*counter.count << ' ' << counter.name;
        separator = ", ";
    }
    separator = "; refused moments: ";
    for (size_t i = 0; i < kCauses; i++, separator = ", ")
        out << separator << events.refused_for[i] << ' ' << kRefused[i];
    return out;
}

}  // namespace randflake::simulation
