// Reads and writes the window state in the file randflake/window of the data directory.

#pragma once

#include "pg/base/pg.h"

#include "core/window/window_codec.h"
#include "pg/window/file_identity.h"

// Reads the state and this directory's identity. If the identity file is missing, makes it. *error
// says what is wrong with the state. The result says which file operation failed.
FileFailure window_file_read(randflake::WindowState* state, randflake::StateError* error,
                             randflake::FileIdentity* identity);

// Only reads the state, and creates no file.
FileFailure window_file_peek(randflake::WindowState* state, randflake::StateError* error);

// Reads this directory's identity. Returns a failure if the directory has none.
FileFailure window_file_identity(randflake::FileIdentity* identity);

// Reads this directory's identity. Makes missing files.
FileFailure window_file_make(randflake::FileIdentity* identity);

// Writes the state durably. After a failure the disk may have either the old state or the new one.
FileFailure window_file_write(const randflake::WindowState& state);
