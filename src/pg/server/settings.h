// The randflake.* settings. Those with postmaster context are fixed while the server runs.

#ifndef RANDFLAKE_PG_SERVER_SETTINGS_H
#define RANDFLAKE_PG_SERVER_SETTINGS_H

#include "pg/base/pg.h"

#include "pg/base/error_text.h"

extern int setting_node_id;         // first node id, -1 when unset
extern int setting_node_count;      // node ids from there
extern int setting_spare_ranges;    // further ranges of node_count node ids
extern int setting_max_wait;        // milliseconds
extern int setting_lease_duration;  // seconds
extern char* setting_coordinator;   // connection string, empty when unset
extern int setting_max_clock_skew;  // milliseconds

// Defines the settings and checks their values; called while the server preloads the library.
// FATAL on a value that cannot work, so that the server does not start with it.
void settings_init();

// All static node ids that the server is configured with: from setting_node_id on.
static inline int static_node_count() {
    return setting_node_count * (1 + setting_spare_ranges);
}

// What will keep the server from starting again with the settings that the last reload found; null
// when nothing is known that will.
const ErrorText* next_start_error();

#endif
