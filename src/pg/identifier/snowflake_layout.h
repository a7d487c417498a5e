// The layout of Snowflake identifiers: the server's, and how any is read from text.

#ifndef RANDFLAKE_PG_IDENTIFIER_SNOWFLAKE_LAYOUT_H
#define RANDFLAKE_PG_IDENTIFIER_SNOWFLAKE_LAYOUT_H

#include "pg/base/pg.h"

#include "core/identifier/layout.h"

// Of snowflake_generate(): fixed once the library is preloaded.
extern char* setting_snowflake_layout;  // as configured
extern randflake::Layout snowflake_layout;

void snowflake_layout_define_setting();

// Parses the setting; FATAL on one that cannot be read, so that the server does not start with it.
void snowflake_layout_load();

// A layout by name or description. A text that cannot be read is an error of this level, which
// quotes the text after `message`.
randflake::Layout parse_layout(const char* text, size_t length, const char* message, int elevel);

#endif
