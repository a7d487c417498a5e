/*
 * A wall clock that a test sets. For LD_PRELOAD: replaces time, gettimeofday, and clock_gettime of
 * CLOCK_REALTIME and CLOCK_REALTIME_COARSE. Other clocks, timers and file times are the system's.
 *
 * RANDFLAKE_CLOCK names a file, which a program maps at its start: its processes all see every
 * change at once. The file holds one 64-bit word, twice:
 *
 *   2 * n       the clock runs, n ns ahead of the system's
 *   2 * n + 1   the clock stands still, n ns after the beginning of 1970
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

enum { kWords = 2 };
static const int64_t kNanoseconds = 1000000000; /* of a second */

/* NULL until the program has started. */
static const int64_t* setting;

__attribute__((constructor)) static void map_setting(void) {
    const char* path = getenv("RANDFLAKE_CLOCK");
    const int fd = path == NULL ? -1 : open(path, O_RDONLY | O_CLOEXEC);
    const void* words =
        fd < 0 ? MAP_FAILED : mmap(NULL, kWords * sizeof *setting, PROT_READ, MAP_SHARED, fd, 0);
    if (words == MAP_FAILED) {
        perror("the file named by RANDFLAKE_CLOCK");
        _exit(127);
    }
    close(fd);
    setting = words;
}

/* A write fills the first word, then the second. While they differ, it is in progress. */
static int64_t read_setting(void) {
    int64_t second, first;
    do {
        second = __atomic_load_n(&setting[1], __ATOMIC_ACQUIRE);
        first = __atomic_load_n(&setting[0], __ATOMIC_ACQUIRE);
    } while (first != second);
    return first;
}

static int read_clock(clockid_t clock, struct timespec* now) {
    /* libc's function has this name too. */
    const int result = (int)syscall(SYS_clock_gettime, clock, now);
    if (result != 0 || setting == NULL ||
        (clock != CLOCK_REALTIME && clock != CLOCK_REALTIME_COARSE))
        return result;

    const int64_t word = read_setting();
    const int64_t nanoseconds = word >> 1;
    const int64_t shown =
        word & 1 ? nanoseconds : now->tv_sec * kNanoseconds + now->tv_nsec + nanoseconds;
    now->tv_sec = shown / kNanoseconds;
    now->tv_nsec = shown % kNanoseconds;
    return 0;
}

int clock_gettime(clockid_t clock, struct timespec* now) { return read_clock(clock, now); }

/* Like libc's, from the coarse clock. */
time_t time(time_t* result) {
    struct timespec now;
    read_clock(CLOCK_REALTIME_COARSE, &now);
    if (result != NULL) *result = now.tv_sec;
    return now.tv_sec;
}

int gettimeofday(struct timeval* restrict now, void* restrict zone) {
    struct timespec precise;
    (void)zone;
    read_clock(CLOCK_REALTIME, &precise);
    now->tv_sec = precise.tv_sec;
    now->tv_usec = precise.tv_nsec / 1000;
    return 0;
}
