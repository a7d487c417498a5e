// Identifiers in text form, and input as messages quote it.

#ifndef RANDFLAKE_PG_IDENTIFIER_TEXT_H
#define RANDFLAKE_PG_IDENTIFIER_TEXT_H

#include "pg/base/pg.h"

// The text form of an identifier, palloc'd.
text* text_of_id(uint64 id);

// The same after a prefix and _; an ERROR when it is not a prefix.
text* prefixed_text_of_id(uint64 id, const text* prefix);

// Output and input of the type; see core/identifier/id_text.h. The output is palloc'd. A malformed
// input is an ERROR, or false when `context` is a caller's that collects errors.
char* type_text_of_id(uint64 id);
bool id_of_type_text(const char* input, Node* context, uint64* id);

// Input for a message, truncated at a character's end: the input may be huge. palloc'd.
const char* quoted(const char* data, size_t length);

#endif
