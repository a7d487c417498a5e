// Shares a function between the coordinator and the look for coordinators.

#pragma once

// Returns the identity of this data directory, timeline and database as text; palloc'd.
char* coordinator_identity();
