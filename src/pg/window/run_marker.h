// Keeps in memory the number of the state's last write (WriteRecord in core/window/window_state.h).

#pragma once

#include "pg/base/pg.h"

#include "pg/window/file_identity.h"

// Returns whether the file is regular, belongs to the server's user and has exactly one hard link.
bool is_own_file(int fd);

// Reads the machine's boot id (0 if unknown).
void read_boot_id(uint64 boot[2]);

// Returns the number; 0 if unknown.
uint64 run_marker_read(const randflake::Origin& origin);

// Makes the marker and locks it for this process and its later children. A server with leased node
// ids holds this lock as long as one of its processes lives. A hard-linked copy or a snapshot of
// the directory has the same marker, and only the holder of the lock reads it, writes it and
// resumes leases.
FileFailure run_marker_lock(const randflake::Origin& origin);
// Closes this process's copy of the lock. Call this in a child that may outlive the server.
void run_marker_leave();

// Like run_marker_read and run_marker_write, for a server with leased node ids. Without the lock,
// the number is unknown, and the marker stays as it is.
uint64 held_marker_read(const randflake::Origin& origin);
FileFailure held_marker_write(const randflake::Origin& origin, uint64* number);

// Sets the number. If this is impossible, removes the former number and sets *number to 0. After a
// failure the former number may remain.
FileFailure run_marker_write(const randflake::Origin& origin, uint64* number);
