// If DecodeWindowState accepts some bytes, EncodeWindowState must produce the same bytes again.
// After any start, no window may open before the end that the file records for the same node ids.
// The input is a Start and a file. The fuzzer also tries the file with a corrected checksum, so
// that DecodeWindowState does not refuse the checksum.

#include "core/identifier/layout.h"
#include "core/window/resumption.h"
#include "fuzz.h"

namespace randflake {
namespace {

constexpr Second kMaxEnd = kNoSecond;
constexpr uint32_t kMaxNodes = static_cast<uint32_t>(kRandflake.max_node_id()) + 1;

uint32_t Crc32c(const uint8_t* bytes, size_t length) {
    uint32_t crc = ~uint32_t{0};
    for (size_t i = 0; i < length; i++) {
        crc ^= bytes[i];
        for (int bit = 0; bit < 8; bit++) crc = (crc & 1) != 0 ? crc >> 1 ^ 0x82f63b78u : crc >> 1;
    }
    return ~crc;
}

void CheckStart(StateError error, const WindowState& found, const Start& start) {
    const StartPlan plan = PlanStart(error, found, start);
    const Second opens_at = plan.state.OpensAt(start.nodes);
    Check(opens_at <= kMaxEnd);
    Check(plan.state.origin == start.origin && plan.state.stop == Stop{});
    const SkewRange skew = error == StateError::kNone ? start.skew.With(found.skew) : start.skew;
    Check(plan.held_off_until <= kMaxEnd && (opens_at >= plan.held_off_until || plan.proven));
    Check(plan.opens_at_ms == (plan.proven ? UptimeMs{} : start.uptime_ms + skew.largest_ms));
    if (error != StateError::kNone) {
        Check(plan.finding ==
              (error == StateError::kMissing ? Finding::kFirstUse : Finding::kUnreadable));
        return;
    }
    Check(opens_at >= found.EndFor(start.nodes));
    Check(!(plan.proven || start.after_crash_restart) || plan.finding != Finding::kOwn ||
          plan.state.floor >= found.floor);
    Check(!plan.proven || (plan.finding == Finding::kOwn && found.write.number == start.marker &&
                           found.write.number != 0 && found.stop.nodes.Covers(start.nodes)));
    for (const Lease& lease : found.leases)
        Check(!Resumes(found, start, lease) ||
              (plan.finding == Finding::kOwn && lease.id > 0 &&
               lease.nodes.count == start.leased_nodes && lease.end <= kMaxEnd));

    WindowState next = plan.state;
    if (opens_at == kMaxEnd) return;  // no window can open
    next.Record(start.nodes, Window{opens_at, kMaxEnd});
    Check(next.end_count >= 1 && next.end_count <= kMaxWrittenEnds);
    Check(next.EndFor(start.nodes) == kMaxEnd);
    next.TakeBack(opens_at);
    Check(next.EndFor(start.nodes) >= opens_at);
    for (uint32_t i = 0; i < found.end_count; i++)
        Check(next.EndFor(found.ends[i].nodes) >= found.ends[i].end);
    uint8_t bytes[kWindowStateBytes];
    EncodeWindowState(next, bytes);
    WindowState again{};
    Check(DecodeWindowState(bytes, sizeof bytes, &again) == StateError::kNone);
    Check(again.EndFor(start.nodes) == next.EndFor(start.nodes) && again.origin == start.origin);
}

// For each bit that is set in `other`, one part of the start differs from the state.
void CheckFile(const uint8_t* bytes, size_t size, uint8_t other, Start start) {
    WindowState found{};
    const StateError error = DecodeWindowState(bytes, size, &found);
    Check(StateErrorText(error)[0] != '\0');
    if (error == StateError::kNone) {
        uint8_t again[kWindowStateBytes];
        EncodeWindowState(found, again);
        Check(memcmp(bytes, again, size) == 0);
    } else {
        Check(found.end_count == 0);
    }
    Origin origin = found.origin;
    origin.system_identifier ^= other & 1;
    origin.timeline ^= other >> 1 & 1;
    origin.identity.inode ^= other >> 3 & 1;
    start.secrets = found.secrets;
    if (start.secrets.count > 0)
        start.secrets.records[start.secrets.count - 1].fingerprint ^= other >> 2 & 1;
    // For some values of `other`, the start matches the recorded stop, so `proven` may be true.
    start.origin = origin;
    start.boot[0] = found.stop.boot[0];
    start.boot[1] = found.stop.boot[1] ^ (other >> 4 & 1);
    start.marker = found.write.number ^ (other >> 5 & 1);
    start.leased_nodes = start.nodes.count;
    start.postmaster = found.write.postmaster;
    start.now_ms = {INT64_MAX};
    start.after_crash_restart = (other >> 6 & 1) != 0;
    start.wall_ms = {start.uptime_ms.count};
    const auto possible = [](int64_t ms) {
        return ms > INT64_MIN / 2 && ms < INT64_MAX / 2 ? ms : 0;
    };
    start.uptime_ms = start.uptime_ms + possible(found.stop.uptime_ms.count);
    start.wall_ms = start.wall_ms + possible(found.stop.wall_ms.count);
    CheckStart(error, found, start);
    CheckStart(StateError::kMissing, WindowState{}, start);
}

}  // namespace

void Fuzz(const uint8_t* data, size_t size) {
    Input input(data, size);
    Start start{};
    start.uptime_ms = {input.Take<uint32_t>() % 4};
    start.skew.largest_ms = input.Take<uint32_t>() % (kMaxSkewMs + 1);
    start.skew.smallest_ms = input.Take<uint32_t>() % (start.skew.largest_ms + 1);
    start.nodes.count = 1 + input.Take<uint32_t>() % kMaxNodes;
    start.nodes.first = input.Take<uint32_t>() % (kMaxNodes - start.nodes.count + 1);
    const auto other = input.Take<uint8_t>();
    CheckFile(input.rest(), input.rest_size(), other, start);

    if (input.rest_size() != kWindowStateBytes) return;
    uint8_t bytes[kWindowStateBytes];
    memcpy(bytes, input.rest(), sizeof bytes);
    const uint32_t crc = Crc32c(bytes, sizeof bytes - 4);
    for (size_t i = 0; i < 4; i++) bytes[sizeof bytes - 4 + i] = static_cast<uint8_t>(crc >> 8 * i);
    CheckFile(bytes, sizeof bytes, other, start);
}

}  // namespace randflake
