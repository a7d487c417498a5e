// Sends the lease worker's requests to its coordinator.

#pragma once

#include "pg/base/pg.h"

#include "core/lease/lease_holder.h"
#include "core/window/window_state.h"
#include "pg/lease/lease_request.h"
#include "pg/memory/lease_report.h"

struct LeaseResult {
    randflake::LeaseReply reply;
    randflake::CoordinatorClock clock;  // of a grant or a renewal
    LeaseProblem problem;               // kNone: the coordinator has committed the request
    // Unless `problem` is kNone, `error` is the reason in printable UTF-8. The coordinator grants
    // no lease before `not_before`; 0: unknown. A truncated message loses its end, maybe half a
    // character.
    char error[sizeof CoordinatorAnswer::text - MAX_MULTIBYTE_CHAR_LEN];
    randflake::UnixSecond not_before;
};

// The first two calls give up after this time, and when the worker must stop or reload settings.
inline constexpr randflake::Ms kLeaseClientTimeout = 10000;

LeaseResult lease_client_acquire(const pg_uuid_t& incarnation, int node_count, int duration,
                                 const randflake::SecretRecords& secrets);
LeaseResult lease_client_renew(int64 lease_id, const pg_uuid_t& incarnation,
                               randflake::UnixSecond expected_end, int duration,
                               const randflake::SecretRecords& secrets);
// These calls give up only after `timeout` milliseconds. Returns whether the coordinator answers.
bool lease_client_probe(int64 timeout);
LeaseResult lease_client_release(int64 lease_id, const pg_uuid_t& incarnation,
                                 randflake::UnixSecond last_used, int64 timeout);

// Asks the server that "primary_conninfo" names, see WhichServer. False without an answer.
bool lease_client_upstream(int64 (&values)[randflake::kMaxAnswerColumns]);

// The coordinator of "randflake.registry" knows this about this server's node ids.
struct Announced {
    int64 servers;  // other servers that announced some of them
    int64 leases;   // in force
};
// `server` is a random number, `origin` identifies the data directory. `starts` ends earlier
// announcements of this origin.
LeaseResult lease_client_announce(const pg_uuid_t& server, const char* origin, bool starts,
                                  Announced* known);
