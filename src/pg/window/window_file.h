// Reads and writes the window state on disk, randflake/window in the data directory.

#pragma once

#include "pg/base/pg.h"

#include "core/window/window_state.h"
#include "pg/window/file_identity.h"

// Reads the state and this directory's identity, and makes a missing identity file. *error is the
// state's error; the result is a failure to read the state at all.
FileFailure window_file_read(randflake::WindowState* state, randflake::StateError* error,
                             randflake::FileIdentity* identity);

// Reads only the state, and makes no file.
FileFailure window_file_look(randflake::WindowState* state, randflake::StateError* error);

// Reads this directory's identity. Returns a failure without one.
FileFailure window_file_identity(randflake::FileIdentity* identity);

// Locks this directory. Processes that the caller forks later inherit the lock, which lasts until
// the last of them ends. The lock is on the identity file, so a hard-linked copy shares it. With
// `makes`, makes missing files.
bool window_file_lock(bool makes);
// Call this in a process that outlives those that need the lock.
void window_file_leave_lock();

// Makes the state durable: without a failure, it survives a crash of the machine. After a failure
// the disk may have the old state or the new one.
FileFailure window_file_write(const randflake::WindowState& state);
