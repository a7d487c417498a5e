// The connection of the lease worker to its coordinator: libpq, never blocking for longer than the
// worker may, except for the look-up of a host name.

#ifndef RANDFLAKE_PG_LEASE_CLIENT_H
#define RANDFLAKE_PG_LEASE_CLIENT_H

#include "pg/pg.h"

#include "core/lease.h"

// Every call gives up after this many milliseconds, and at once when the worker has to stop or to
// reload the settings. False then and on any other failure; lease_client_error() says why.
inline constexpr int64 kLeaseClientTimeoutMs = 10000;

bool lease_client_acquire(const char* holder, const pg_uuid_t& incarnation, int node_count,
                          int duration, uint64 key_fingerprint, randflake::LeaseGrant* grant);
bool lease_client_renew(int64 lease_id, const pg_uuid_t& incarnation, int64 expected_end,
                        int duration, int64* end);
bool lease_client_release(int64 lease_id, const pg_uuid_t& incarnation, int64 last_used,
                          int64 timeout);

// Whether the last failure was the coordinator's refusal, rather than the lack of an answer.
bool lease_client_refused();
const char* lease_client_error();
void lease_client_disconnect();

#endif
