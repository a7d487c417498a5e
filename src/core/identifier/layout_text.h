// Parses a layout's text. The text is a name, or gives the epoch and the fields, top bits first:
//
//   time=38:1ms, node=15, sequence=10, epoch=2017-12-21
//
// Widths are in bits. A colon and the unit of a tick, in ms or s, follow the width of the time. The
// unit must divide one second and the epoch. The epoch is a date, a timestamp in UTC (2010-11-04
// 01:42:54.657, optionally with T instead of the blank and a Z at the end) or a number of Unix
// milliseconds. Blanks before and after fields and separators are ignored.

#pragma once

#include <cstddef>
#include <cstdint>

#include "core/identifier/layout.h"

namespace randflake {

struct NamedLayout {
    const char* name;
    Layout layout;
};

// Discord's own layout has 42 bits of time, and Instagram's has 41. Each has one bit more than the
// layout here: the sign of a bigint. Discord's identifiers first set this bit in 2084, and
// Instagram's in 2046. Baidu's epoch is the one in its generator's code: 2016-05-20 in China. The
// generator reads a configured epoch in the time zone of its process.
inline constexpr NamedLayout kNamedLayouts[] = {
    {"twitter", {1288834974657, 41, 10, 12, 1}},
    {"discord", {1420070400000, 41, 10, 12, 1}},
    {"instagram", {1314220021721, 40, 13, 10, 1}},
    {"sonyflake", {1409529600000, 39, 16, 8, 10, 24, 0, 16}},
    {"baidu", {1463673600000, 28, 22, 13, 1000}},
};
static_assert([] {
    for (const NamedLayout& named : kNamedLayouts)
        if (!named.layout.tiles_seconds()) return false;
    return true;
}());

// ParseLayout refuses a layout beyond these bounds. Node id and sequence number each fit in an SQL
// integer. The last tick ends before PostgreSQL's last timestamp, in the year 294276.
inline constexpr int kMaxLayoutBits = 63;
inline constexpr int kMaxFieldBits = 31;
inline constexpr int64_t kMaxLayoutEndMs = 9224318016000000;

enum class LayoutError : uint8_t {
    kNone,
    kEmpty,
    kUnknownName,
    kNotAField,
    kUnknownField,
    kRepeatedField,
    kMissingField,
    kBadWidth,
    kBadUnit,
    kUnitNotInSecond,
    kEpochNotOnTick,
    kNoBits,
    kFieldTooWide,
    kTooManyBits,
    kBadEpoch,
    kTooLong,
};

// Returns an English sentence without its final period.
const char* LayoutErrorText(LayoutError error) noexcept;

struct LayoutResult {
    LayoutError error;
    Layout layout;    // with kNone
    size_t position;  // where the wrong part begins
    size_t length;    // of the wrong part; 0 if the whole text is wrong
};

LayoutResult ParseLayout(const char* text, size_t length) noexcept;

// Writes a layout's description as NUL-terminated text. ParseLayout accepts this text.
inline constexpr size_t kMaxLayoutText = 128;
void FormatLayout(const Layout& layout, char buffer[kMaxLayoutText]) noexcept;

}  // namespace randflake
