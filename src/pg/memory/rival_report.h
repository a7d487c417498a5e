// Reports other running servers that use static node ids of this server.

#pragma once

#include "pg/base/pg.h"

#include <atomic>

// This report is in shared memory. Only the rival worker (pg/lease/rival_worker.cpp) writes it.
// Other processes read its atomic fields.
struct RivalReport {
    std::atomic<bool> is_upstream;  // "primary_conninfo" names the rival
    std::atomic<bool> in_registry;  // the coordinator of "randflake.registry" knows the rival
    std::atomic<bool> leased;       // the same coordinator has leased the node ids
    pg_uuid_t server;               // this server's name in the registry; zero: none yet
    bool announced;                 // this server has announced itself under this name
};

inline constexpr char kRivalRuns[] = "another server runs with node ids of this one";
inline constexpr char kRivalUnseen[] =
    "a second server of this machine with the same node ids would go unnoticed";
inline constexpr char kRivalOnMachine[] =
    "The postmaster of the other server is process %d of this machine.";
inline constexpr char kRivalUpstream[] =
    "\"primary_conninfo\" names the other server, which is not in recovery.";
inline constexpr char kRivalInRegistry[] =
    "A role has announced the other server to the coordinator of \"randflake.registry\". Before "
    "you "
    "believe it, see who in the table \"randflake_lease_announcement\" there.";
inline constexpr char kRivalLeased[] = "The coordinator of \"randflake.registry\" has leased them.";
inline constexpr char kRivalRemedy[] =
    "Both make the same identifiers. Stop one, and start it again only as a standby or with node "
    "ids that no other server uses.";
