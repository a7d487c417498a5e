#include "pg/file_identity.h"

#include <fcntl.h>
#include <sys/stat.h>

using randflake::FileIdentity;

FileFailure file_failed(const char* action, const char* path) {
    FileFailure failure{errno, "", ""};
    strlcpy(failure.action, action, sizeof failure.action);
    strlcpy(failure.path, path, sizeof failure.path);
    return failure;
}

FileFailure file_identity(const char* path, FileIdentity* identity) {
    struct statx status;
    if (statx(AT_FDCWD, path, AT_SYMLINK_NOFOLLOW, STATX_INO | STATX_BTIME | STATX_CTIME,
              &status) != 0)
        return file_failed("stat", path);
    const bool has_birth = (status.stx_mask & STATX_BTIME) != 0;
    const struct statx_timestamp time = has_birth ? status.stx_btime : status.stx_ctime;
    identity->inode = status.stx_ino;
    identity->device = has_birth ? 0 : uint64_t{status.stx_dev_major} << 32 | status.stx_dev_minor;
    identity->birth_nanoseconds = time.tv_sec * INT64CONST(1000000000) + time.tv_nsec;
    return FileFailure{};
}
