// Lets the file of claims in /dev/shm look as if another user owned it, or as if /dev/shm were full
// or read-only. The file FOREIGN_CLAIM contains "owner" or an errno; an empty file changes nothing.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char* fault(void) {
    static char text[16];
    FILE* file = fopen(getenv("FOREIGN_CLAIM"), "r");
    memset(text, 0, sizeof text);
    if (file != NULL) {
        if (fgets(text, sizeof text, file) == NULL) text[0] = '\0';
        fclose(file);
    }
    return text;
}

int shm_open(const char* name, int flags, mode_t mode) {
    int (*real)(const char*, int, mode_t) = dlsym(RTLD_NEXT, "shm_open");
    if (strncmp(name, "/randflake-nodes.", 17) == 0 && (errno = atoi(fault())) != 0) return -1;
    return real(name, flags, mode);
}

int fstat(int fd, struct stat* status) {
    int (*real)(int, struct stat*) = dlsym(RTLD_NEXT, "fstat");
    char link[40], path[64] = "";
    int result = real(fd, status);
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    if (readlink(link, path, sizeof path - 1) > 0 &&
        strncmp(path, "/dev/shm/randflake-nodes.", 25) == 0 && strcmp(fault(), "owner") == 0)
        status->st_uid++;
    return result;
}
