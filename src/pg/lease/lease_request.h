// One request to the coordinator and its answer: libpq, and a look at everything that comes back.

#ifndef RANDFLAKE_PG_LEASE_LEASE_REQUEST_H
#define RANDFLAKE_PG_LEASE_LEASE_REQUEST_H

#include "pg/base/pg.h"

#include "core/lease/lease_answer.h"
#include "pg/memory/lease_report.h"

inline constexpr int kLeaseParameters = 7;

// A statement whose answer is one row of this shape. What it names as $1, $2, ... are parameters,
// in text: other roles of the coordinator see the statement.
struct CoordinatorRequest {
    const char* statement;
    int parameters;
    Oid parameter_types[kLeaseParameters];
    const char* parameter_values[kLeaseParameters];
    randflake::AnswerShape shape;
};

// In place of a statement: which server this is, by the replication protocol. `values` are then
inline constexpr char kWhichServer[] = "IDENTIFY_SYSTEM";
enum WhichServer { kSystem, kTimeline, kInRecovery, kNodeId, kNodeCount, kSpareRanges };

struct CoordinatorAnswer {
    LeaseProblem problem;  // kNone: the coordinator has committed what was asked
    bool refused;          // otherwise: it refuses; what else failed says nothing of a lease
    int64 values[randflake::kMaxAnswerColumns];  // with kNone: see LeaseAnswer
    char text[392];                    // otherwise: why, in bytes that may be the coordinator's
    randflake::UnixSecond not_before;  // and the second before which it grants none; 0: not said
    bool tells_of_secrets;             // in any case: whether the next counts, see LeaseAnswer
    randflake::Second differs_from;
    randflake::UptimeMs asked_at, answered_at;  // with kNone
};

// Connects with these parameters, as PQconnectdbParams takes them, and asks. Blocks, without a
// limit on time or memory: for a process that others can end (lease_client.cpp). Raises no errors.
void lease_request(const char* const* keywords, const char* const* values,
                   const CoordinatorRequest& request, CoordinatorAnswer* answer);

#endif
