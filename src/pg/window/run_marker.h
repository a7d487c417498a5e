// Keeps the last write of this data directory's state since the machine booted in the machine's
// memory. No rollback of the disk affects it; see WriteRecord in core/window/window_state.h.

#pragma once

#include "pg/base/pg.h"

#include "core/window/window_state.h"
#include "pg/window/file_identity.h"

// Returns whether this is a regular file of this user with one name.
bool is_own_file(int fd);

// Reads the machine's boot; zero if unknown.
void read_boot_id(uint64 boot[2]);

// Returns the mark; 0 if unknown.
uint64 run_marker_read(const randflake::Origin& origin);

// Sets this mark, or removes it and sets *mark to 0. After a failure the former mark may remain.
FileFailure run_marker_write(const randflake::Origin& origin, uint64* mark);
