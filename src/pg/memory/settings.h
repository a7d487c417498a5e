// The randflake.* settings. Those with postmaster context are fixed while the server runs.

#pragma once

#include "pg/base/pg.h"

#include "pg/base/error_text.h"

extern int setting_node_id;         // first node id, -1 when unset
extern int setting_node_count;      // node ids from there
extern int setting_spare_ranges;    // further ranges of node_count node ids
extern int setting_max_wait;        // milliseconds
extern int setting_lease_duration;  // seconds
extern char* setting_coordinator;   // connection string, empty when unset
extern char* setting_registry;      // the same
extern int setting_max_clock_skew;  // milliseconds

// Call while the server preloads the library. Impossible values, and settings that contradict each
// other, are FATAL and stop the start.
void settings_define();
void settings_check();

// Call in the postmaster after making shared memory. Publishes the smallest and the largest value
// of "randflake.max_clock_skew" since the postmaster's start, and every later value.
void skew_init_shared();

// Returns the number of configured static node ids, from setting_node_id on.
static inline int static_node_count() {
    return setting_node_count * (1 + setting_spare_ranges);
}

// Returns the known problem of the next start with the last reload's settings; null without one.
const ErrorText* next_start_error();
