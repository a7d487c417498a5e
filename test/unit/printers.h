#pragma once

#include "core/generator/generator.h"
#include "core/identifier/layout.h"
#include "test.h"

namespace randflake {

template <typename Kind, typename Length>
std::ostream& operator<<(std::ostream& out, const Time<Kind, Length>& time) {
    return out << time.count;
}

template <typename Kind, typename Length>
constexpr bool operator==(const Time<Kind, Length>& time, int64_t number) {
    return time.count == number;
}
template <typename Kind, typename Length>
constexpr auto operator<=>(const Time<Kind, Length>& time, int64_t number) {
    return time.count <=> number;
}

inline void PrintTo(const Fields& fields, std::ostream* out) {
    *out << "timestamp " << fields.timestamp << " node " << fields.node_id << " sequence "
         << fields.sequence;
}

inline void PrintTo(const Window& window, std::ostream* out) {
    *out << "[" << window.start.count << ", " << window.end.count << ")";
}

inline void PrintTo(Outcome outcome, std::ostream* out) {
    static constexpr const char* kNames[] = {
        "reserved",      "exhausted", "clock behind",  "clock before epoch", "clock after end",
        "window closed", "no word",   "before window", "window ended",       "not in layout"};
    *out << kNames[static_cast<int>(outcome)];
}

}  // namespace randflake
