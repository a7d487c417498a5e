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
 * client is logged as the operation reply.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
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

static const char* outcome(long result) { return result < 0 ? strerror(errno) : "ok"; }

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
    const char* file = strrchr(path, '/');
    if (file == NULL) return NULL;
    const int inside = file - path >= 10 && strncmp(file - 10, "/randflake", 10) == 0;
    return inside || strcmp(file, "/randflake") == 0 || strcmp(file, "/pgdata") == 0 ? file + 1
                                                                                     : NULL;
}

#define NEXT(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

ssize_t read(int fd, void* bytes, size_t length) {
    char path[4096];
    const char* file = watched(fd, path, sizeof path);
    if (file == NULL) return raw_read(fd, bytes, length);
    const int error = intercept("read", file);
    const ssize_t result = error != 0 ? (errno = error, -1) : raw_read(fd, bytes, length);
    log_operation("read", file, outcome(result));
    return result;
}

ssize_t write(int fd, const void* bytes, size_t length) {
    char path[4096];
    const char* file = watched(fd, path, sizeof path);
    if (file == NULL) return raw_write(fd, bytes, length);
    const int error = intercept("write", file);
    ssize_t result;
    if (error == -1)
        result = raw_write(fd, bytes, length / 2);
    else
        result = error != 0 ? (errno = error, -1) : raw_write(fd, bytes, length);
    log_operation("write", file, error == -1 ? "half" : outcome(result));
    return result;
}

int fsync(int fd) {
    char path[4096];
    const char* file = watched(fd, path, sizeof path);
    if (file == NULL) return NEXT(fsync)(fd);
    const int error = intercept("fsync", file);
    const int result = error != 0 ? (errno = error, -1) : NEXT(fsync)(fd);
    log_operation("fsync", file, outcome(result));
    return result;
}

int rename(const char* from, const char* to) {
    if (strncmp(from, "randflake/", 10) != 0) return NEXT(rename)(from, to);
    const int error = intercept("rename", from + 10);
    const int result = error != 0 ? (errno = error, -1) : NEXT(rename)(from, to);
    log_operation("rename", from + 10, outcome(result));
    return result;
}

/* A backend's message with rows begins with a row description. */
ssize_t send(int fd, const void* bytes, size_t length, int flags) {
    if (length > 0 && *(const char*)bytes == 'T') log_operation("reply", "client", "ok");
    return NEXT(send)(fd, bytes, length, flags);
}
