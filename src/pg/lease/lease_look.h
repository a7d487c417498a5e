// What the coordinator's functions and the look for coordinators share.

#ifndef RANDFLAKE_PG_LEASE_LEASE_LOOK_H
#define RANDFLAKE_PG_LEASE_LEASE_LOOK_H

// This data directory, timeline and database, as text; palloc'd.
char* coordinator_identity();

#endif
