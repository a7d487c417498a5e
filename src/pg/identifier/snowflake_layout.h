// Declares the server's layout of Snowflake identifiers, and parses layouts.

#pragma once

#include "pg/base/pg.h"

#include "core/identifier/layout.h"

// snowflake_generate() uses this layout, fixed once the server has preloaded the library.
extern char* setting_snowflake_layout;  // as configured
extern randflake::Layout snowflake_layout;

void snowflake_layout_define_setting();

// Parses the setting. A malformed setting is FATAL and stops the server's start.
void snowflake_layout_load();

// Reads a layout by name or description. A malformed text is an error of level `elevel`, which
// quotes the text after `message`.
randflake::Layout parse_layout(const char* text, size_t length, const char* message, int elevel);
