// Reads clocks. The server's windows and Randflake's seconds use CLOCK_REALTIME_COARSE, which is
// cheaper but can lag by up to 10 ms. Snowflake numbers have shorter ticks and use CLOCK_REALTIME.

#pragma once

#include "pg/base/pg.h"

#include <time.h>

#include "core/base/time.h"

static inline struct timespec wall_clock() {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME_COARSE, &now);
    return now;
}

static inline randflake::Second wall_clock_second() {
#ifdef __GLIBC__
    // time() returns the seconds of CLOCK_REALTIME_COARSE at half the cost of clock_gettime().
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

// Returns the milliseconds until the wall clock's next second: 1 to 1000.
static inline long milliseconds_to_next_second() { return 1000 - wall_clock().tv_nsec / 1000000; }

// Reads a clock that never steps, for measuring durations.
static inline randflake::SteadyUs steady_microseconds() {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return {int64{now.tv_sec} * 1000000 + now.tv_nsec / 1000};
}
static inline randflake::SteadyMs steady_clock() { return {steady_microseconds().count / 1000}; }

// Reads a clock that never steps and that also counts while the machine is suspended.
static inline randflake::UptimeMs uptime_clock() {
    struct timespec now;
    clock_gettime(CLOCK_BOOTTIME, &now);
    return {int64{now.tv_sec} * 1000 + now.tv_nsec / 1000000};
}
