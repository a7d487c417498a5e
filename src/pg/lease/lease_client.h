// What the lease worker asks of its coordinator.

#ifndef RANDFLAKE_PG_LEASE_LEASE_CLIENT_H
#define RANDFLAKE_PG_LEASE_LEASE_CLIENT_H

#include "pg/base/pg.h"

#include "core/lease/lease_holder.h"
#include "core/window/window_state.h"
#include "pg/lease/lease_request.h"
#include "pg/memory/lease_report.h"

// What came of a request, and why.
struct LeaseResult {
    randflake::LeaseReply reply;
    randflake::CoordinatorClock clock;  // of a grant or a renewal
    LeaseProblem problem;               // kNone: the coordinator has committed what was asked
    // Otherwise: why, in printable UTF-8, and the second before which the coordinator grants none;
    // 0: not said. A message that was cut on its way loses its end, which may be half a character.
    char error[sizeof CoordinatorAnswer::text - MAX_MULTIBYTE_CHAR_LEN];
    randflake::UnixSecond not_before;
};

// These give up after so many milliseconds, and at once when the worker has to stop or to reload
// the settings.
inline constexpr randflake::Ms kLeaseClientTimeout = 10000;

LeaseResult lease_client_acquire(const pg_uuid_t& incarnation, int node_count, int duration,
                                 const randflake::SecretRecords& secrets);
LeaseResult lease_client_renew(int64 lease_id, const pg_uuid_t& incarnation,
                               randflake::UnixSecond expected_end, int duration,
                               const randflake::SecretRecords& secrets);
// These give up after `timeout` milliseconds and at nothing else. Whether the coordinator answers:
bool lease_client_probe(int64 timeout);
LeaseResult lease_client_release(int64 lease_id, const pg_uuid_t& incarnation,
                                 randflake::UnixSecond last_used, int64 timeout);

// Which server "primary_conninfo" names, see WhichServer. False if it does not say.
bool lease_client_upstream(int64 (&values)[randflake::kMaxAnswerColumns]);

// What the coordinator of "randflake.registry" knows of this server's node ids.
struct Announced {
    int64 servers;  // others that have announced some of them
    int64 leases;   // in force
};
// The server has a random number and an origin; `starts`: what was announced of this origin before
// is over.
LeaseResult lease_client_announce(const pg_uuid_t& server, const char* origin, bool starts,
                                  Announced* known);

#endif
