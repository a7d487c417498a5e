// What the lease worker asks of its coordinator.

#ifndef RANDFLAKE_PG_LEASE_LEASE_CLIENT_H
#define RANDFLAKE_PG_LEASE_LEASE_CLIENT_H

#include "pg/base/pg.h"

#include "core/lease/lease.h"
#include "core/window/window_state.h"
#include "pg/memory/lease_report.h"

// Every call gives up after this many milliseconds, and at once when the worker has to stop or to
// reload the settings. False then and on any other failure; lease_client_problem() and
// lease_client_error() say why.
inline constexpr int64 kLeaseClientTimeoutMs = 10000;

bool lease_client_acquire(const char* holder, const pg_uuid_t& incarnation, int node_count,
                          int duration, const randflake::SecretRecords& secrets,
                          randflake::LeaseGrant* grant);
bool lease_client_renew(int64 lease_id, const pg_uuid_t& incarnation,
                        randflake::UnixSecond expected_end, int duration,
                        const randflake::SecretRecords& secrets, randflake::UnixSecond* end);
// Gives up after `timeout` milliseconds and at nothing else.
bool lease_client_release(int64 lease_id, const pg_uuid_t& incarnation,
                          randflake::UnixSecond last_used, int64 timeout);

// The last failure: its kind, whether the coordinator refuses what was asked, its text in printable
// UTF-8, and the second before which the coordinator grants nothing, 0 when it did not say.
LeaseProblem lease_client_problem();
bool lease_client_refused();
const char* lease_client_error();
randflake::UnixSecond lease_client_not_before();

// Of the last grant or renewal.
randflake::CoordinatorClock lease_client_clock();

// Whether the last answer, a failure or not, told if this server lacks a secret of the
// coordinator's: the second of the first one, 0 if it lacks none.
bool lease_client_tells_of_secrets(randflake::Second* differs_from);

#endif
