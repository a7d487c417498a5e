// The identity that tells a file from its copies; the opening of files that must be regular ones;
// and the report of a file operation that failed.

#ifndef RANDFLAKE_PG_WINDOW_FILE_IDENTITY_H
#define RANDFLAKE_PG_WINDOW_FILE_IDENTITY_H

#include "pg/base/pg.h"

#include "core/window/window_state.h"

// In place of errno: something else than a regular file has this name.
inline constexpr int kNotRegular = -1;

// A failed operation on a file: errno or kNotRegular, what was tried, and the path. errno is 0 for
// no failure. The texts are copies because this is kept in shared memory: a pointer to a string of
// the library is valid only in processes that were forked from the one that stored it.
struct FileFailure {
    int error;
    char action[8];  // "open", "fsync", ...
    char path[32];   // relative to the data directory, or the name of a shared memory object
};

// The failure of the last system call, with its errno.
FileFailure file_failed(const char* action, const char* path);

// Why, in English for messages; palloc'd. After errno it is the system's text.
const char* file_failure_text(const FileFailure& failure);

// Other processes of the server's user may have put anything there. So nothing is waited for, as
// the other end of a FIFO is, and no link in the last component is followed.

// For reading.
FileFailure file_open(const char* path, int* fd);

// For writing: a file of its own, so that what had another name too, or failed to reach the disk,
// stays as it is. A regular file of this name is removed.
FileFailure file_create(const char* path, int* fd);

// Inode and time of birth of a regular file. `path` is relative to the data directory.
FileFailure file_identity(const char* path, randflake::FileIdentity* identity);

#endif
