// The randflake.* settings. Those with postmaster context are fixed while the server runs.

#ifndef RANDFLAKE_PG_MEMORY_SETTINGS_H
#define RANDFLAKE_PG_MEMORY_SETTINGS_H

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

// Called while the server preloads the library. FATAL, so that the server does not start, on a
// setting whose value cannot work, and on several that cannot work together.
void settings_define();
void settings_check();

// For the postmaster when shared memory was made: shows there the smallest and the largest value of
// "randflake.max_clock_skew" since its start, and every later one.
void skew_init_shared();

// All static node ids that the server is configured with: from setting_node_id on.
static inline int static_node_count() {
    return setting_node_count * (1 + setting_spare_ranges);
}

// What will keep the server from starting again with the settings that the last reload found; null
// when nothing is known that will.
const ErrorText* next_start_error();

#endif
