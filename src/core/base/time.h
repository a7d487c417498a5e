// Defines one type of time for each clock and epoch, so that the compiler rejects any mixture. Each
// type is as cheap as the 64-bit number that it holds. Only this file converts between types.
//
// The difference of two times is a duration in their unit. A duration can be added to a time only
// if both have the same unit. In `time + 5`, the number becomes a duration in the unit of `time`. A
// duration never converts implicitly to a number or to another unit. Packed words, layouts, the
// file on disk and SQL values store times as plain numbers.

#pragma once

#include <compare>
#include <cstdint>
#include <type_traits>

namespace randflake {

template <typename Unit> struct Duration {
    int64_t count;

    Duration() = default;  // cppcheck-suppress uninitMemberVar ; trivial, as plain numbers are
    constexpr Duration(int64_t number) : count(number) {}

    friend constexpr auto operator<=>(const Duration&, const Duration&) = default;
    friend constexpr Duration operator+(Duration a, Duration b) { return a.count + b.count; }
    friend constexpr Duration operator-(Duration a, Duration b) { return a.count - b.count; }
    friend constexpr Duration operator*(Duration a, int64_t factor) { return a.count * factor; }
    friend constexpr Duration operator/(Duration a, int64_t divisor) { return a.count / divisor; }
};

using Seconds = Duration<struct SecondUnit>;
using Ms = Duration<struct MsUnit>;
using Us = Duration<struct UsUnit>;
using Ticks = Duration<struct TickUnit>;

template <typename Kind, typename Length> struct Time {
    int64_t count;

    friend constexpr auto operator<=>(const Time&, const Time&) = default;
    friend constexpr Time operator+(Time a, Length length) { return {a.count + length.count}; }
    friend constexpr Time operator-(Time a, Length length) { return {a.count - length.count}; }
    friend constexpr Length operator-(Time a, Time b) { return a.count - b.count; }
};

using WallMs = Time<struct WallClock, Ms>;      // Unix milliseconds of the wall clock
using UptimeMs = Time<struct UptimeClock, Ms>;  // of a clock that cannot be set; counts suspension
using SteadyMs = Time<struct SteadyClock, Ms>;  // of a clock that never steps, for waiting
using SteadyUs = Time<struct SteadyClock, Us>;
using Second = Time<struct EpochSeconds, Seconds>;  // since kWindowEpoch; negative before
using UnixSecond = Time<struct UnixSeconds, Seconds>;
using Tick = Time<struct LayoutTicks, Ticks>;  // of a layout, since its epoch; negative before

static_assert(std::is_trivial_v<Second> && sizeof(Second) == sizeof(int64_t));
static_assert(std::is_trivial_v<Seconds> && sizeof(Seconds) == sizeof(int64_t));

// In all layouts, windows count seconds from 2024-10-27 03:33:20 UTC.
inline constexpr int64_t kSecondMs = 1000;
inline constexpr UnixSecond kWindowEpoch{1730000000};
inline constexpr int64_t kWindowEpochMs = kWindowEpoch.count * kSecondMs;

constexpr int64_t FloorDivide(int64_t dividend, int64_t divisor) noexcept {
    return dividend / divisor - (dividend % divisor < 0 ? 1 : 0);
}

constexpr Ms InMs(Seconds seconds) noexcept { return seconds.count * kSecondMs; }
// Rounds up to whole seconds.
constexpr Seconds SecondsFor(Ms length) noexcept {
    return FloorDivide(length.count + kSecondMs - 1, kSecondMs);
}

constexpr UnixSecond ToUnix(Second second) noexcept { return kWindowEpoch + second.count; }
constexpr Second FromUnix(UnixSecond second) noexcept { return {(second - kWindowEpoch).count}; }
constexpr WallMs StartOf(Second second) noexcept {
    return {kWindowEpochMs + second.count * kSecondMs};
}
constexpr Second SecondOf(WallMs instant) noexcept {
    return {FloorDivide(instant.count - kWindowEpochMs, kSecondMs)};
}

}  // namespace randflake
