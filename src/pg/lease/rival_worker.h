// Registers the worker that looks for other servers which run with the node ids of this one, where
// the settings name somebody to ask.

#ifndef RANDFLAKE_PG_LEASE_RIVAL_WORKER_H
#define RANDFLAKE_PG_LEASE_RIVAL_WORKER_H

void rival_register_worker();

#endif
