// Defines SQL functions in C, and checks their columns: after an upgrade of the library, a database
// with old SQL objects may expect rows with fewer columns than a function would write.

#pragma once

#include "pg/base/pg.h"

// Declares the C function behind a SQL function. The definition follows this macro.
#define SQL_FUNCTION(name)                    \
    extern "C" {                              \
    PGDLLEXPORT Datum name(PG_FUNCTION_ARGS); \
    PG_FUNCTION_INFO_V1(name);                \
    }                                         \
    static_assert(true)

// Returns the function's blessed row type in `context`. Raises an ERROR unless it has so many
// columns.
TupleDesc result_row(FunctionCallInfo fcinfo, int columns, MemoryContext context);

// Raises the same ERROR. For functions that call InitMaterializedSRF instead of result_row.
void require_columns(TupleDesc row, int columns);
