// Lists what the simulation counts, each count with its words. The counts measure coverage: a
// simulation without events would find no violation.

#pragma once

#include "test.h"

namespace randflake::simulation {

// Lists the reasons why a server can give no number for the present second. The simulation's judge,
// which knows all states, clocks and grants, names the cause after a session has tried everything.
// kOther means that there is no cause, which is a violation. For the causes from kUsedUp to kTaken,
// no server could give a number. For all causes after kTaken, a number was possible, but only for a
// server that knew everything. If the cause is kLostInAFailure or a later one, the server has lost
// a lease or a renewal.
// clang-format off
#define RANDFLAKE_REFUSED(CAUSE)                                                                   \
    CAUSE(kOther, "other") CAUSE(kUsedUp, "used up") CAUSE(kNoTime, "out of time")                  \
    CAUSE(kNoLease, "no lease") CAUSE(kTaken, "taken by another") CAUSE(kClock, "clock set back")   \
    CAUSE(kAhead, "written ahead") CAUSE(kHoldOff, "held off") CAUSE(kLook, "not looked")           \
    CAUSE(kSecrets, "other secrets") CAUSE(kDisk, "failed disk") CAUSE(kWorker, "worker not ready") \
    CAUSE(kLostInAFailure, "lost in a failure") CAUSE(kLostDirectory, "lost directory")             \
    CAUSE(kLostBoot, "lost boot") CAUSE(kLostMarker, "lost marker") CAUSE(kLostLock, "lost lock")   \
    CAUSE(kLostWrite, "lost to another write") CAUSE(kLostNodes, "other node count")                \
    CAUSE(kLostRing, "other ring") CAUSE(kLostStruck, "struck") CAUSE(kLostRefused, "refused")
// clang-format on

#define RANDFLAKE_NAME(name, text) name,
#define RANDFLAKE_TEXT(name, text) text,
enum class Refused : uint8_t { RANDFLAKE_REFUSED(RANDFLAKE_NAME) };
inline constexpr const char* kRefused[] = {RANDFLAKE_REFUSED(RANDFLAKE_TEXT)};
inline constexpr size_t kCauses = sizeof kRefused / sizeof *kRefused;

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
    for (const Counter& counter : kCounters) this->*counter.count += other.*counter.count;
    for (size_t i = 0; i < kCauses; i++) refused_for[i] += other.refused_for[i];
    return *this;
}

inline std::ostream& operator<<(std::ostream& out, const Events& events) {
    const char* separator = "";
    for (const Counter& counter : kCounters) {
        if (events.*counter.count == 0) continue;
        out << separator << events.*counter.count << ' ' << counter.name;
        separator = ", ";
    }
    separator = "; refused moments: ";
    for (size_t i = 0; i < kCauses; i++, separator = ", ")
        out << separator << events.refused_for[i] << ' ' << kRefused[i];
    return out;
}

}  // namespace randflake::simulation
