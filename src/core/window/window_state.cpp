// Maintains the written ends, and chooses ranges of node ids by them.

#include "core/window/window_state.h"

namespace randflake {

Second WindowState::EndFor(const NodeRange& nodes) const noexcept {
    RANDFLAKE_ASSERT(IsValid(nodes) && end_count <= kMaxWrittenEnds);
    Second end{0};
    for (uint32_t i = 0; i < end_count; i++)
        if (ends[i].nodes.Overlaps(nodes)) end = std::max(end, ends[i].end);
    return end;
}

Second WindowState::OpensAt(const NodeRange& nodes) const noexcept {
    return std::max(EndFor(nodes), floor);
}

Second WindowState::LastEnd() const noexcept {
    Second last{0};
    for (uint32_t i = 0; i < end_count; i++) last = std::max(last, ends[i].end);
    return last;
}

Second WindowState::LeasesEnd() const noexcept { return std::max(leases[0].end, leases[1].end); }

uint32_t WindowState::PlaceOf(const NodeRange& nodes, const NodeRanges& configured) noexcept {
    uint32_t at = 0;
    while (at < end_count && ends[at].nodes != nodes) at++;
    if (at == end_count) {
        if (end_count == kMaxWrittenEnds) {
            const auto last_other = [&](uint32_t before) {
                while (configured.IndexOf(ends[--before].nodes) < configured.count) {
                }
                return before;
            };
            at = last_other(kMaxWrittenEnds);
            WrittenEnd& stays = ends[last_other(at)];
            stays = {stays.nodes.With(ends[at].nodes), std::max(stays.end, ends[at].end)};
        } else {
            end_count++;
        }
    }
    return at;
}

void WindowState::UsedByOthers(const NodeRange& nodes, Second end,
                               const NodeRanges& configured) noexcept {
    if (end > EndFor(nodes)) ends[PlaceOf(nodes, configured)] = {nodes, end};
    RANDFLAKE_ASSERT(EndFor(nodes) >= end);
}

void WindowState::Record(const NodeRange& nodes, const Window& window,
                         const NodeRanges& configured) noexcept {
    const Second before = EndFor(nodes);
    if (recorded_start != window.start || ends[0].nodes != nodes) {
        RANDFLAKE_ASSERT(window.start >= before);
        recorded_start = window.start;
        end_before = before;
    }
    RANDFLAKE_ASSERT(window.start < window.end && window.end <= kNoSecond);
    const WrittenEnd recorded{nodes, std::max(window.end, before)};
    for (uint32_t at = PlaceOf(nodes, configured); at > 0; at--) ends[at] = ends[at - 1];
    ends[0] = recorded;
    RANDFLAKE_ASSERT(EndFor(nodes) >= before && EndFor(nodes) >= window.end);
}

void WindowState::TakeBack(Second end) noexcept {
    if (recorded_start == Second{0}) return;
    RANDFLAKE_ASSERT(end_count >= 1);
    ends[0].end = std::min(ends[0].end, std::max(end, end_before));
    recorded_start = {0};
    RANDFLAKE_ASSERT(EndFor(ends[0].nodes) >= end_before);
}

uint32_t LastRange(const WindowState& state, const NodeRanges& ranges) noexcept {
    for (uint32_t i = 0; i < state.end_count; i++)
        if (const uint32_t range = ranges.IndexOf(state.ends[i].nodes); range < ranges.count)
            return range;
    return 0;
}

uint32_t ChooseRange(const WindowState& state, const NodeRanges& ranges, uint32_t in_use,
                     const Second (&earliest)[kMaxRanges], Second now) noexcept {
    RANDFLAKE_ASSERT(in_use < ranges.count);
    uint32_t chosen = ranges.count;
    uint32_t used_before = 0;  // the number of ranges used since the chosen range
    for (uint32_t i = 0; i < ranges.count; i++) {
        const NodeRange nodes = ranges.At(i);
        if (i == in_use || now < std::max(state.OpensAt(nodes), earliest[i])) continue;
        uint32_t at = 0;
        while (at < state.end_count && state.ends[at].nodes != nodes) at++;
        if (at == state.end_count) return i;
        if (chosen == ranges.count || at > used_before) {
            chosen = i;
            used_before = at;
        }
    }
    return chosen;
}

}  // namespace randflake
