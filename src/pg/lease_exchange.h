// One request to the coordinator and its answer: libpq, and a look at everything that comes back.

#ifndef RANDFLAKE_PG_LEASE_EXCHANGE_H
#define RANDFLAKE_PG_LEASE_EXCHANGE_H

#include "pg/pg.h"

#include "pg/lease.h"

inline constexpr int kLeaseColumns = 5;

// A statement whose answer is one row of these columns: INT8OID, INT4OID or VOIDOID.
struct ExchangeRequest {
    const char* statement;
    int columns;
    Oid types[kLeaseColumns];
};

struct ExchangeAnswer {
    LeaseProblem problem;         // kNone: the coordinator has committed what was asked
    int64 values[kLeaseColumns];  // with kNone; within the range of their types, 0 for VOIDOID
    char text[400];               // otherwise: why, in bytes that may be the coordinator's
};

// Connects with these parameters, as PQconnectdbParams takes them, and asks. Blocks, without a
// limit on time or memory: for a process that others can end (lease_client.cpp). Raises no errors.
void lease_exchange(const char* const* keywords, const char* const* values,
                    const ExchangeRequest& request, ExchangeAnswer* answer);

#endif
