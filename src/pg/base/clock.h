// All seconds come from CLOCK_REALTIME_COARSE, which ticks 100 to 1000 times a second. It can trail
// CLOCK_REALTIME by one of its ticks, so the two are never mixed: windows and Randflake's seconds
// are read from the coarse clock, the shorter ticks of Snowflake numbers from CLOCK_REALTIME. A
// window therefore moves on up to one tick of the coarse clock later than a Snowflake tick would.

#ifndef RANDFLAKE_PG_BASE_CLOCK_H
#define RANDFLAKE_PG_BASE_CLOCK_H

#include "pg/base/pg.h"

#include <time.h>

#include "core/base/time.h"

static inline struct timespec wall_clock() {
    struct timespec now;
#ifdef CLOCK_REALTIME_COARSE
    clock_gettime(CLOCK_REALTIME_COARSE, &now);
#else
    clock_gettime(CLOCK_REALTIME, &now);
#endif
    return now;
}

static inline randflake::Second wall_clock_second() {
#ifdef __GLIBC__
    // The seconds of the same clock at half the price: a single load where the kernel maps it into
    // the process (vDSO), a reading of CLOCK_REALTIME_COARSE elsewhere.
    const randflake::UnixSecond now{time(nullptr)};
#else
    const randflake::UnixSecond now{wall_clock().tv_sec};
#endif
    return FromUnix(now);
}

// To the millisecond.
static inline randflake::WallMs precise_wall_clock() {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return {int64{now.tv_sec} * 1000 + now.tv_nsec / 1000000};
}

// Milliseconds until the wall clock shows another second, at least 1.
static inline long milliseconds_to_next_second() {
    return 1000 - wall_clock().tv_nsec / 1000000;
}

// From a clock that never steps, for measuring how long a call has waited.
static inline randflake::SteadyUs steady_microseconds() {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return {int64{now.tv_sec} * 1000000 + now.tv_nsec / 1000};
}
static inline randflake::SteadyMs steady_clock() {
    return {steady_microseconds().count / 1000};
}

// From a clock that cannot be set, and that counts the time for which the machine was suspended.
static inline randflake::UptimeMs uptime_clock() {
    struct timespec now;
#ifdef CLOCK_BOOTTIME
    clock_gettime(CLOCK_BOOTTIME, &now);
#else
    clock_gettime(CLOCK_MONOTONIC, &now);
#endif
    return {int64{now.tv_sec} * 1000 + now.tv_nsec / 1000000};
}

#endif
