// The window file: its bytes, what is refused, what is remembered of former node ranges, and where
// a server starts.

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "core/layout.h"
#include "core/window_state.h"

namespace randflake {
namespace {

constexpr uint32_t kMaxEnd = 1u << 30;
constexpr uint32_t kNodeIds = 1u << 17;

using Bytes = std::vector<uint8_t>;

// --- the bytes, told independently of the code under test -------------------------------------

// CRC-32C by long division, most significant bit first, of the bits in the order of RFC 3720.
uint32_t Crc32c(const Bytes& bytes, size_t length) {
    uint64_t remainder = 0;
    const size_t bits = 8 * length;
    for (size_t i = 0; i < bits + 32; i++) {
        bool bit = i < bits && (bytes[i / 8] >> i % 8 & 1) != 0;
        if (i < 32)
            bit = !bit;  // the initial value
        remainder = remainder << 1 | bit;
        if ((remainder >> 32 & 1) != 0)
            remainder ^= 0x11edc6f41;
    }
    uint32_t reflected = 0;
    for (int i = 0; i < 32; i++)
        reflected |= static_cast<uint32_t>(remainder >> i & 1) << (31 - i);
    return ~reflected;
}

void Put(Bytes* bytes, uint64_t value, int length) {
    for (int i = 0; i < length; i++)
        bytes->push_back(static_cast<uint8_t>(value >> 8 * i));
}

// The checksum that belongs to the bytes, in place of the one they end with.
Bytes Sealed(Bytes bytes) {
    bytes.resize(bytes.size() - 4);
    const uint32_t checksum = Crc32c(bytes, bytes.size());
    Put(&bytes, checksum, 4);
    return bytes;
}

Bytes Encoded(const WindowState& state) {
    Bytes bytes(kWindowStateBytes);
    EncodeWindowState(state, bytes.data());
    return bytes;
}

StateError Decoded(const Bytes& bytes, WindowState* state) {
    return DecodeWindowState(bytes.data(), bytes.size(), state);
}

StateError ErrorOf(const Bytes& bytes) {
    WindowState state;
    std::memset(static_cast<void*>(&state), 0x5a, sizeof state);
    const WindowState untouched = state;
    const StateError error = Decoded(bytes, &state);
    if (error != StateError::kNone) {
        EXPECT_EQ(std::memcmp(&state, &untouched, sizeof state), 0)
            << "a refused state is handed out";
    }
    return error;
}

void ExpectSame(const WindowState& a, const WindowState& b) {
    EXPECT_EQ(a.origin, b.origin);
    EXPECT_EQ(a.clean, b.clean);
    ASSERT_EQ(a.end_count, b.end_count);
    for (uint32_t i = 0; i < a.end_count; i++)
        EXPECT_EQ(a.ends[i], b.ends[i]) << i;
}

const WindowState& Example() {
    static const WindowState state{{0x1122334455667788,
                                    7,
                                    0x99aabbccddeeff01,
                                    {0x0203040506070809, 0x0a0b0c0d0e0f1011, -12345}},
                                   true,
                                   2,
                                   {{{100, 4}, 65256134}, {{0, 131072}, 1u << 30}}};
    return state;
}

WindowState RandomState(std::mt19937_64* random) {
    WindowState state{};
    state.origin = {(*random)(),
                    static_cast<uint32_t>((*random)()),
                    (*random)(),
                    {(*random)(), (*random)(), static_cast<int64_t>((*random)())}};
    state.clean = (*random)() % 2 != 0;
    state.end_count = 1 + static_cast<uint32_t>((*random)() % kMaxWrittenEnds);
    for (uint32_t i = 0; i < state.end_count; i++) {
        const auto first = static_cast<uint32_t>((*random)() % kNodeIds);
        const auto count = static_cast<uint32_t>(1 + (*random)() % (kNodeIds - first));
        state.ends[i] = {{first, count}, static_cast<uint32_t>((*random)() % (kMaxEnd + 1))};
    }
    return state;
}

TEST(WindowStateBytes, ChecksumOfTheStandard) {
    EXPECT_EQ(Crc32c(Bytes(32, 0), 32), 0x8a9136aau);  // RFC 3720, B.4
    EXPECT_EQ(Crc32c(Bytes(32, 0xff), 32), 0x62a8ab43u);
}

TEST(WindowStateBytes, Layout) {
    Bytes expected;
    for (const char c : {'r', 'a', 'n', 'd', 'f', 'l', 'k', 'w'})
        Put(&expected, static_cast<uint8_t>(c), 1);
    Put(&expected, 1, 4);  // format version
    Put(&expected, 1, 4);  // clean
    Put(&expected, 0x1122334455667788, 8);
    Put(&expected, 7, 4);
    Put(&expected, 2, 4);  // node ranges
    Put(&expected, 0x99aabbccddeeff01, 8);
    Put(&expected, 0x0203040506070809, 8);
    Put(&expected, 0x0a0b0c0d0e0f1011, 8);
    Put(&expected, static_cast<uint64_t>(-12345), 8);
    Put(&expected, 0, 8);  // reserved
    for (const uint32_t value : {100u, 4u, 65256134u, 0u, 131072u, 1u << 30})
        Put(&expected, value, 4);
    expected.resize(kWindowStateBytes);
    EXPECT_EQ(Encoded(Example()), Sealed(expected));
}

TEST(WindowStateBytes, RoundTrip) {
    std::mt19937_64 random(1);
    for (int i = 0; i < 2000; i++) {
        const WindowState state = RandomState(&random);
        WindowState read;
        ASSERT_EQ(Decoded(Encoded(state), &read), StateError::kNone);
        ExpectSame(read, state);
    }
}

TEST(WindowStateBytes, EveryChangeOfAByteIsRefused) {
    const Bytes good = Encoded(Example());
    for (size_t at = 0; at < good.size(); at++)
        for (int change = 1; change < 256; change++) {
            Bytes bytes = good;
            bytes[at] ^= static_cast<uint8_t>(change);
            ASSERT_EQ(ErrorOf(bytes), at < 8    ? StateError::kWrongMagic
                                      : at < 12 ? StateError::kWrongVersion
                                                : StateError::kWrongChecksum)
                << at << ' ' << change;
        }
}

TEST(WindowStateBytes, EveryOtherLengthIsRefused) {
    const Bytes good = Encoded(Example());
    for (size_t length = 0; length < 2 * good.size(); length++) {
        if (length == good.size())
            continue;
        Bytes bytes = good;
        bytes.resize(length);
        EXPECT_EQ(ErrorOf(bytes), StateError::kWrongLength) << length;
    }
}

TEST(WindowStateBytes, ImpossibleContentIsRefused) {
    struct {
        size_t at;
        uint32_t value;
        const char* what;
    } const cases[] = {
        {8 + 4, 2, "unknown flag"},
        {8 + 4, 0x80000001, "unknown flag beside the known one"},
        {8 + 4 + 4 + 8 + 4, 0, "no node range"},
        {8 + 4 + 4 + 8 + 4, kMaxWrittenEnds + 1, "more node ranges than there is room for"},
        {8 + 4 + 4 + 8 + 4, 3, "a third node range, of nothing"},
        {64, 1, "reserved bytes in use"},
        {68, 1, "reserved bytes in use"},
        {72, kNodeIds, "first node id out of range"},
        {72, kNodeIds - 3, "last node id out of range"},
        {76, 0, "no node id"},
        {76, kNodeIds + 1, "more node ids than there are"},
        {76, UINT32_MAX, "a number of node ids that wraps around"},
        {80, kMaxEnd + 1, "end out of range"},
        {72 + 12 + 8, kMaxEnd + 1, "end of the second range out of range"},
    };
    for (const auto& c : cases) {
        Bytes bytes = Encoded(Example());
        for (int i = 0; i < 4; i++)
            bytes[c.at + static_cast<size_t>(i)] = static_cast<uint8_t>(c.value >> 8 * i);
        EXPECT_EQ(ErrorOf(Sealed(bytes)), StateError::kWrongContent) << c.what;
    }
}

TEST(WindowStateBytes, OtherVersionsAreRefusedWhateverTheyHold) {
    for (const uint8_t version : {0, 2, 255}) {
        Bytes bytes = Encoded(Example());
        bytes[8] = version;
        EXPECT_EQ(ErrorOf(Sealed(bytes)), StateError::kWrongVersion);
    }
}

TEST(WindowStateBytes, EveryErrorHasAText) {
    std::set<std::string> texts;
    for (int i = 0; i <= static_cast<int>(StateError::kWrongContent); i++)
        texts.insert(StateErrorText(static_cast<StateError>(i)));
    EXPECT_EQ(texts.size(), static_cast<size_t>(StateError::kWrongContent) + 1);
    EXPECT_FALSE(texts.contains("unknown error"));
}

// --- node ranges ------------------------------------------------------------------------------

TEST(WindowStateEnds, RangesOverlapWhenTheyShareANode) {
    for (uint32_t a = 0; a < 6; a++)
        for (uint32_t b = 0; b < 6; b++)
            for (uint32_t m = 1; m < 6; m++)
                for (uint32_t n = 1; n < 6; n++) {
                    bool shared = false;
                    for (uint32_t i = a; i < a + m; i++)
                        shared |= i >= b && i < b + n;
                    EXPECT_EQ((NodeRange{a, m}).Overlaps({b, n}), shared);
                }
}

TEST(WindowStateEnds, EndIsTheLatestOfAllRangesThatOverlap) {
    WindowState state{};
    EXPECT_EQ(state.EndFor({0, 131072}), 0u);
    state.SetEnd({10, 5}, 100);
    state.SetEnd({20, 5}, 300);
    state.SetEnd({12, 1}, 200);
    EXPECT_EQ(state.EndFor({10, 1}), 100u);
    EXPECT_EQ(state.EndFor({12, 1}), 200u);
    EXPECT_EQ(state.EndFor({10, 5}), 200u);
    EXPECT_EQ(state.EndFor({14, 7}), 300u);
    EXPECT_EQ(state.EndFor({15, 5}), 0u);
    EXPECT_EQ(state.EndFor({0, 131072}), 300u);
}

TEST(WindowStateEnds, TheRangeInUseComesFirstAndOnce) {
    WindowState state{};
    state.SetEnd({1, 1}, 10);
    state.SetEnd({2, 1}, 20);
    state.SetEnd({3, 1}, 30);
    state.SetEnd({2, 1}, 40);
    ASSERT_EQ(state.end_count, 3u);
    EXPECT_EQ(state.ends[0], (WrittenEnd{{2, 1}, 40}));
    EXPECT_EQ(state.ends[1], (WrittenEnd{{3, 1}, 30}));
    EXPECT_EQ(state.ends[2], (WrittenEnd{{1, 1}, 10}));
}

TEST(WindowStateEnds, TheLastTwoBecomeOneWhenThereIsNoRoom) {
    WindowState state{};
    for (uint32_t i = 0; i < kMaxWrittenEnds; i++)
        state.SetEnd({10 * i, 2}, 1000 - i);
    ASSERT_EQ(state.end_count, kMaxWrittenEnds);
    state.SetEnd({5000, 2}, 2000);
    ASSERT_EQ(state.end_count, kMaxWrittenEnds);
    EXPECT_EQ(state.ends[0], (WrittenEnd{{5000, 2}, 2000}));
    EXPECT_EQ(state.ends[1], (WrittenEnd{{150, 2}, 985}));
    EXPECT_EQ(state.ends[kMaxWrittenEnds - 1], (WrittenEnd{{0, 12}, 1000}));
    EXPECT_EQ(state.EndFor({5, 1}), 1000u) << "in between: rather too late than too early";
}

// Servers go from range to range, crash or stop cleanly, and start at the end that the state tells.
// Whatever the history, no second that was used under a node id is allowed for it again; without
// clean stops, not even the announced ends ever decrease.
TEST(WindowStateEnds, NoHistoryLosesASecond) {
    constexpr uint32_t kNodes = 40;
    std::mt19937_64 random(2);
    for (int history = 0; history < 500; history++) {
        const bool clean_stops = history % 2 == 0;
        WindowState state{};
        std::array<uint32_t, kNodes> used{};
        std::array<uint32_t, kNodes> before{};
        uint32_t clock = 1000;
        for (int step = 0; step < 80; step++) {
            const auto first = static_cast<uint32_t>(random() % kNodes);
            const NodeRange nodes{
                first, static_cast<uint32_t>(1 + random() % std::min(kNodes - first, 4u))};

            clock += static_cast<uint32_t>(random() % 8) - 3;  // it also steps back
            const uint32_t start = std::max(clock, state.EndFor(nodes));
            uint32_t end = start;
            for (uint64_t extensions = random() % 3 + 1; extensions > 0; extensions--) {
                end += static_cast<uint32_t>(1 + random() % 3);
                state.SetEnd(nodes, end);
            }
            const uint32_t last = start + static_cast<uint32_t>(random() % (end - start));
            if (clean_stops && random() % 2 != 0)
                state.SetEnd(nodes, last + 1);
            for (uint32_t i = nodes.first; i < nodes.first + nodes.count; i++) {
                ASSERT_GT(start, 0u);
                ASSERT_GE(start, used[i]) << "node " << i;
                used[i] = last + 1;
            }

            WindowState read;
            ASSERT_EQ(Decoded(Encoded(state), &read), StateError::kNone);
            for (uint32_t i = 0; i < kNodes; i++) {
                ASSERT_GE(read.EndFor({i, 1}), used[i]) << "node " << i;
                if (!clean_stops) {
                    ASSERT_GE(read.EndFor({i, 1}), before[i]) << "node " << i;
                }
                before[i] = read.EndFor({i, 1});
            }
            state = read;
        }
    }
}

// --- where a server starts --------------------------------------------------------------------

constexpr Origin kOrigin{11, 1, 22, {33, 44, 55}};
constexpr NodeRange kNodes{100, 4};
constexpr uint32_t kStartedAt = 1000;
constexpr uint32_t kHeldOff = 2003;  // the clock shows 2000
constexpr uint32_t kSkew = 2;

WindowState Found(uint32_t end) {
    WindowState state{};
    state.origin = kOrigin;
    state.clean = true;
    state.SetEnd({500, 1}, 7);
    state.SetEnd(kNodes, end);
    return state;
}

StartPlan Plan(StateError error, const WindowState& found, const Origin& origin = kOrigin,
               const NodeRange& nodes = kNodes) {
    return PlanStart(error, found, origin, nodes, kStartedAt, kHeldOff, kSkew);
}

TEST(PlanStart, OwnStateGoesOnAtTheWrittenEnd) {
    for (const uint32_t end : {1u, 900u, 1500u, 5000u, kMaxEnd}) {
        const StartPlan plan = Plan(StateError::kNone, Found(end));
        EXPECT_EQ(plan.finding, Finding::kOwn);
        EXPECT_EQ(plan.opens_at, end);
        EXPECT_FALSE(plan.other_key);
        EXPECT_FALSE(plan.state.clean) << "nothing is clean once the server goes on";
        EXPECT_EQ(plan.state.origin, kOrigin);
        EXPECT_EQ(plan.state.EndFor(kNodes), end);
        EXPECT_EQ(plan.state.EndFor({500, 1}), 7u);
    }
}

TEST(PlanStart, NodeIdsNeverUsedStartAfterTheServer) {
    const StartPlan plan = Plan(StateError::kNone, Found(5000), kOrigin, {104, 1});
    EXPECT_EQ(plan.finding, Finding::kOwn);
    EXPECT_EQ(plan.opens_at, kStartedAt + 1);
    EXPECT_EQ(plan.state.EndFor(kNodes), 5000u) << "the others keep their end";
}

TEST(PlanStart, NodeIdsOfSeveralRangesStartAtTheLatestEnd) {
    EXPECT_EQ(Plan(StateError::kNone, Found(5000), kOrigin, {103, 9}).opens_at, 5000u);
    EXPECT_EQ(Plan(StateError::kNone, Found(5000), kOrigin, {0, 131072}).opens_at, 5000u);
}

TEST(PlanStart, FirstUseHoldsOff) {
    const WindowState none{};
    StartPlan plan = Plan(StateError::kMissing, none);
    EXPECT_EQ(plan.finding, Finding::kFirstUse);
    EXPECT_EQ(plan.opens_at, kStartedAt + kSkew + 1);
    EXPECT_EQ(plan.state.origin, kOrigin);
    EXPECT_EQ(plan.state.end_count, 0u);

    plan = PlanStart(StateError::kMissing, none, kOrigin, kNodes, 5000, kHeldOff, kSkew);
    EXPECT_EQ(plan.opens_at, kHeldOff) << "the clock was set back since the start";

    Origin promoted = kOrigin;
    promoted.timeline = 2;
    EXPECT_EQ(Plan(StateError::kMissing, none, promoted).opens_at, kHeldOff)
        << "another server may have generated until just now";
}

TEST(PlanStart, UnreadableStateHoldsOff) {
    for (const StateError error :
         {StateError::kLost, StateError::kWrongLength, StateError::kWrongMagic,
          StateError::kWrongVersion, StateError::kWrongChecksum, StateError::kWrongContent}) {
        // What was found counts for nothing.
        const StartPlan plan = Plan(error, Found(5000));
        EXPECT_EQ(plan.finding, Finding::kUnreadable);
        EXPECT_EQ(plan.opens_at, kHeldOff);
        EXPECT_EQ(plan.state.origin, kOrigin);
        EXPECT_EQ(plan.state.end_count, 0u);
        EXPECT_FALSE(plan.other_key);
    }
}

// Each field that tells another origin, with what it is taken for.
struct Foreign {
    const char* what;
    Finding finding;
    void (*change)(Origin*);
};

const Foreign kForeign[] = {
    {"system identifier", Finding::kOtherSystem, [](Origin* o) { o->system_identifier ^= 1; }},
    {"timeline before", Finding::kOtherTimeline, [](Origin* o) { o->timeline = 0; }},
    {"timeline after", Finding::kOtherTimeline, [](Origin* o) { o->timeline = 2; }},
    {"inode", Finding::kCopied, [](Origin* o) { o->identity.inode ^= 1; }},
    {"device", Finding::kCopied, [](Origin* o) { o->identity.device ^= 1; }},
    {"time of birth", Finding::kCopied, [](Origin* o) { o->identity.birth_nanoseconds ^= 1; }},
};

TEST(PlanStart, ForeignStateHoldsOffBeyondClockAndWrittenEnd) {
    for (const Foreign& foreign : kForeign) {
        for (const uint32_t end : {1u, kHeldOff - kSkew - 1, kHeldOff - kSkew, kHeldOff, 5000u}) {
            WindowState found = Found(end);
            foreign.change(&found.origin);
            const StartPlan plan = Plan(StateError::kNone, found);
            EXPECT_EQ(plan.finding, foreign.finding) << foreign.what;
            EXPECT_EQ(plan.opens_at, std::max(kHeldOff, end + kSkew)) << foreign.what;
            EXPECT_EQ(plan.state.origin, kOrigin) << foreign.what;
            EXPECT_EQ(plan.state.EndFor(kNodes), end) << foreign.what;
        }
        // The same for node ids that the state does not know.
        WindowState found = Found(5000);
        foreign.change(&found.origin);
        EXPECT_EQ(Plan(StateError::kNone, found, kOrigin, {7, 1}).opens_at, kHeldOff);
    }
}

TEST(PlanStart, AnotherSystemCountsBeforeACopyAndACopyBeforeATimeline) {
    WindowState found = Found(5000);
    found.origin.timeline = 2;
    found.origin.identity.inode ^= 1;
    EXPECT_EQ(Plan(StateError::kNone, found).finding, Finding::kCopied);
    found.origin.system_identifier ^= 1;
    EXPECT_EQ(Plan(StateError::kNone, found).finding, Finding::kOtherSystem);
}

TEST(PlanStart, AnotherKeyIsNotedAndChangesNothingElse) {
    WindowState found = Found(5000);
    found.origin.fingerprint ^= 1;
    const StartPlan plan = Plan(StateError::kNone, found);
    EXPECT_TRUE(plan.other_key);
    EXPECT_EQ(plan.finding, Finding::kOwn);
    EXPECT_EQ(plan.opens_at, 5000u);
    EXPECT_EQ(plan.state.origin.fingerprint, kOrigin.fingerprint);
}

// What is planned can be written: a start beyond the last second would not be read back.
TEST(PlanStart, NeverBeyondTheLastSecond) {
    for (const Foreign& foreign : kForeign) {
        WindowState found = Found(kMaxEnd);
        foreign.change(&found.origin);
        EXPECT_EQ(Plan(StateError::kNone, found).opens_at, kMaxEnd) << foreign.what;
    }
    const WindowState none{};
    Origin promoted = kOrigin;
    promoted.timeline = 2;
    for (const Origin& origin : {kOrigin, promoted})
        for (const StateError error : {StateError::kMissing, StateError::kLost})
            EXPECT_EQ(
                PlanStart(error, none, origin, kNodes, kMaxEnd, kMaxEnd + 86400, 86400).opens_at,
                kMaxEnd);
    EXPECT_EQ(PlanStart(StateError::kNone, Found(5), kOrigin, {7, 1}, kMaxEnd, kMaxEnd, 0).opens_at,
              kMaxEnd);
}

}  // namespace
}  // namespace randflake
