// All seconds come from CLOCK_REALTIME_COARSE, which ticks 100 to 1000 times a second. It can trail
// CLOCK_REALTIME by one of its ticks, so the two are never mixed: windows and Randflake's seconds
// are read from the coarse clock, the shorter ticks of Snowflake numbers from CLOCK_REALTIME. A
// window therefore moves on up to one tick of the coarse clock later than a Snowflake tick would.

#ifndef RANDFLAKE_PG_BASE_CLOCK_H
#define RANDFLAKE_PG_BASE_CLOCK_H

#include "pg/base/pg.h"

#include <time.h>

#include "core/identifier/layout.h"

static inline struct timespec wall_clock() {
    struct timespec now;
#ifdef CLOCK_REALTIME_COARSE
    clock_gettime(CLOCK_REALTIME_COARSE, &now);
#else
    clock_gettime(CLOCK_REALTIME, &now);
#endif
    return now;
}

// Seconds since the Randflake epoch; negative before it.
static inline int64 wall_clock_seconds() {
#ifdef __GLIBC__
    // The seconds of the same clock at half the price: a single load where the kernel maps it into
    // the process (vDSO), a reading of CLOCK_REALTIME_COARSE elsewhere.
    const int64 unix_seconds = time(nullptr);
#else
    const int64 unix_seconds = wall_clock().tv_sec;
#endif
    return unix_seconds - randflake::kWindowEpochSeconds;
}

// Unix milliseconds, to the millisecond.
static inline int64 precise_milliseconds() {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return int64{now.tv_sec} * 1000 + now.tv_nsec / 1000000;
}

// Milliseconds until the wall clock shows another second, at least 1.
static inline long milliseconds_to_next_second() {
    return 1000 - wall_clock().tv_nsec / 1000000;
}

// From a clock that never steps, for measuring how long a call has waited.
static inline int64 steady_microseconds() {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return int64{now.tv_sec} * 1000000 + now.tv_nsec / 1000;
}
static inline int64 steady_milliseconds() {
    return steady_microseconds() / 1000;
}

// From a clock that cannot be set, and that counts the time for which the machine was suspended.
static inline int64 uptime_milliseconds() {
    struct timespec now;
#ifdef CLOCK_BOOTTIME
    clock_gettime(CLOCK_BOOTTIME, &now);
#else
    clock_gettime(CLOCK_MONOTONIC, &now);
#endif
    return int64{now.tv_sec} * 1000 + now.tv_nsec / 1000000;
}

#endif
