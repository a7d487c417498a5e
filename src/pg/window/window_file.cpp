// Keeps two files in the subdirectory randflake of the data directory:
//   window     the state. A write makes a new file, syncs it, renames it and syncs the directory.
//   identity   a file that is never renamed or rewritten. Its inode and time of birth distinguish
//              this directory from every copy, such as a base backup.
// The postmaster calls these functions at its exit too, so they use plain system calls and allocate
// nothing. The files must be regular files, but the directory may be a link.

#include "pg/window/window_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

using namespace randflake;

#define DIRECTORY "randflake"
static constexpr char kDirectory[] = DIRECTORY;
static constexpr char kWindowFile[] = DIRECTORY "/window";
static constexpr char kNewWindowFile[] = DIRECTORY "/window.new";
static constexpr char kIdentityFile[] = DIRECTORY "/identity";

static constexpr FileFailure kNoFailure{};

static FileFailure sync_directory(const char* path) {
    const int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) return file_failed("open", path);
    FileFailure failure = kNoFailure;
    if (pg_fsync(fd) != 0) failure = file_failed("fsync", path);
    close(fd);
    return failure;
}

static FileFailure write_file(const char* path, const void* bytes, size_t length) {
    int fd;
    FileFailure failure = file_create(path, &fd);
    if (failure.error != 0) return failure;
    errno = ENOSPC;  // the cause of a short write
    if (write(fd, bytes, length) != static_cast<ssize_t>(length))
        failure = file_failed("write", path);
    else if (pg_fsync(fd) != 0)
        failure = file_failed("fsync", path);
    if (close(fd) != 0 && failure.error == 0) failure = file_failed("close", path);
    return failure;
}

// Also syncs an existing directory, because the process that made it may have failed to sync it.
static FileFailure make_directory() {
    if (mkdir(kDirectory, pg_dir_create_mode) != 0 && errno != EEXIST)
        return file_failed("create", kDirectory);
    return sync_directory(".");
}

static FileFailure make_identity() {
    static constexpr char kText[] =
        "This file tells the data directory from its copies. Do not touch it.\n";
    FileFailure failure = make_directory();
    if (failure.error == 0) failure = write_file(kIdentityFile, kText, sizeof kText - 1);
    if (failure.error == 0) failure = sync_directory(kDirectory);
    return failure;
}

FileFailure window_file_identity(FileIdentity* identity) {
    return file_identity(kIdentityFile, identity);
}

// Sets *made if the identity was missing. Then the directory has no state of its own.
static FileFailure read_or_make_identity(FileIdentity* identity, bool* made) {
    FileFailure failure = window_file_identity(identity);
    *made = failure.error == ENOENT;
    if (*made) {
        failure = make_identity();
        if (failure.error == 0) failure = window_file_identity(identity);
    }
    return failure;
}

// Writes the empty state first: an identity without a state would mean that the state is lost.
FileFailure window_file_make(FileIdentity* identity) {
    Assert(!IsUnderPostmaster);
    FileFailure failure = window_file_identity(identity);
    if (failure.error != ENOENT) return failure;
    struct stat status;
    failure = make_directory();
    if (failure.error == 0 && lstat(kWindowFile, &status) != 0)
        failure = window_file_write(WindowState{});
    if (failure.error == 0) failure = make_identity();
    return failure.error == 0 ? window_file_identity(identity) : failure;
}

FileFailure window_file_peek(WindowState* state, StateError* error) {
    int fd;
    const FileFailure failure = file_open(kWindowFile, &fd);
    if (failure.error == ENOENT) {
        *error = StateError::kMissing;
        return kNoFailure;
    }
    if (failure.error != 0) return failure;
    uint8_t bytes[kWindowStateBytes + 1];  // one more byte than valid files
    const ssize_t length = read(fd, bytes, sizeof bytes);
    const FileFailure read_failure = length < 0 ? file_failed("read", kWindowFile) : kNoFailure;
    close(fd);
    if (read_failure.error == 0)
        *error = DecodeWindowState(bytes, static_cast<size_t>(length), state);
    if (read_failure.error == 0 && *error == StateError::kNone && state->write.number == 0)
        *error = StateError::kMissing;
    return read_failure;
}

FileFailure window_file_read(WindowState* state, StateError* error, FileIdentity* identity) {
    bool identity_made;
    FileFailure failure = read_or_make_identity(identity, &identity_made);
    if (failure.error == 0) failure = window_file_peek(state, error);
    struct stat status;
    if (failure.error == 0 && *error == StateError::kMissing && !identity_made &&
        lstat(kWindowFile, &status) != 0)
        *error = StateError::kLost;
    return failure;
}

FileFailure window_file_write(const WindowState& state) {
    uint8_t bytes[kWindowStateBytes];
    EncodeWindowState(state, bytes);
    const FileFailure failure = write_file(kNewWindowFile, bytes, sizeof bytes);
    if (failure.error != 0) return failure;
    if (rename(kNewWindowFile, kWindowFile) != 0) return file_failed("rename", kNewWindowFile);
    return sync_directory(kDirectory);
}
