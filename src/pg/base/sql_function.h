// Defines SQL functions in C, and checks how many columns they return. An upgrade replaces the
// library before ALTER EXTENSION updates the SQL objects of a database. Until then, a C function
// could write more columns than its row has.

#pragma once

#include "pg/base/pg.h"

// Declares the C function behind a SQL function. The definition follows this macro.
#define SQL_FUNCTION(name)                    \
    extern "C" {                              \
    PGDLLEXPORT Datum name(PG_FUNCTION_ARGS); \
    PG_FUNCTION_INFO_V1(name);                \
    }                                         \
    static_assert(true)

// Returns the blessed row type in `context`. Raises an ERROR unless it has `columns` columns.
TupleDesc result_row(FunctionCallInfo fcinfo, int columns, MemoryContext context);

// Raises the same ERROR as result_row, for functions that call InitMaterializedSRF instead.
void require_columns(TupleDesc row, int columns);
