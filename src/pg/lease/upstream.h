// Registers the worker that asks the server which "primary_conninfo" names.

#ifndef RANDFLAKE_PG_LEASE_UPSTREAM_H
#define RANDFLAKE_PG_LEASE_UPSTREAM_H

void upstream_register_worker();

#endif
