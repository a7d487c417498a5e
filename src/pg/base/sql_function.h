// Defines SQL functions in C, and checks the number of columns that they return. A package upgrade
// replaces the library for all databases, but each database keeps its SQL objects until ALTER
// EXTENSION UPDATE. Until then a function could write more columns than its row type has.

#pragma once

#include "pg/base/pg.h"

// Declares the C function behind a SQL function. The definition follows this macro.
#define SQL_FUNCTION(name)                    \
    extern "C" {                              \
    PGDLLEXPORT Datum name(PG_FUNCTION_ARGS); \
    PG_FUNCTION_INFO_V1(name);                \
    }                                         \
    static_assert(true)

// Returns the blessed descriptor of the function's result row, allocated in `context`. Raises an
// ERROR unless the row has `columns` columns.
TupleDesc result_row(FunctionCallInfo fcinfo, int columns, MemoryContext context);

// Raises the same ERROR. For functions that call InitMaterializedSRF instead of result_row.
void require_columns(TupleDesc row, int columns);
