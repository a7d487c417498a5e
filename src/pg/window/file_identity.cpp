// Opens and identifies files, and returns failures of system calls.

#include "pg/window/file_identity.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

using randflake::FileIdentity;

FileFailure file_failed(const char* action, const char* path) {
    Assert(errno != 0 && strlen(path) < sizeof FileFailure::path);
    Assert(strlen(action) < sizeof FileFailure::action);
    FileFailure failure{errno, "", ""};
    strlcpy(failure.action, action, sizeof failure.action);
    strlcpy(failure.path, path, sizeof failure.path);
    return failure;
}

static FileFailure not_regular(const char* path) {
    errno = kNotRegular;
    return file_failed("open", path);
}

const char* file_failure_text(const FileFailure& failure) {
    Assert(failure.error != 0);
    if (failure.error == kNotRegular) return psprintf("\"%s\" is not a regular file", failure.path);
    if (failure.error == kNotOwn)
        return psprintf("\"%s\" is not a file of the server's user", failure.path);
    if (failure.error == kLocked) return "another process holds it";
    errno = failure.error;
    return psprintf("%m");
}

void raise_file_failure(const FileFailure& failure, const char* detail, const char* hint) {
    errno = failure.error;
    ereport(ERROR, (errcode_for_file_access(),
                    errmsg("could not %s file \"%s\": %s", failure.action, failure.path,
                           file_failure_text(failure)),
                    detail != nullptr ? errdetail("%s", detail) : 0, errhint("%s", hint)));
    pg_unreachable();
}

// Returns the error of open(), or kNotRegular if the path is not a regular file.
static FileFailure open_failed(const char* action, const char* path) {
    const FileFailure failure = file_failed(action, path);
    struct stat status;
    return lstat(path, &status) == 0 && !S_ISREG(status.st_mode) ? not_regular(path) : failure;
}

FileFailure file_open(const char* path, int* fd) {
    *fd = open(path, O_RDONLY | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC);
    if (*fd < 0) return open_failed("open", path);
    struct stat status;
    if (fstat(*fd, &status) == 0 && S_ISREG(status.st_mode)) return FileFailure{};
    close(*fd);
    return not_regular(path);
}

FileFailure file_create(const char* path, int* fd) {
    // With O_EXCL, open() neither blocks nor follows links.
    constexpr int kFlags = O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC;
    *fd = open(path, kFlags, pg_file_create_mode);
    struct stat status;
    if (*fd < 0 && errno == EEXIST && lstat(path, &status) == 0 && S_ISREG(status.st_mode) &&
        unlink(path) == 0)
        *fd = open(path, kFlags, pg_file_create_mode);
    return *fd < 0 ? open_failed("create", path) : FileFailure{};
}

FileFailure file_identity(const char* path, FileIdentity* identity) {
    struct statx status;
    if (statx(AT_FDCWD, path, AT_SYMLINK_NOFOLLOW,
              STATX_TYPE | STATX_INO | STATX_BTIME | STATX_CTIME, &status) != 0)
        return file_failed("stat", path);
    if (!S_ISREG(status.stx_mode)) return not_regular(path);
    const bool has_birth = (status.stx_mask & STATX_BTIME) != 0;
    const struct statx_timestamp time = has_birth ? status.stx_btime : status.stx_ctime;
    identity->inode = status.stx_ino;
    identity->device = has_birth ? 0 : uint64_t{status.stx_dev_major} << 32 | status.stx_dev_minor;
    identity->birth_nanoseconds = time.tv_sec * INT64CONST(1000000000) + time.tv_nsec;
    return FileFailure{};
}

uint64 directory_number(const randflake::Origin& origin) {
    Assert(origin.system_identifier != 0 && origin.identity.inode != 0);
    const uint64 parts[] = {origin.system_identifier, origin.identity.inode, origin.identity.device,
                            static_cast<uint64>(origin.identity.birth_nanoseconds)};
    uint64 hash = UINT64CONST(0xcbf29ce484222325);
    for (const uint64 part : parts)
        for (int shift = 0; shift < 64; shift += 8)
            hash = (hash ^ (part >> shift & 0xff)) * UINT64CONST(0x100000001b3);
    return hash;
}
