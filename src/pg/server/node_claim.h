// Lets running servers of one machine find each other if they share static node ids and the first
// secret. Servers of different system users, or with separate /dev/shm, do not find each other.
//
// Each server locks its node ids in a shared memory file named after the first secret's
// fingerprint. These locks are shared, so a claim never fails. The locks belong to the open file
// (OFD locks of Linux), which all processes of a server inherit, so the locks end with the last
// process.

#pragma once

#include "pg/base/pg.h"

// Call in the postmaster before it has children. Warns if no claim is possible.
void node_claim_open();

// Call before the first window opens. Warns if another server's claim overlaps this server's.
void node_claim_take();

// Returns the pid of another postmaster whose claim overlaps this server's claim (0 if none).
pid_t node_claim_rival();

// Returns why this server cannot find others (null if it can).
const char* node_claim_failure();
