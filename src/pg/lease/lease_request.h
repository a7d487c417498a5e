// Sends one request to the coordinator over libpq, and checks the answer.

#pragma once

#include "pg/base/pg.h"

#include "core/lease/lease_answer.h"
#include "pg/lease/lease_report.h"

inline constexpr int kLeaseParameters = 7;

// Other roles on the coordinator can see `statement`, so the values are in the parameters.
struct CoordinatorRequest {
    const char* statement;
    int parameters;
    Oid parameter_types[kLeaseParameters];
    const char* parameter_values[kLeaseParameters];
    randflake::AnswerShape shape;
};

// This command asks a server for its identity. WhichServer lists the answer's columns.
inline constexpr char kWhichServer[] = "IDENTIFY_SYSTEM";
enum WhichServer { kSystem, kTimeline, kInRecovery, kDirectory, kNodeId, kNodeCount, kSpareRanges };

struct CoordinatorAnswer {
    LeaseProblem problem;  // kNone: the coordinator has committed the request
    bool refused;          // the coordinator refused; other problems do not affect a lease
    bool read_only;        // the host that answered is a standby, or allows no writes
    int64 values[randflake::kMaxAnswerColumns];  // valid with kNone; see LeaseAnswer
    char text[392];                              // the reason of a problem, unchecked
    randflake::UnixSecond not_before;  // the coordinator grants no lease before this; 0: unknown
    bool tells_of_secrets;             // whether differs_from is valid; see LeaseAnswer
    randflake::Second differs_from;
    randflake::UptimeMs asked_at, answered_at;  // valid with kNone
};

// Connects with these parameters of PQconnectdbParams and sends the request. Raises no errors. The
// call may block and use any amount of memory, so make it in a process that others can end.
void lease_request(const char* const* keywords, const char* const* values,
                   const CoordinatorRequest& request, CoordinatorAnswer* answer);
