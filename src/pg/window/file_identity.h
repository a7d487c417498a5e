// Distinguishes files from their copies, opens only regular files, and describes failures.

#pragma once

#include "pg/base/pg.h"

#include "core/window/origin.h"

// FileFailure::error has one of these values if the path is not a regular file, if it is not a
// marker of the server's user, or if another process holds the file's lock.
inline constexpr int kNotRegular = -1;
inline constexpr int kNotOwn = -2;
inline constexpr int kLocked = -3;

// Describes a failed operation on a file. The struct contains texts instead of pointers, because it
// may be in shared memory, and the library's address differs among processes.
struct FileFailure {
    int error;       // errno or a value above; 0: no failure
    char action[8];  // "open", "fsync", ...
    char path[40];   // absolute, or relative to the data directory
};

FileFailure file_failed(const char* action, const char* path);

// Returns why the operation failed, as text for a message; palloc'd.
const char* file_failure_text(const FileFailure& failure);

// Raises the ERROR that this operation failed. `hint` is a text; `detail` may be null.
[[noreturn]] void raise_file_failure(const FileFailure& failure, const char* detail,
                                     const char* hint);

// Opens a regular file for reading. Other processes of the server's user may have put any file
// there, so the call never blocks on a FIFO and follows no link in the path's last component.
FileFailure file_open(const char* path, int* fd);

// Creates a file for writing. Removes an old file of this name instead of overwriting it, because
// the old file may have a second name, or may have lost pages after a failed fsync.
FileFailure file_create(const char* path, int* fd);

// Reads inode and creation time. If there is no creation time, reads inode, device and ctime.
FileFailure file_identity(const char* path, randflake::FileIdentity* identity);

// Returns the 64-bit FNV-1a hash (Fowler, Noll, Vo) of a directory's identity. Copies differ in it.
uint64 directory_number(const randflake::Origin& origin);
