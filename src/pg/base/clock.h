// Reads clocks. Windows and Randflake's seconds use CLOCK_REALTIME_COARSE, which ticks 100 to 1000
// times a second and can trail CLOCK_REALTIME by one tick. The shorter ticks of Snowflake numbers
// use CLOCK_REALTIME. So a window moves up to one coarse tick later than a Snowflake tick.

#pragma once

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
    // time() reads the seconds of CLOCK_REALTIME_COARSE at half the cost: a single load if the
    // kernel maps the clock into the process (vDSO).
    const randflake::UnixSecond now{time(nullptr)};
#else
    const randflake::UnixSecond now{wall_clock().tv_sec};
#endif
    return FromUnix(now);
}

static inline randflake::WallMs precise_wall_clock() {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return {int64{now.tv_sec} * 1000 + now.tv_nsec / 1000000};
}

// Milliseconds until the wall clock shows another second, at least 1.
static inline long milliseconds_to_next_second() {
    return 1000 - wall_clock().tv_nsec / 1000000;
}

// Reads a clock that never steps, to measure how long a call waits.
static inline randflake::SteadyUs steady_microseconds() {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return {int64{now.tv_sec} * 1000000 + now.tv_nsec / 1000};
}
static inline randflake::SteadyMs steady_clock() {
    return {steady_microseconds().count / 1000};
}

// Reads a clock that cannot be set and that counts time while the machine is suspended.
static inline randflake::UptimeMs uptime_clock() {
    struct timespec now;
#ifdef CLOCK_BOOTTIME
    clock_gettime(CLOCK_BOOTTIME, &now);
#else
    clock_gettime(CLOCK_MONOTONIC, &now);
#endif
    return {int64{now.tv_sec} * 1000 + now.tv_nsec / 1000000};
}
