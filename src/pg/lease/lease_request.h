// Sends one request to the coordinator by libpq, and checks the whole answer.

#pragma once

#include "pg/base/pg.h"

#include "core/lease/lease_answer.h"
#include "pg/memory/lease_report.h"

inline constexpr int kLeaseParameters = 7;

// A statement whose answer is one row of this shape. $1, $2, ... are parameters, as text: other
// roles of the coordinator see the statement.
struct CoordinatorRequest {
    const char* statement;
    int parameters;
    Oid parameter_types[kLeaseParameters];
    const char* parameter_values[kLeaseParameters];
    randflake::AnswerShape shape;
};

// In place of a statement: asks which server this is by the replication protocol. `values` then are
inline constexpr char kWhichServer[] = "IDENTIFY_SYSTEM";
enum WhichServer { kSystem, kTimeline, kInRecovery, kNodeId, kNodeCount, kSpareRanges };

struct CoordinatorAnswer {
    LeaseProblem problem;  // kNone: the coordinator has committed the request
    bool refused;          // otherwise: it refuses; other failures do not affect a lease
    int64 values[randflake::kMaxAnswerColumns];  // with kNone: see LeaseAnswer
    char text[392];                    // otherwise: why; the bytes may be the coordinator's
    randflake::UnixSecond not_before;  // and the second before which it grants no lease; 0: unknown
    bool tells_of_secrets;             // always: whether the next field is valid, see LeaseAnswer
    randflake::Second differs_from;
    randflake::UptimeMs asked_at, answered_at;  // with kNone
};

// Connects with these parameters of PQconnectdbParams, and asks. Raises no errors. The call blocks,
// and its memory is unlimited: make it in a process that others can end (lease_client.cpp).
void lease_request(const char* const* keywords, const char* const* values,
                   const CoordinatorRequest& request, CoordinatorAnswer* answer);
