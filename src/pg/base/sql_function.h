// How a SQL function is defined in C.

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

#endif
