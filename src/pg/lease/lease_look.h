// Identifies a coordinator.

#pragma once

// Returns the identity of this data directory, timeline and database as text; palloc'd.
char* coordinator_identity();

// Registers the launcher of the search for coordinators, if the server has static node ids.
void look_register_worker();
