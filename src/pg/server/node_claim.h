// Lets running servers of one machine with common static node ids and first secret find each other.
//
// Each server locks its node ids in a file of shared memory named after the secret's fingerprint.
// The locks are shared, so a claim never fails and stops no generation. Any process can ask at any
// time whose claim overlaps its own. The locks belong to the open file (OFD locks of Linux). All
// processes of a server inherit the file, so the locks end with the last process, however it ends.
//
// Servers of different system users, or with separate /dev/shm, do not find each other.

#pragma once

#include "pg/base/pg.h"

// Call in the postmaster before it has children.
void node_claim_open();

// Call before the first window opens. Warns of another server. In recovery a server claims nothing.
void node_claim_take();

// Returns the postmaster's pid of another server whose claim overlaps, or 0.
pid_t node_claim_rival();
