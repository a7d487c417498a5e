// Simulates servers with static or leased node ids, coordinators, and the network between them. The
// seed decides the order of all events.
//
// Servers stop, crash or lose their shared memory. They restart with the same node ids, with other
// node ids, or with leases. Servers and backends pause between any two shared operations or disk
// writes. Machines boot. Data directories are copied (even from running servers), and the copies
// become standbys. Directories are promoted, rolled back to a snapshot, rewound, damaged or moved
// to another machine. Requests and answers arrive late or never. A connection breaks while a
// transaction commits or aborts. An old copy, or a replica that lacks transactions, replaces a
// coordinator (lease_cluster.h). Operators close, move and recreate coordinators, purge leases and
// change pools.
//
// The operator plans a secret, adds it to the coordinators and servers in any order, and may
// withdraw it. Leasing servers get secrets early, late or never, or have secrets of their own.
//
// Clocks step. If servers take over node ids, the simulation sets a machine's clock far back only
// after the static servers on this machine have opened their first windows. The simulation corrects
// the clock before another server on the machine starts. lease_ledger.h lists the invariants.

#pragma once

#include <array>
#include <ostream>
#include <string>
#include <vector>

#include "lease_coordinator.h"
#include "lease_ledger.h"
#include "mutants.h"

namespace randflake::simulation {

enum class Fleet {
    kLeases,        // servers lease from one coordinator; clocks show any time
    kEverything,    // all events; clocks differ by less than the tolerance
    kTwoNodeIds,    // as kEverything, with static servers on two node ids
    kOneDirectory,  // one data directory, static or leased; clocks show any time
};

// Lists duties of operators. A schedule may neglect one duty, to show that the duty is necessary.
struct Operation {
    // Before operators use leased node ids as static ones, they wait until these node ids are free.
    bool waits_until_free = true;
    // Operators create a coordinator only after they have closed or lost the former one.
    bool closes_first = true;
    // If a failover or restore may have undone a change of a pool, operators repeat the change.
    bool configures_again = true;
    // If an operator declares that a failover lost nothing, this is always true.
    bool says_what_is = true;
    // Operators take a server's static node ids out of its coordinator's pool before the server
    // gives up these node ids.
    bool takes_own_nodes_out = true;
    // Operators keep all clocks within the tolerated difference of each other.
    bool clocks_agree = true;
    // Operators stop a static server before its secrets begin to differ from the agreed secrets.
    bool stops_in_time = true;
    // Operators add a new secret at each coordinator.
    bool adds_everywhere = true;
    // Operators set all secrets on a new coordinator, and again after a failover or restore.
    bool sets_secrets_again = true;
};

struct Scenario {
    Layout layout{};          // in seconds, for windows
    Layout numbers = layout;  // for the servers' numbers
    Fleet fleet = Fleet::kLeases;
    CoordinatorRules rules{};
    bool identity_has_birth = true;  // so an older copy has another identity
    bool made_in_place = true;       // a new coordinator may replace the last in the same place
    bool only_failovers = false;     // coordinators have only failovers and backups
    bool only_pool_changes = false;  // coordinators have only pool changes
    bool loses_nothing = false;      // some failovers lose nothing, and operators say so
    bool skew_stays = false;         // the tolerated difference of clocks does not change
    bool changes_settings = false;   // changes settings between a stop and a prompt start
    bool set_back_far = false;       // sets back clocks of servers with several ranges
    bool rotates = false;            // secrets change, and numbers count seconds
    Mutant mutant{};                 // the rule that servers break
    Operation operation{};
    int steps = 9000;
    std::ostream* trace = nullptr;  // gets a line for everything that happens beside reservations
};

// These counts measure coverage. A simulation without events would find no violation.
struct Findings : ServerEvents, Handovers {
    std::string violation;  // the first violation, or empty
    int step = 0;           // the step of the violation

    size_t numbers = 0, narrow_numbers = 0;
    size_t granted = 0, renewed = 0, refused = 0, released = 0;
    size_t unclear = 0;  // answers that are no grant although the coordinator granted
    size_t failovers = 0, restores = 0, lost_transactions = 0, nothing_lost = 0;

    size_t set_back = 0;  // clocks, so far that servers change their range of node ids
    size_t skew_changes = 0;
    size_t pauses = 0, clock_steps = 0, lost_memories = 0, lost_workers = 0;
    size_t stops = 0, crashes = 0, boots = 0;
    size_t promotions = 0, copies = 0, twins = 0, rollbacks = 0, rewinds = 0, damages = 0,
           moved_disks = 0;
    size_t quick_changes = 0;  // starts with other node ids right after a stop
    size_t changed_nodes = 0, to_leases = 0, to_static = 0, moved_holders = 0, meddlings = 0;
    size_t pool_changes = 0, closings = 0, openings = 0, fresh = 0, moved_coordinators = 0;

    size_t planned = 0, added = 0, not_added = 0, withdrawn = 0;  // secrets, by the operator
    size_t stopped_in_time = 0;                       // servers, before their secrets differ
    size_t bounded_leases = 0, bounded_renewals = 0;  // that end at a secret that one side lacks
    size_t told_to_stop = 0;                          // holders refused because of a secret
    size_t lost_secrets = 0;                          // lost with the shared memory
    size_t issued = 0;

