// Writes the text form of identifiers, and quotes input for messages.

#pragma once

#include "pg/base/pg.h"

text* text_of_id(uint64 id);

// Returns the prefix, an underscore and the text form. Raises an ERROR for a malformed prefix.
text* prefixed_text_of_id(uint64 id, const text* prefix);

// These functions write and read the text of values of type randflake (core/identifier/id_text.h).
// For malformed text, the reader raises an ERROR, or returns false if `context` collects errors.
char* type_text_of_id(uint64 id);
bool id_of_type_text(const char* input, Node* context, uint64* id);

// Returns at most 128 bytes of `data` for a message, cut at a character boundary; palloc'd.
const char* quoted(const char* data, size_t length);
