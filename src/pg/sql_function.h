// How a SQL function is defined in C.

#ifndef RANDFLAKE_PG_SQL_FUNCTION_H
#define RANDFLAKE_PG_SQL_FUNCTION_H

#include "pg/pg.h"

// Defines the C function behind a SQL function: exported, C linkage, version-1 calling convention.
#define SQL_FUNCTION(name)                    \
    extern "C" {                              \
    PGDLLEXPORT Datum name(PG_FUNCTION_ARGS); \
    PG_FUNCTION_INFO_V1(name);                \
    }                                         \
    Datum name([[maybe_unused]] PG_FUNCTION_ARGS)

#endif
