// Checks preconditions of SQL functions. A failed check raises an ERROR with the remedy. A
// condition that is met stays met while the server runs, so a backend checks it once.

#pragma once

#include "pg/base/pg.h"

#include "pg/base/error_text.h"

void require_preload();
void require_secret();

// Requires a preloaded library, a node id and a secret.
void require_generator();

// Returns the error if the library is preloaded, but a setting that generation needs is missing.
// Otherwise returns null.
const ErrorText* missing_setting();

// Checks what require_generator checks, and that the node ids, if known, fit in 53-bit identifiers.
void require_generator53();

// Requires that the server's node ids, from `first_node_id` on, fit in 53-bit identifiers.
void require_nodes53(int64 first_node_id);

// Logs a line if not all node ids of the server fit in 53-bit identifiers.
void log_nodes53();

// Requires a preloaded library, and node ids that fit in the layout of Snowflake numbers.
void require_snowflake();

void require_snowflake_nodes(int64 first_node_id);
