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
    int64 values[randflake::kMaxAnswerColumns];  // the answer's row, with kNone
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

// Asks the server in "primary_conninfo" for the values of WhichServer.
LeaseResult lease_client_upstream();

// Announces this server to the coordinator of "randflake.registry". The values are the numbers of
// other servers that announced some of this server's node ids, and of leases in force that contain
// some. `origin` identifies the data directory. If `starts` is true, ends earlier announcements.
LeaseResult lease_client_announce(const pg_uuid_t& server, const char* origin, bool starts);
