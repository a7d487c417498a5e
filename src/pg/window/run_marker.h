// Keeps in memory the mark of the state's last write (WriteRecord in core/window/window_state.h).

#pragma once

#include "pg/base/pg.h"

#include "core/window/window_state.h"
#include "pg/window/file_identity.h"

// Returns whether the file is regular, belongs to the server's user and has exactly one hard link.
bool is_own_file(int fd);

// Reads the machine's boot id (0 if unknown).
void read_boot_id(uint64 boot[2]);

// Returns the mark; 0 if unknown.
uint64 run_marker_read(const randflake::Origin& origin);

// Sets the mark. If this is impossible, removes the former mark and sets *mark to 0. After a
// failure the former mark may remain.
FileFailure run_marker_write(const randflake::Origin& origin, uint64* mark);
