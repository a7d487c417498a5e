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

#include <optional>
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
    // This layout of windows, in seconds, has enough seconds for a schedule, even on clocks that
    // are ahead, and enough node ids for all servers. A node id has only 4 numbers per second, so
    // servers run out of numbers.
    Layout layout{kWindowEpochMs, 8, 3, 2};
    Layout numbers = layout;  // for the servers' numbers
    Fleet fleet = Fleet::kLeases;
    CoordinatorRules rules{};
    bool identity_has_birth = true;  // so an older copy has another identity
    bool made_in_place = true;       // a new coordinator may replace the last in the same place
    bool only_failovers = false;     // coordinators have only failovers and backups
    bool only_pool_changes = false;  // coordinators have only pool changes
    bool only_handovers = false;     // servers only stop together and divide node ids anew
    bool loses_nothing = false;      // some failovers lose nothing, and operators say so
    bool skew_stays = false;         // the tolerated difference of clocks does not change
    bool changes_settings = false;   // changes settings between a stop and a prompt start
    bool set_back_far = false;       // sets back clocks of servers with several ranges
    bool rotates = false;            // secrets change, and numbers count seconds
    // Without a value, these are random. They serve scenarios of rare events.
    std::optional<int64_t> longest_lease{}, tolerated_skew{};        // in seconds
    std::optional<int64_t> coordinator_trouble{}, server_trouble{};  // in one of so many steps
    int64_t wrong_files_one_in = 8;  // among the static servers' files at a start
    int still_steps = 0;             // after a stop or a crash, the time stands for so many steps
    Mutant mutant{};                 // the rule that servers break
    Operation operation{};
    int steps = 9000;
    std::ostream* trace = nullptr;  // gets a line for everything that happens beside reservations
};

// In these scenarios, things happen close together that are far apart in others. A lease that a
// failover lost comes back by a restore; a directory uses node ids new to it right after another
// server; a file lacks only the secret that was added last; servers divide their node ids anew,
// some return to a directory, and a clock shows what others used just before.
inline const Scenario kRareFailovers{
    .only_failovers = true, .longest_lease = 8, .tolerated_skew = 0, .coordinator_trouble = 160};
inline const Scenario kPromptStarts{
    .fleet = Fleet::kEverything, .skew_stays = true, .tolerated_skew = 3, .still_steps = 300};
inline const Scenario kHandovers{.fleet = Fleet::kTwoNodeIds,
                                 .only_handovers = true,
                                 .set_back_far = true,
                                 .longest_lease = 2,
                                 .tolerated_skew = 1,
                                 .coordinator_trouble = 100000,
                                 .server_trouble = 600,
                                 .still_steps = 300};
inline const Scenario kWrongFiles{.fleet = Fleet::kTwoNodeIds,
                                  .rotates = true,
                                  .tolerated_skew = 1,
                                  .server_trouble = 640,
                                  .wrong_files_one_in = 2};

struct Findings : Events {
    std::string violation;  // the first violation, or empty
    int step = 0;           // the step of the violation
};

// Runs the schedule of this seed. A seed gives the same schedule on every platform.
Findings Simulate(const Scenario& scenario, uint64_t seed);

// Seeds of schedules that found a violation, in fleet_seeds.txt: a line for each, "NAME SEED". NAME
// is a broken rule, or a test of fleet_simulation_test.cpp.
std::vector<uint64_t> RecordedSeeds(const std::string& name);
void RecordSeed(const std::string& name, uint64_t seed);

}  // namespace randflake::simulation
