// Checks preconditions of SQL functions. Each function raises an ERROR with the remedy if this
// server does not meet its condition. Conditions stay while a server runs: a backend checks once.

#pragma once

#include "pg/base/pg.h"

#include "pg/base/error_text.h"

void require_preload();
void require_secret();

// Requires that this server can generate: preloaded, with a node id and a secret.
void require_generator();

// Returns the missing setting that keeps a preloaded server from generating; null without one.
const ErrorText* missing_setting();

// Requires that this server can generate, and that known node ids fit in 53-bit identifiers.
void require_generator53();

// Requires that node ids from `first_node_id` on fit in the layout of 53-bit identifiers.
void require_nodes53(int64 first_node_id);

// Logs a line if none of the server's node ids fit in this layout.
void log_nodes53();

// Requires that this server can generate Snowflake numbers, which need no secret: preloaded, with
// node ids that fit in the layout.
void require_snowflake();

// Requires that node ids from `first_node_id` on fit in the layout of Snowflake numbers.
void require_snowflake_nodes(int64 first_node_id);
