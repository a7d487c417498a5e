// What the SQL functions share: their definition, and the text form as a datum.

#ifndef RANDFLAKE_PG_SQL_H
#define RANDFLAKE_PG_SQL_H

#include "pg/pg.h"

// Defines the C function behind a SQL function: exported, C linkage, version-1 calling convention.
#define SQL_FUNCTION(name)                    \
    extern "C" {                              \
    PGDLLEXPORT Datum name(PG_FUNCTION_ARGS); \
    PG_FUNCTION_INFO_V1(name);                \
    }                                         \
    Datum name([[maybe_unused]] PG_FUNCTION_ARGS)

// The text form of an identifier, palloc'd.
text* text_of_id(uint64 id);

#endif
