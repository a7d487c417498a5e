// Times as types, so that a time of one clock, or since one epoch, is no time of another. Each is a
// number that costs nothing beside it. This is the one place that converts between them.
//
// A difference of two times of a kind is a plain number of its unit, and so is what is added to
// one. Plain are also times at the borders: packed words, ticks and fields of a layout, what is on
// disk, values of SQL.

#ifndef RANDFLAKE_CORE_BASE_TIME_H
#define RANDFLAKE_CORE_BASE_TIME_H

#include <compare>
#include <cstdint>
#include <type_traits>

namespace randflake {

template <typename Kind>
struct Time {
    int64_t count;

    friend constexpr auto operator<=>(const Time&, const Time&) = default;
    friend constexpr Time operator+(Time time, int64_t duration) { return {time.count + duration}; }
    friend constexpr Time operator-(Time time, int64_t duration) { return {time.count - duration}; }
    friend constexpr int64_t operator-(Time a, Time b) { return a.count - b.count; }
};

using WallMs = Time<struct WallClock>;      // Unix milliseconds of the wall clock
using UptimeMs = Time<struct UptimeClock>;  // of a clock that cannot be set, and counts suspension
using SteadyMs = Time<struct SteadyClock>;  // of a clock that never steps: for waiting
using Second = Time<struct EpochSeconds>;   // since kWindowEpoch; negative before
using UnixSecond = Time<struct UnixSeconds>;

static_assert(std::is_trivial_v<Second> && sizeof(Second) == sizeof(int64_t));

// Windows are in seconds since this instant in every layout: 2024-10-27 03:33:20 UTC.
inline constexpr int64_t kSecondMs = 1000;
inline constexpr UnixSecond kWindowEpoch{1730000000};
inline constexpr int64_t kWindowEpochMs = kWindowEpoch.count * kSecondMs;

constexpr int64_t FloorDivide(int64_t dividend, int64_t divisor) noexcept {
    return dividend / divisor - (dividend % divisor < 0 ? 1 : 0);
}

constexpr UnixSecond ToUnix(Second second) noexcept {
    return kWindowEpoch + second.count;
}
constexpr Second FromUnix(UnixSecond second) noexcept {
    return {second - kWindowEpoch};
}
// The instant at which a second begins.
constexpr WallMs StartOf(Second second) noexcept {
    return {kWindowEpochMs + second.count * kSecondMs};
}
// The second that an instant lies in.
constexpr Second SecondOf(WallMs instant) noexcept {
    return {FloorDivide(instant.count - kWindowEpochMs, kSecondMs)};
}

}  // namespace randflake

#endif
