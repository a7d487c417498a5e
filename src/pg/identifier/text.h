// Writes the text form of identifiers, and quotes input for messages.

#pragma once

#include "pg/base/pg.h"

text* text_of_id(uint64 id);

// Writes the text form after a prefix and _. Raises an ERROR for a malformed prefix.
text* prefixed_text_of_id(uint64 id, const text* prefix);

// Output and input of the type; see core/identifier/id_text.h. The output is palloc'd. Malformed
// input is an ERROR, or false if the caller collects errors in `context`.
char* type_text_of_id(uint64 id);
bool id_of_type_text(const char* input, Node* context, uint64* id);

// Quotes input for a message, truncated at a character boundary since input may be huge; palloc'd.
const char* quoted(const char* data, size_t length);
