// Finds other running servers that use static node ids of this server.
//
// Servers of one machine that share static node ids and the first secret find each other by claims
// (node_claim.cpp), unless they run as different system users or have separate /dev/shm. The rival
// worker (rival_worker.cpp) asks other machines.

#pragma once

#include "pg/base/pg.h"

#include <atomic>

#include "pg/base/error_text.h"

// This report is in shared memory. Only the rival worker writes it. Other processes read its atomic
// fields.
struct RivalReport {
    std::atomic<bool> is_upstream;  // "primary_conninfo" names the rival
    std::atomic<bool> in_registry;  // the coordinator of "randflake.registry" knows the rival
    std::atomic<bool> leased;       // the same coordinator has leased the node ids
    pg_uuid_t server;               // this server's name in the registry; zero: none yet
    bool announced;                 // this server has announced itself under this name
};

void rival_define_setting();

// Registers the worker, if there is a server to ask.
void rival_register_worker();

// Returns the error while a rival runs, or none.
ErrorText rival_error();

// Returns the error if a rival of this machine would go unnoticed, or none.
ErrorText rival_unseen_error();

// For rival_worker.cpp and node_claim.cpp.

inline constexpr char kRivalRuns[] = "another server runs with node ids of this one";
inline constexpr char kRivalRemedy[] =
    "Both make the same identifiers. Stop one, and start it again only as a standby or with node "
    "ids that no other server uses.";

// Returns why another server of this machine is a rival; palloc'd. Null if none is.
const char* node_claim_rival();

// Opens the file of claims. Warns if no claim is possible. Call this in the postmaster before it
// has children.
void node_claim_open();
