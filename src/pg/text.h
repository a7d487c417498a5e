// Identifiers in text form, and input as messages quote it.

#ifndef RANDFLAKE_PG_TEXT_H
#define RANDFLAKE_PG_TEXT_H

#include "pg/pg.h"

// The text form of an identifier, palloc'd.
text* text_of_id(uint64 id);
char* cstring_of_id(uint64 id);

// The identifier of a text form. A malformed one is an ERROR, or false when `context` is a caller's
// that collects errors.
bool id_of_text(const char* data, size_t length, Node* context, uint64* id);

// Input for a message, truncated at a character's end: the input may be huge. palloc'd.
const char* quoted(const char* data, size_t length);

#endif
