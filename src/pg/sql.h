// What the SQL functions share: their definition, and the text form.

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
char* cstring_of_id(uint64 id);

// The identifier of a text form. A malformed one is an ERROR, or false when `context` is a caller's
// that collects errors.
bool id_of_text(const char* data, size_t length, Node* context, uint64* id);

#endif
