// The identity that tells a file from its copies, and the report of a file operation that failed.

#ifndef RANDFLAKE_PG_FILE_IDENTITY_H
#define RANDFLAKE_PG_FILE_IDENTITY_H

#include "pg/pg.h"

#include "core/window_state.h"

// A failed operation on a file: errno, what was tried, and the path. errno is 0 for no failure.
// The texts are copies because this is kept in shared memory: a pointer to a string of the library
// is valid only in processes that were forked from the one that stored it.
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
