// Declares the server's layout of Snowflake identifiers, and parses layouts.

#pragma once

#include "pg/base/pg.h"

#include "core/identifier/layout.h"

// snowflake_generate() uses this layout. The layout is set when the server preloads the library.
extern char* setting_snowflake_layout;  // as configured
extern randflake::Layout snowflake_layout;

void snowflake_layout_define_setting();

// Parses the setting. Raises FATAL for a malformed setting, so the server does not start.
void snowflake_layout_load();

// Parses a layout's name or description. Malformed text raises an error of level `elevel`. The
// error's message consists of `message` and the quoted text.
randflake::Layout parse_layout(const char* text, size_t length, const char* message, int elevel);
