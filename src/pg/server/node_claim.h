// Running servers of one machine that have the same static node ids and the same first secret find
// each other.
//
// Each locks its node ids in a file of shared memory, which has the secret's fingerprint as its
// name. The locks are shared, so a claim never fails and keeps nobody from generating: any process
// can ask at any time for whose claim overlaps its own. They belong to the open file (an OFD lock
// of Linux), which all processes of a server inherit, and end with the last of them, however it
// ends.
//
// Servers of different users of the system, or with a /dev/shm of their own, do not find each
// other.

#ifndef RANDFLAKE_PG_SERVER_NODE_CLAIM_H
#define RANDFLAKE_PG_SERVER_NODE_CLAIM_H

#include "pg/base/pg.h"

// By the postmaster, before it has children.
void node_claim_open();

// Before the first window opens: a server in recovery claims nothing. Warns of another server.
void node_claim_take();

// The pid of the postmaster of another server whose claim overlaps; 0: none is known.
pid_t node_claim_rival();

#endif
