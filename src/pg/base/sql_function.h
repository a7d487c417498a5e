// Defines SQL functions in C, and checks how many columns they return. An upgrade replaces the
// library before ALTER EXTENSION updates the SQL objects of a database. Until then, a C function
// could write more columns than its row has.

#pragma once

#include "pg/base/pg.h"

// Begins the definition of the C function behind a SQL function. The function's body follows.
#define SQL_FUNCTION(name)                    \
    extern "C" {                              \
    PGDLLEXPORT Datum name(PG_FUNCTION_ARGS); \
    PG_FUNCTION_INFO_V1(name);                \
    }                                         \
    Datum name([[maybe_unused]] PG_FUNCTION_ARGS)

// Returns the blessed row type in `context`. Raises an ERROR unless it has `columns` columns.
TupleDesc result_row(FunctionCallInfo fcinfo, int columns, MemoryContext context);

// Raises the same ERROR as result_row, for functions that call InitMaterializedSRF instead.
void require_columns(TupleDesc row, int columns);
