// Plans starts.

#include "core/window/start_plan.h"

namespace randflake {
namespace {

Finding Compare(const Origin& found, const Origin& own) {
    if (found.system_identifier != own.system_identifier) return Finding::kOtherSystem;
    if (found.identity != own.identity) return Finding::kCopied;
    return found.timeline != own.timeline ? Finding::kOtherTimeline : Finding::kOwn;
}

bool Proven(const WindowState& found, const Start& start, const SkewRange& skew) {
    RANDFLAKE_ASSERT(IsValid(skew));
    const Stop& stop = found.stop;
    const auto passed = [&skew](auto from, decltype(from) to) {
        const uint64_t elapsed =
            static_cast<uint64_t>(to.count) - static_cast<uint64_t>(from.count);
        return to < from || elapsed >= skew.smallest_ms;
    };
    return found.write.number != 0 && found.write.number == start.marker &&
           SameBoot(stop.boot, start.boot) && !passed(stop.uptime_ms, start.uptime_ms) &&
           !passed(stop.wall_ms, start.wall_ms) && start.nodes.count > 0 &&
           stop.nodes.Covers(start.nodes);
}

}  // namespace

Second CopiedAt(const WindowState& found, const Origin& own, Second now) noexcept {
    const Finding finding = Compare(found.origin, own);
    return finding == Finding::kCopied || finding == Finding::kOtherSystem
               ? std::min(std::max(now, Second{1}), kNoSecond)
               : found.copied_at;
}

NodeRange OriginalNodes(const WindowState& found, const Origin& own) noexcept {
    const Finding finding = Compare(found.origin, own);
    if (finding != Finding::kCopied && finding != Finding::kOtherSystem) return found.original;
    NodeRange all = found.original.With(found.configured);
    for (uint32_t i = 0; i < found.end_count; i++) all = all.With(found.ends[i].nodes);
    return all;
}

void SetTime(const Moment& started, const Moment& now, bool may_be_promoted,
             Start* start) noexcept {
    RANDFLAKE_ASSERT(now.uptime_ms >= started.uptime_ms);
    const bool set_right = now.wall_ms < started.wall_ms;
    start->uptime_ms = may_be_promoted ? now.uptime_ms : started.uptime_ms;
    start->wall_ms = may_be_promoted || set_right ? now.wall_ms : started.wall_ms;
}

StartPlan PlanStart(StateError error, const WindowState& found, const Start& start) noexcept {
    RANDFLAKE_ASSERT(IsValid(start.skew) && InOrder(start.secrets));
    StartPlan plan{};
    SkewRange skew = start.skew;
    if (error == StateError::kNone) {
        skew = skew.With(found.skew);
        plan.state = found;
        plan.state.copied_at = CopiedAt(found, start.origin, SecondOf(start.wall_ms));
        plan.state.original = OriginalNodes(found, start.origin);
        plan.finding = Compare(found.origin, start.origin);
        plan.proven = plan.finding == Finding::kOwn && Proven(found, start, skew);
        plan.secrets = CompareSecrets(found.secrets, start.secrets, found.LastEnd());
    } else {
        plan.finding = error == StateError::kMissing ? Finding::kFirstUse : Finding::kUnreadable;
    }
    plan.state.origin = start.origin;
    plan.state.configured = start.nodes;
    // If a server starts without a secret, its state keeps the secrets that are on disk.
    if (start.secrets.count > 0) {
        plan.state.differs_from =
            DiffersFrom(plan.state.differs_from, plan.state.secrets, start.secrets);
        plan.state.secrets = start.secrets;
    }
    plan.state.stop = Stop{};
    plan.state.leases[0] = plan.state.leases[1] = {};
    plan.held_off_until = SecondAfter(start.wall_ms + skew.largest_ms);
    if (!plan.proven)
        plan.state.floor = start.after_crash_restart && plan.finding == Finding::kOwn
                               ? std::max(plan.state.floor, plan.held_off_until)
                               : plan.held_off_until;
    RANDFLAKE_ASSERT(plan.state.floor <= kNoSecond && plan.state.copied_at <= kNoSecond);
    plan.opens_at_ms = plan.proven ? UptimeMs{0} : start.uptime_ms + skew.largest_ms;
    return plan;
}

Second LeaseOpensAt(StateError error, const WindowState& state, const NodeRange& nodes,
                    Second held_off_until) noexcept {
    RANDFLAKE_ASSERT(held_off_until >= Second{0});
    const bool unknown = error != StateError::kNone && error != StateError::kMissing;
    return std::min(std::max(state.EndFor(nodes), unknown ? held_off_until : Second{0}), kNoSecond);
}

}  // namespace randflake
