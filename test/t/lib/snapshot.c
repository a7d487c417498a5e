/*
 * A directory on a snapshot of its file system. For LD_PRELOAD: lets the file randflake/identity of
 * the server have the inode and the time of birth of the file that RANDFLAKE_SNAPSHOT_OF names, as
 * in a copy of the block device. All else, locks too, stays that of the server's own file.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

int statx(int dir, const char* restrict path, int flags, unsigned mask, struct statx* restrict to) {
    const char* original = getenv("RANDFLAKE_SNAPSHOT_OF");
    struct statx there;
    const int result = (int)syscall(SYS_statx, dir, path, flags, mask, to);
    if (result != 0 || original == NULL || strcmp(path, "randflake/identity") != 0) return result;
    if (syscall(SYS_statx, AT_FDCWD, original, flags, mask, &there) != 0) abort();
    to->stx_ino = there.stx_ino;
    to->stx_btime = there.stx_btime;
    return 0;
}
