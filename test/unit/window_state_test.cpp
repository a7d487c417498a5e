// The state of a server's windows on disk: its bytes, its ends, and where a server starts from it.

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <utility>

#include "core/window_state.h"

namespace randflake {
namespace {

using Bytes = std::array<uint8_t, kWindowStateBytes>;

constexpr uint32_t kStartedAt = 1000, kHeldOff = 1010, kSkew = 2;
constexpr NodeRange kNodes{40, 4};

Origin SomeOrigin() {
    return {.system_identifier = 0x0123456789abcdef,
            .timeline = 3,
            .key_check = 0xfedcba9876543210,
            .identity = {.inode = 77, .device = 0, .birth_nanoseconds = -5}};
}

WindowState SomeState() {
    WindowState state{};
    state.origin = SomeOrigin();
    state.SetEnd({7, 1}, 500);
    state.SetEnd(kNodes, 900);
    return state;
}

void ExpectSame(const WindowState& a, const WindowState& b) {
    EXPECT_EQ(a.origin, b.origin);
    EXPECT_EQ(a.clean, b.clean);
    ASSERT_EQ(a.end_count, b.end_count);
    EXPECT_TRUE(std::equal(a.ends, a.ends + a.end_count, b.ends));
}

Bytes Encoded(const WindowState& state) {
    Bytes bytes;
    EncodeWindowState(state, bytes.data());
    return bytes;
}

StateError Decode(const Bytes& bytes, WindowState* state) {
    return DecodeWindowState(bytes.data(), bytes.size(), state);
}

TEST(WindowState, EncodesAndDecodes) {
    WindowState full = SomeState();
    for (uint32_t i = 0; i < 2 * kMaxWrittenEnds; i++)
        full.SetEnd({1000 + 10 * i, 5}, 100 + i);
    WindowState clean = SomeState();
    clean.clean = true;
    WindowState last = SomeState();
    last.SetEnd({0, 131072}, 1u << 30);
    for (const WindowState& state : {SomeState(), full, clean, last}) {
        WindowState read{};
        ASSERT_EQ(Decode(Encoded(state), &read), StateError::kNone);
        ExpectSame(read, state);
    }
}

// Whatever bits of one byte change, the state is refused and the result left alone.
TEST(WindowState, RefusesEveryChangedByte) {
    const Bytes good = Encoded(SomeState());
    for (size_t i = 0; i < good.size(); i++)
        for (int flip = 1; flip < 256; flip++) {
            Bytes bad = good;
            bad[i] = static_cast<uint8_t>(bad[i] ^ flip);
            WindowState read{};
            ASSERT_NE(Decode(bad, &read), StateError::kNone) << "byte " << i << " flip " << flip;
            ASSERT_EQ(read.end_count, 0u);
        }
}

TEST(WindowState, RefusesOtherLengths) {
    const Bytes good = Encoded(SomeState());
    std::array<uint8_t, kWindowStateBytes + 1> longer{};
    std::copy(good.begin(), good.end(), longer.begin());
    WindowState read{};
    for (size_t length = 0; length <= longer.size(); length++) {
        if (length == good.size())
            continue;
        EXPECT_EQ(DecodeWindowState(longer.data(), length, &read), StateError::kWrongLength);
    }
}

TEST(WindowState, SaysWhatIsWrong) {
    WindowState read{};
    Bytes bytes = Encoded(SomeState());
    bytes[0] ^= 1;
    EXPECT_EQ(Decode(bytes, &read), StateError::kWrongMagic);
    bytes = Encoded(SomeState());
    bytes[8] ^= 1;
    EXPECT_EQ(Decode(bytes, &read), StateError::kWrongVersion);
    bytes = Encoded(SomeState());
    bytes[20] ^= 1;
    EXPECT_EQ(Decode(bytes, &read), StateError::kWrongChecksum);
    bytes.fill(0);
    EXPECT_EQ(Decode(bytes, &read), StateError::kWrongMagic);
}

// A right checksum over content that no server writes.
TEST(WindowState, RefusesImpossibleContent) {
    for (const WrittenEnd& bad :
         {WrittenEnd{{0, 0}, 1}, WrittenEnd{{131072, 1}, 1}, WrittenEnd{{131071, 2}, 1},
          WrittenEnd{{0, 131073}, 1}, WrittenEnd{{UINT32_MAX, 2}, 1},
          WrittenEnd{{0, 1}, (1u << 30) + 1}}) {
        WindowState state = SomeState(), read{};
        state.ends[1] = bad;
        EXPECT_EQ(Decode(Encoded(state), &read), StateError::kWrongContent);
    }
    WindowState none = SomeState(), read{};
    none.end_count = 0;
    EXPECT_EQ(Decode(Encoded(none), &read), StateError::kWrongContent);
}

TEST(WindowState, EveryErrorHasItsText) {
    for (int error = 0; error <= static_cast<int>(StateError::kWrongContent); error++)
        EXPECT_STRNE(StateErrorText(static_cast<StateError>(error)), "unknown error");
}

TEST(WindowState, EndOfOverlappingNodeIds) {
    WindowState state{};
    state.SetEnd({10, 5}, 300);
    state.SetEnd({20, 5}, 200);
    EXPECT_EQ(state.EndFor({10, 5}), 300u);
    EXPECT_EQ(state.EndFor({14, 1}), 300u);
    EXPECT_EQ(state.EndFor({14, 7}), 300u);
    EXPECT_EQ(state.EndFor({15, 6}), 200u);
    EXPECT_EQ(state.EndFor({15, 5}), 0u);
    EXPECT_EQ(state.EndFor({9, 1}), 0u);
    state.SetEnd({20, 5}, 400);
    EXPECT_EQ(state.end_count, 2u);
    EXPECT_EQ(state.ends[0], (WrittenEnd{{20, 5}, 400}));
    EXPECT_EQ(state.EndFor({0, 131072}), 400u);
}

// More node ranges than there is room for: no end is ever forgotten or lowered.
TEST(WindowState, KeepsEveryEndWhenThereIsNoMoreRoom) {
    WindowState state{};
    for (uint32_t i = 0; i < 100; i++) {
        state.SetEnd({1000 - 10 * i, 3}, 500 + (i * 37) % 100);
        ASSERT_LE(state.end_count, kMaxWrittenEnds);
        ASSERT_EQ(state.ends[0].nodes.first, 1000 - 10 * i);
        for (uint32_t j = 0; j <= i; j++)
            ASSERT_GE(state.EndFor({1000 - 10 * j, 3}), 500 + (j * 37) % 100);
    }
}

StartPlan Plan(StateError error, const WindowState& found, const Origin& origin = SomeOrigin(),
               const NodeRange& nodes = kNodes) {
    return PlanStart(error, found, origin, nodes, kStartedAt, kHeldOff, kSkew);
}

TEST(PlanStart, OwnStateGoesOnAtTheWrittenEnd) {
    WindowState state = SomeState();
    for (const bool clean : {false, true}) {
        state.clean = clean;
        const StartPlan plan = Plan(StateError::kNone, state);
        EXPECT_EQ(plan.finding, Finding::kOwn);
        EXPECT_EQ(plan.opens_at, 900u);
        EXPECT_FALSE(plan.other_key);
        EXPECT_FALSE(plan.state.clean);
        EXPECT_EQ(plan.state.EndFor({7, 1}), 500u);
    }
    state.SetEnd(kNodes, 5000);  // far ahead of the clock
    EXPECT_EQ(Plan(StateError::kNone, state).opens_at, 5000u);
}

TEST(PlanStart, OtherNodeIdsOfTheSameServer) {
    const StartPlan unknown = Plan(StateError::kNone, SomeState(), SomeOrigin(), {60, 4});
    EXPECT_EQ(unknown.finding, Finding::kOwn);
    EXPECT_EQ(unknown.opens_at, kStartedAt + 1);
    EXPECT_EQ(Plan(StateError::kNone, SomeState(), SomeOrigin(), {43, 10}).opens_at, 900u);
}

TEST(PlanStart, ForeignStateHoldsOff) {
    WindowState ahead = SomeState();
    ahead.SetEnd(kNodes, 5000);
    Origin system = SomeOrigin(), copy = SomeOrigin(), timeline = SomeOrigin();
    system.system_identifier++;
    copy.identity.inode++;
    timeline.timeline++;
    for (const auto& [origin, finding] :
         {std::pair{system, Finding::kOtherSystem}, std::pair{copy, Finding::kCopied},
          std::pair{timeline, Finding::kOtherTimeline}}) {
        const StartPlan plan = Plan(StateError::kNone, SomeState(), origin);
        EXPECT_EQ(plan.finding, finding);
        EXPECT_EQ(plan.opens_at, kHeldOff);
        EXPECT_EQ(plan.state.origin, origin);
        EXPECT_EQ(Plan(StateError::kNone, ahead, origin).opens_at, 5000 + kSkew);
    }
}

TEST(PlanStart, UnreadableStateHoldsOff) {
    for (int error = static_cast<int>(StateError::kLost);
         error <= static_cast<int>(StateError::kWrongContent); error++) {
        const StartPlan plan = Plan(static_cast<StateError>(error), SomeState());
        EXPECT_EQ(plan.finding, Finding::kUnreadable);
        EXPECT_EQ(plan.opens_at, kHeldOff);
        EXPECT_EQ(plan.state.end_count, 0u);  // nothing of what could not be read
    }
}

TEST(PlanStart, FirstUse) {
    Origin origin = SomeOrigin();
    EXPECT_EQ(Plan(StateError::kMissing, {}, origin).finding, Finding::kFirstUse);
    EXPECT_EQ(Plan(StateError::kMissing, {}, origin).opens_at, kHeldOff);
    origin.timeline = 1;  // never promoted: the time since the start counts
    EXPECT_EQ(Plan(StateError::kMissing, {}, origin).opens_at, kStartedAt + kSkew + 1);
    EXPECT_EQ(PlanStart(StateError::kMissing, {}, origin, kNodes, 2000, kHeldOff, kSkew).opens_at,
              kHeldOff);  // the clock was set back since the start
}

TEST(PlanStart, OtherKeyIsNoticed) {
    Origin origin = SomeOrigin();
    origin.key_check++;
    const StartPlan plan = Plan(StateError::kNone, SomeState(), origin);
    EXPECT_TRUE(plan.other_key);
    EXPECT_EQ(plan.finding, Finding::kOwn);
    EXPECT_EQ(plan.opens_at, 900u);
}

TEST(PlanStart, NeverBeyondTheLastSecond) {
    WindowState state = SomeState();
    state.SetEnd(kNodes, 1u << 30);
    Origin other = SomeOrigin();
    other.timeline++;
    EXPECT_EQ(Plan(StateError::kNone, state).opens_at, 1u << 30);
    EXPECT_EQ(Plan(StateError::kNone, state, other).opens_at, 1u << 30);
}

}  // namespace
}  // namespace randflake
