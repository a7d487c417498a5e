/*
 * Watches a server's operations on the files of its windows, and makes them fail or wait on demand.
 * For LD_PRELOAD; RANDFLAKE_WATCH names a directory:
 *
 *   log                    a line for each operation: process id, operation, file, result
 *   fault.OPERATION.FILE   while it exists, the operation fails with the errno in it; with -1, half
 *                          of a write is written
 *   gate.OPERATION.FILE    while it exists, the operation waits
 *
 * Operations are read, write, fsync, rename; file names omit the directory. A row that is sent to a
 * client is logged as the operation reply. Operations on the file of claims in /dev/shm, `claims`,
 * are open and owner, which are not logged: if owner fails, another user seems to own the file.
 *
 * RANDFLAKE_SNAPSHOT_OF names the file `identity` of another data directory: the server's own file
 * has the same inode and time of birth, as in a copy of the block device. All else, locks too,
 * stays that of the server's own file.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* The raw system calls, which are not watched themselves. */
static long raw_write(int fd, const void* bytes, size_t length) {
    return syscall(SYS_write, fd, bytes, length);
}

static long raw_read(int fd, void* bytes, size_t length) {
    return syscall(SYS_read, fd, bytes, length);
}

static const char* watch_path(char* path, size_t size, const char* prefix, const char* operation,
                              const char* file) {
    const char* directory = getenv("RANDFLAKE_WATCH");
    if (directory == NULL) return NULL;
    if (operation == NULL)
        snprintf(path, size, "%s/%s", directory, prefix);
    else
        snprintf(path, size, "%s/%s.%s.%s", directory, prefix, operation, file);
    return path;
}

/* Leaves errno alone. */
static void log_operation(const char* operation, const char* file, const char* result) {
    char path[4096], line[512];
    const int saved = errno;
    if (watch_path(path, sizeof path, "log", NULL, NULL) != NULL) {
        const int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
        const int length =
            snprintf(line, sizeof line, "%d %s %s %s\n", (int)getpid(), operation, file, result);
        if (fd < 0 || raw_write(fd, line, (size_t)length) != length) abort();
        close(fd);
    }
    errno = saved;
}

/* Waits at a gate; returns the errno of a fault, or 0. */
static int intercept_operation(const char* operation, const char* file) {
    char path[4096], text[16];
    if (watch_path(path, sizeof path, "gate", operation, file) == NULL) return 0;
    if (access(path, F_OK) == 0) log_operation(operation, file, "waits");
    while (access(path, F_OK) == 0) usleep(1000);
    watch_path(path, sizeof path, "fault", operation, file);
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return 0;
    const long length = raw_read(fd, text, sizeof text - 1);
    close(fd);
    text[length > 0 ? length : 0] = '\0';
    return atoi(text);
}

/* The same, without changing errno: a successful operation does not set it. */
static int intercept(const char* operation, const char* file) {
    const int saved = errno;
    const int error = intercept_operation(operation, file);
    errno = saved;
    return error;
}

/* The file of a descriptor; NULL if it is not watched. */
static const char* watched(int fd, char* path, size_t size) {
    char link[64];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    const int saved = errno;
    const ssize_t length = readlink(link, path, size - 1);
    errno = saved;
    if (length < 0) return NULL;
    path[length] = '\0';
    if (strncmp(path, "/dev/shm/randflake-nodes.", 25) == 0) return "claims";
    const char* file = strrchr(path, '/');
    if (file == NULL) return NULL;
    const int inside = file - path >= 10 && strncmp(file - 10, "/randflake", 10) == 0;
    return inside || strcmp(file, "/randflake") == 0 || strcmp(file, "/pgdata") == 0 ? file + 1
                                                                                     : NULL;
}

#define NEXT(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

/* Runs an operation on a file, unless it must fail; with -1, `half` takes its place. */
#define OPERATE(operation, file, call, half)                                                    \
    if (file == NULL) return call;                                                              \
    const int error = intercept(operation, file);                                               \
    const long result = error == 0 ? call : error == -1 ? half : (errno = error, -1);           \
    log_operation(operation, file, error == -1 ? "half" : result < 0 ? strerror(errno) : "ok"); \
    return result

ssize_t read(int fd, void* bytes, size_t length) {
    char path[4096];
    const char* file = watched(fd, path, sizeof path);
    OPERATE("read", file, raw_read(fd, bytes, length), -1);
}

ssize_t write(int fd, const void* bytes, size_t length) {
    char path[4096];
    const char* file = watched(fd, path, sizeof path);
    OPERATE("write", file, raw_write(fd, bytes, length), raw_write(fd, bytes, length / 2));
}

int fsync(int fd) {
    char path[4096];
    const char* file = watched(fd, path, sizeof path);
    OPERATE("fsync", file, NEXT(fsync)(fd), -1);
}

int rename(const char* from, const char* to) {
    const char* file = strncmp(from, "randflake/", 10) == 0 ? from + 10 : NULL;
    OPERATE("rename", file, NEXT(rename)(from, to), -1);
}

int shm_open(const char* name, int flags, mode_t mode) {
    const int error = strncmp(name, "/randflake-nodes.", 17) == 0 ? intercept("open", "claims") : 0;
    return error != 0 ? (errno = error, -1) : NEXT(shm_open)(name, flags, mode);
}

int fstat(int fd, struct stat* status) {
    char path[4096];
    const int result = NEXT(fstat)(fd, status);
    const char* file = watched(fd, path, sizeof path);
    if (file != NULL && strcmp(file, "claims") == 0 && intercept("owner", file)) status->st_uid++;
    return result;
}

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

/* A backend's message with rows begins with a row description. */
ssize_t send(int fd, const void* bytes, size_t length, int flags) {
    if (length > 0 && *(const char*)bytes == 'T') log_operation("reply", "client", "ok");
    return NEXT(send)(fd, bytes, length, flags);
}
