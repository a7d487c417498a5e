// The lease of a server whose node ids come from a coordinator: what the worker and the generating
// backends share.

#ifndef RANDFLAKE_PG_LEASE_H
#define RANDFLAKE_PG_LEASE_H

#include "pg/pg.h"

// Shown while the worker waits, for the coordinator or for the next renewal.
inline constexpr char kLeaseWaitEvent[] = "RandflakeLease";

// In shared memory, protected by the lease lock.
struct LeaseControl {
    pg_uuid_t incarnation;  // of this shared memory; a lease is never resumed by another one
    bool held;              // the rest of the block counts
    int64 lease_id;
    int64 first_node_id;
    int64 start;  // seconds since the epoch
    int64 end;    // exclusive

    TimestampTz error_at;  // 0: the last attempt succeeded
    char error[256];
};

void lease_init(LeaseControl* control);

// Asks the server for the worker; while the library is preloaded.
void lease_register_worker();

// A consistent copy, for messages and views.
LeaseControl lease_control();

#endif
