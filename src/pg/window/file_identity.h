// Tells files from their copies, opens regular files only, and reports failed operations.

#pragma once

#include "pg/base/pg.h"

#include "core/window/window_state.h"

// In place of errno: something other than a regular file has this name.
inline constexpr int kNotRegular = -1;

// A failed operation on a file: errno or kNotRegular, the operation, and the path. errno is 0
// without a failure. The texts are copies because shared memory keeps a failure: a pointer into the
// library is valid only in processes forked from the one that stored it.
struct FileFailure {
    int error;
    char action[8];  // "open", "fsync", ...
    char path[32];   // relative to the data directory, or the name of a shared memory object
};

FileFailure file_failed(const char* action, const char* path);

// Returns the reason in English for messages; palloc'd. An errno gives the system's text.
const char* file_failure_text(const FileFailure& failure);

// Other processes of the server's user may have put any file there. So a call never waits for the
// other end of a FIFO, and follows no link in the last component.
FileFailure file_open(const char* path, int* fd);

// Opens a new file for writing, and removes a regular file of this name. An old file keeps its
// contents if it has another name too, or failed to reach the disk.
FileFailure file_create(const char* path, int* fd);

// Reads inode and birth time of a regular file. `path` is relative to the data directory.
FileFailure file_identity(const char* path, randflake::FileIdentity* identity);
