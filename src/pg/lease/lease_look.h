// The coordinator's functions and the look for coordinators share this.

#pragma once

// Returns the identity of this data directory, timeline and database as text; palloc'd.
char* coordinator_identity();
