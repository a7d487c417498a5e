// Reads and writes the window state in the file randflake/window of the data directory.

#pragma once

#include "pg/base/pg.h"

#include "core/window/window_state.h"
#include "pg/window/file_identity.h"

// Reads the state and this directory's identity. If the identity file is missing, makes it. *error
// says what is wrong with the state. The result says which file operation failed.
FileFailure window_file_read(randflake::WindowState* state, randflake::StateError* error,
                             randflake::FileIdentity* identity);

// Only reads the state, and creates no file.
FileFailure window_file_look(randflake::WindowState* state, randflake::StateError* error);

// Reads this directory's identity. Returns a failure if the directory has none.
FileFailure window_file_identity(randflake::FileIdentity* identity);

// Locks the data directory for this process and its later children. A hard-linked copy of the
// directory shares the lock. If `makes` is true, makes missing files. Returns whether the lock is
// held.
bool window_file_lock(bool makes);
// Closes this process's copy of the lock. Call this in a child process that may outlive the server.
void window_file_leave_lock();

// Writes the state durably. After a failure the disk may have either the old state or the new one.
FileFailure window_file_write(const randflake::WindowState& state);
