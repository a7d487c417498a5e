// Defines SQL functions in C, and checks the width of the rows they return. A package installs the
// library, but ALTER EXTENSION updates the SQL objects in each database. In between the widths may
// differ, and the function would write beyond its row.

#pragma once

#include "pg/base/pg.h"

// Declares the C function behind a SQL function; its definition with the same name follows.
#define SQL_FUNCTION(name)                    \
    extern "C" {                              \
    PGDLLEXPORT Datum name(PG_FUNCTION_ARGS); \
    PG_FUNCTION_INFO_V1(name);                \
    }                                         \
    static_assert(true)

// Returns the blessed descriptor of the function's result row, in this memory context. Raises an
// ERROR unless the row has this number of columns.
TupleDesc result_row(FunctionCallInfo fcinfo, int columns, MemoryContext context);

// Raises this ERROR for a function that has called InitMaterializedSRF.
void require_columns(TupleDesc row, int columns);
