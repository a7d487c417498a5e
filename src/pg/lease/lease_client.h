// Sends requests to the coordinator.

#pragma once

#include "pg/base/pg.h"

#include "core/lease/lease_holder.h"
#include "core/secret/secret_records.h"
#include "pg/lease/lease_report.h"
#include "pg/lease/lease_request.h"

struct LeaseResult {
    randflake::LeaseReply reply;
    randflake::CoordinatorClock clock;  // the coordinator's, at a grant or a renewal
    LeaseProblem problem;               // kNone: the coordinator has committed the request
    // After a problem, `error` is the reason in printable UTF-8, which may be truncated. The
    // coordinator grants no lease before `not_before` (0 if unknown).
    char error[sizeof CoordinatorAnswer::text - MAX_MULTIBYTE_CHAR_LEN];
    randflake::UnixSecond not_before;
};

// The two functions below give up after this time, or when the worker must stop or reload.
inline constexpr randflake::Ms kLeaseClientTimeout = 10000;

LeaseResult lease_client_acquire(const pg_uuid_t& incarnation, int node_count, int duration,
                                 const randflake::SecretRecords& secrets);
LeaseResult lease_client_renew(int64 lease_id, const pg_uuid_t& incarnation,
                               randflake::UnixSecond expected_end, int duration,
                               const randflake::SecretRecords& secrets);
// These calls give up only after `timeout` ms. The probe returns whether the coordinator answers.
bool lease_client_probe(int64 timeout);
LeaseResult lease_client_release(int64 lease_id, const pg_uuid_t& incarnation,
                                 randflake::UnixSecond last_used, int64 timeout);

// Asks the server in "primary_conninfo" for the values of WhichServer. Returns false if none came.
bool lease_client_upstream(int64 (&values)[randflake::kMaxAnswerColumns]);

// The coordinator of "randflake.registry" returns these counts for this server's node ids.
struct Announced {
    int64 servers;  // other servers that announced some of these node ids
    int64 leases;   // leases in force that contain some of these node ids
};
// `origin` identifies the data directory. If `starts` is true, ends earlier announcements.
LeaseResult lease_client_announce(const pg_uuid_t& server, const char* origin, bool starts,
                                  Announced* known);
