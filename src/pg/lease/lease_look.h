// Identifies a coordinator.

#pragma once

// Returns the identity of this data directory, timeline and database as text; palloc'd.
char* coordinator_identity();
