// What tells a file from its copies, and how a file operation that failed is reported.

#ifndef RANDFLAKE_PG_FILE_IDENTITY_H
#define RANDFLAKE_PG_FILE_IDENTITY_H

#include "pg/pg.h"

#include "core/window_state.h"

// Where an operation on the files failed: errno, what was tried, on which path. No failure: 0.
// With text of its own, because it is kept in shared memory: a pointer to a string of the library
// means nothing in a process that was not forked from the one that stored it.
struct FileFailure {
    int error;
    char action[8];  // "open", "fsync", ...
    char path[32];   // relative to the data directory, or the name of a shared memory object
};

// The failure of the last system call, with its errno.
FileFailure file_failed(const char* action, const char* path);

// Inode and time of birth. `path` is relative to the data directory.
FileFailure file_identity(const char* path, randflake::FileIdentity* identity);

#endif
