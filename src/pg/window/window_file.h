// The window state on disk: randflake/window in the data directory.

#ifndef RANDFLAKE_PG_WINDOW_WINDOW_FILE_H
#define RANDFLAKE_PG_WINDOW_WINDOW_FILE_H

#include "pg/base/pg.h"

#include "core/window/window_state.h"
#include "pg/window/file_identity.h"

// Reads the state and this directory's identity, making the identity file if there is none.
// *error says what is wrong with the state; the result says what kept it from being read at all.
FileFailure window_file_read(randflake::WindowState* state, randflake::StateError* error,
                             randflake::FileIdentity* identity);

// Reads the state alone, and makes nothing.
FileFailure window_file_look(randflake::WindowState* state, randflake::StateError* error);

// This directory's identity; a failure if it has none, too.
FileFailure window_file_identity(randflake::FileIdentity* identity);

// Takes the lock of this directory, which every process has that the caller forks from then on, and
// which lasts as long as one of them. The lock is of the identity file, so a hard-linked copy has
// the same. With `makes`, both files are made where there are none.
bool window_file_lock(bool makes);
// For a process that is to outlive them.
void window_file_leave_lock();

// Makes the state durable: when this returns without a failure, it survives a crash of the machine.
// After a failure the disk may hold the old state or the new one.
FileFailure window_file_write(const randflake::WindowState& state);

#endif
