// How a SQL function is defined in C, and the row that one returns, checked against what the
// library fills in.
//
// Library and SQL objects are updated by different hands: one by installing a package, the other by
// ALTER EXTENSION in each database. A row of another width would be filled with wild values.

#ifndef RANDFLAKE_PG_BASE_SQL_FUNCTION_H
#define RANDFLAKE_PG_BASE_SQL_FUNCTION_H

#include "pg/base/pg.h"

// Announces the C function behind a SQL function, whose definition follows with the same name:
// exported, C linkage, version-1 calling convention.
#define SQL_FUNCTION(name)                    \
    extern "C" {                              \
    PGDLLEXPORT Datum name(PG_FUNCTION_ARGS); \
    PG_FUNCTION_INFO_V1(name);                \
    }                                         \
    static_assert(true)

// The blessed descriptor of the row that the function returns, in this memory context; ERROR unless
// it has that many columns.
TupleDesc result_row(FunctionCallInfo fcinfo, int columns, MemoryContext context);

// The same for a function that has called InitMaterializedSRF.
void require_columns(TupleDesc row, int columns);

#endif
