// The lease worker, for the library's start.

#ifndef RANDFLAKE_PG_LEASE_LEASE_WORKER_H
#define RANDFLAKE_PG_LEASE_LEASE_WORKER_H

// Asks the server for the worker; while the library is preloaded.
void lease_register_worker();

#endif