    Findings& operator+=(const Findings& other);
};

struct Counter {
    size_t Findings::*count;
    const char* name;
};

constexpr Counter Count(size_t Findings::*count, const char* name) {
    return {count, name};
}
template <typename... All>
constexpr std::array<Counter, sizeof...(All)> CountersOf(const All&... counters) {
    return {counters...};
}
using F = Findings;
inline constexpr auto kCounters = CountersOf(
    Count(&F::numbers, "numbers"), Count(&F::narrow_numbers, "of a narrow layout"),
    Count(&F::static_numbers, "of static node ids"), Count(&F::left_ranges, "changes of the range"),
    Count(&F::entered_again, "of these to one used before"),
    Count(&F::floor_waits, "changes that wait for the floor"),
    Count(&F::set_back, "clocks set back"), Count(&F::taken_over, "node ids taken over"),
    Count(&F::failed_back, "of these back"),
    Count(&F::static_to_leased, "node ids leased that were static"),
    Count(&F::leased_to_static, "node ids static that were leased"), Count(&F::granted, "grants"),
    Count(&F::renewed, "renewals"), Count(&F::refused, "refusals"), Count(&F::released, "releases"),
    Count(&F::declined, "leases declined"), Count(&F::kept_behind, "leases kept by a clock behind"),
    Count(&F::unclear, "unclear answers"), Count(&F::failovers, "failovers"),
    Count(&F::restores, "of these restores"), Count(&F::lost_transactions, "transactions lost"),
    Count(&F::nothing_lost, "words that nothing was"),
    Count(&F::reserved_during_change, "reserved during a change"),
    Count(&F::lost_swaps, "lost swaps"), Count(&F::proven_starts, "starts without a hold-off"),
    Count(&F::held_off_starts, "starts with one"), Count(&F::failed_writes, "failed writes"),
    Count(&F::skew_changes, "changes of the tolerated difference"),
    Count(&F::aborted, "calls that did not come back"), Count(&F::pauses, "pauses"),
    Count(&F::clock_steps, "steps of a clock"), Count(&F::lost_memories, "losses of shared memory"),
    Count(&F::lost_workers, "lost lease workers"), Count(&F::stops, "stops"),
    Count(&F::crashes, "crashes"), Count(&F::boots, "boots"), Count(&F::promotions, "promotions"),
    Count(&F::copies, "copies"), Count(&F::twins, "hard-linked copies and snapshots"),
    Count(&F::resumed, "leases resumed"), Count(&F::rollbacks, "rollbacks"),
    Count(&F::rewinds, "rewinds"), Count(&F::damages, "damages"),
    Count(&F::moved_disks, "moved disks"), Count(&F::changed_nodes, "starts with other node ids"),
    Count(&F::quick_changes, "of these right after a stop"),
    Count(&F::to_leases, "static to leased"), Count(&F::to_static, "leased to static"),
    Count(&F::moved_holders, "reloads with another coordinator"), Count(&F::meddlings, "meddlings"),
    Count(&F::pool_changes, "changes of a pool"), Count(&F::closings, "pools closed"),
    Count(&F::openings, "pools opened"), Count(&F::fresh, "coordinators made"),
    Count(&F::moved_coordinators, "coordinators moved"), Count(&F::planned, "secrets planned"),
    Count(&F::added, "secrets added"), Count(&F::not_added, "secrets too early to add"),
    Count(&F::withdrawn, "secrets withdrawn"),
    Count(&F::stopped_in_time, "servers stopped before a secret's time"),
    Count(&F::bounded_leases, "leases up to a secret"),
    Count(&F::bounded_renewals, "renewals up to a secret"),
    Count(&F::told_to_stop, "holders told to stop at a secret"),
    Count(&F::reloads, "reloads of secrets"), Count(&F::late_reloads, "of these late"),
    Count(&F::refused_reloads, "refused reloads"),
    Count(&F::refused_starts, "starts refused for their secrets"),
    Count(&F::lost_secrets, "losses of secrets"),
    Count(&F::unheard_answers, "answers to fewer secrets"), Count(&F::issued, "identifiers"),
    Count(&F::later_identifiers, "of later secrets"), Count(&F::skipped, "numbers skipped"),
    Count(&F::reserved_then_added, "reservations encrypted after a secret was added"),
    Count(&F::encrypted_then_added, "identifiers issued after one was added"));

inline Findings& Findings::operator+=(const Findings& other) {
    for (const Counter& counter : kCounters)
        this->*counter.count += other.*counter.count;
    for (size_t i = 0; i < kCauses; i++)
        refused_for[i] += other.refused_for[i];
    return *this;
}

inline std::ostream& operator<<(std::ostream& out, const Findings& findings) {
    const char* separator = "";
    for (const Counter& counter : kCounters) {
        if (findings.*counter.count == 0)
            continue;
        out << separator << findings.*counter.count << ' ' << counter.name;
        separator = ", ";
    }
    separator = "; refused moments: ";
    for (size_t i = 0; i < kCauses; i++, separator = ", ")
        out << separator << findings.refused_for[i] << ' ' << kRefused[i];
    return out;
}

// Runs the schedule of this seed. A seed gives the same schedule on every platform.
Findings Simulate(const Scenario& scenario, uint64_t seed);

// Seeds of schedules that found a violation, in fleet_seeds.txt: a line for each, "NAME SEED". NAME
// is a broken rule, or a test of fleet_simulation_test.cpp.
std::vector<uint64_t> RecordedSeeds(const std::string& name);
void RecordSeed(const std::string& name, uint64_t seed);

}  // namespace randflake::simulation
