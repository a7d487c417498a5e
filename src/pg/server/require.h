// Checks preconditions of SQL functions. A failed check raises an ERROR with the remedy. A
// condition that is met stays met while the server runs, so a backend checks it once.

#pragma once

#include "pg/base/pg.h"

#include "pg/base/error_text.h"

// Returns whether this server has preloaded the library, and so has its shared memory.
bool is_preloaded();

void require_preload();
void require_secret();

// Requires a preloaded library, a node id and a secret.
void require_generator();

// Returns the error if the library is preloaded, but a setting that generation needs is missing.
// Otherwise returns null.
const ErrorText* missing_setting();

// Returns whether a node id is configured, or node ids are leased.
bool has_node_id();

// Checks what require_generator checks, and that the node ids, if known, fit in 53-bit identifiers.
void require_generator53();

// Requires that the server's node ids, from `first_node_id` on, fit in 53-bit identifiers.
void require_nodes53(int64 first_node_id);

// Logs a missing setting, or else if not all node ids of the server fit in 53-bit identifiers.
void log_requirements();

// Requires a preloaded library, and node ids that fit in the layout of Snowflake numbers.
void require_snowflake();

void require_snowflake_nodes(int64 first_node_id);
