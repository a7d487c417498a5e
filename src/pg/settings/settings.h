// Declares the randflake.* settings.

#pragma once

#include "pg/base/pg.h"

#include "pg/base/error_text.h"

namespace randflake {
struct SkewRange;
}

extern int setting_node_id;         // first node id, -1 when unset
extern int setting_node_count;      // node ids in a range
extern int setting_spare_ranges;    // the number of further ranges
extern int setting_max_wait;        // milliseconds
extern int setting_lease_duration;  // seconds
extern char* setting_coordinator;   // connection string, empty when unset
extern char* setting_registry;      // connection string for static node ids
extern int setting_max_clock_skew;  // milliseconds

// Call these while the server preloads the library. They define and check the settings of
// pg/identifier too. Invalid or contradictory settings raise FATAL.
void settings_define();
void settings_check();

// Returns the smallest and the largest value of "randflake.max_clock_skew" since the postmaster's
// start. Includes the value of this process, which may have read the settings before the
// postmaster.
randflake::SkewRange setting_skew_range();

static inline int static_node_count() { return setting_node_count * (1 + setting_spare_ranges); }

// Returns the error with which the next start will fail; null if none is known.
const ErrorText* next_start_error();
