// Tests the bytes of the window file, the ends of node ranges, and the plans of starts and reloads.

#include "core/identifier/layout.h"
#include "core/window/reload_plan.h"
#include "core/window/resumption.h"
#include "printers.h"

namespace randflake {
namespace {

constexpr uint32_t kMaxEnd = 1u << 30;
constexpr uint32_t kNodeIds = 1u << 17;

using Bytes = std::vector<uint8_t>;

constexpr size_t kLeases = kWindowStateHeadBytes;
constexpr size_t kSecrets = kLeases + kMaxLeases * kWrittenLeaseBytes;
constexpr size_t kEnds = kSecrets + 12 * kMaxGenerations;

// Computes CRC-32C by long division. The bit order is that of RFC 3720.
uint32_t Crc32c(const Bytes& bytes, size_t length) {
    uint64_t remainder = 0;
    const size_t bits = 8 * length;
    for (size_t i = 0; i < bits + 32; i++) {
        bool bit = i < bits && (bytes[i / 8] >> i % 8 & 1) != 0;
        if (i < 32) bit = !bit;  // the initial value
        remainder = remainder << 1 | bit;
        if ((remainder >> 32 & 1) != 0) remainder ^= 0x11edc6f41;
    }
    uint32_t reflected = 0;
    for (int i = 0; i < 32; i++) reflected |= static_cast<uint32_t>(remainder >> i & 1) << (31 - i);
    return ~reflected;
}

void Put(Bytes* bytes, uint64_t value, int length) {
    for (int i = 0; i < length; i++) bytes->push_back(static_cast<uint8_t>(value >> 8 * i));
}

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

const WindowState& Example() {
    static const WindowState state{
        {0x1122334455667788, 7, {0x0203040506070809, 0x0a0b0c0d0e0f1011, -12345}},
        {3,
         {{0x99aabbccddeeff01, 0}, {0x0123456789abcdef, 70000000}, {0xfedcba9876543210, 80000000}}},
        75000000,
        {2000, 30000},
        {{0x31, 0x41}, 1234567, -7654321, {96, 16}},
        {0x2122232425262728, 0x2122232425262727, 0x51, {0x61, 0x71}, 2345678},
        {{9, {0x81, 0x91}, {100, 4}, 65000001, 65256134, true, 1234, 5678}, {}},
        65000000,
        64000000,
        {100, 8},
        {96, 32},
        2,
        {{{100, 4}, 65256134}, {{0, 131072}, 1u << 30}}};
    return state;
}

WindowState RandomState(std::mt19937_64* engine) {
    auto& random = *engine;
    const auto below = [&](uint64_t n) { return static_cast<uint32_t>(random() % n); };
    const auto instant = [&] { return static_cast<int64_t>(random()); };
    WindowState state{};
    state.origin = {random(), static_cast<uint32_t>(random()), {random(), random(), instant()}};
    state.secrets.count = below(kMaxGenerations + 1);
    uint32_t from = 0;
    for (uint32_t i = 0; i < state.secrets.count; i++) {
        state.secrets.records[i] = {random() | 1, from};
        from += 1 + below(kMaxEnd / kMaxGenerations - 1);
    }
    state.differs_from = {below(kMaxEnd)};
    state.skew.largest_ms = below(kMaxSkewMs + 1);
    state.skew.smallest_ms = below(state.skew.largest_ms + 1);
    state.write = Example().write;
    state.write.number = random();
    if (state.secrets.count > 0) state.leases[below(kMaxLeases)] = Example().leases[0];
    state.stop = {{random(), random()}, instant(), instant(), {below(kNodeIds), 1}};
    state.floor = {below(kMaxEnd + 1)};
    state.copied_at = {below(kMaxEnd + 1)};
    state.original = Example().original;
    state.configured = {below(kNodeIds), 1};
    state.end_count = 1 + below(kMaxWrittenEnds);
    for (uint32_t i = 0; i < state.end_count; i++) {
        const uint32_t first = below(kNodeIds);
        state.ends[i] = {{first, 1 + below(kNodeIds - first)}, below(kMaxEnd + 1)};
    }
    return state;
}

TEST(WindowStateBytes, ChecksumOfTheStandard) {
    EXPECT_EQ(Crc32c(Bytes(32, 0), 32), 0x8a9136aau);  // RFC 3720, B.4
    EXPECT_EQ(Crc32c(Bytes(32, 0xff), 32), 0x62a8ab43u);
}

// If this checksum changes, the file format has changed and needs a new version number.
TEST(WindowStateBytes, Format) {
    const Bytes bytes = Encoded(Example());
    EXPECT_EQ(Sealed(bytes), bytes);
    EXPECT_EQ(Crc32c(bytes, bytes.size() - 4), 0x1feae6b6u);
}

TEST(WindowStateBytes, RoundTrip) {
    std::mt19937_64 random(1);
    for (int i = 0; i < 2000; i++) {
        const WindowState state = RandomState(&random);
        WindowState read;
        ASSERT_EQ(Decoded(Encoded(state), &read), StateError::kNone);
        EXPECT_EQ(read, state);
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

// Files of earlier formats had other lengths: 300, 388, 400, 496, 512 or 672 bytes.
TEST(WindowStateBytes, AnotherLengthIsRefused) {
    EXPECT_EQ(kWindowStateBytes, 688u);
    Bytes longer = Encoded(Example());
    longer.push_back(0);
    EXPECT_EQ(ErrorOf(longer), StateError::kWrongLength);
}

TEST(WindowStateBytes, ImpossibleContentIsRefused) {
    struct {
        size_t at;
        uint32_t value;
        const char* what;
    } const cases[] = {
        {12, 0, "two node ranges where none is told"},
        {12, kMaxWrittenEnds + 1, "more node ranges than there is room for"},
        {12, 3, "a third node range, of nothing"},
        {12, 1, "two node ranges where one is told"},
        {28, 2, "a third secret where two are told"},
        {28, 4, "a fourth secret, of no time"},
        {28, kMaxGenerations + 1, "more secrets than there is room for"},
        {28, UINT32_MAX, "the most secrets"},
        {32, kMaxEnd, "a difference after all seconds"},
        {36, 30001, "a smallest skew above the largest"},
        {40, kMaxSkewMs + 1, "a skew that cannot be set"},
        {100, kNodeIds, "a stop of node ids out of range"},
        {104, 0, "a stop of no node id"},
        {108, kMaxEnd + 1, "a floor after all seconds"},
        {112, kMaxEnd + 1, "a copy that was found after all seconds"},
        {kLeases, 0, "a lease without an id"},
        {kLeases + 4, 1u << 31, "a lease with a negative id"},
        {kLeases + 24, kNodeIds - 3, "a lease of node ids out of range"},
        {kLeases + 28, 0, "a lease of no node id"},
        {kLeases + 32, 0, "a lease from the second 0 on"},
        {kLeases + 32, 65256134, "a lease of no second"},
        {kLeases + 36, kMaxEnd + 1, "a lease to after all seconds"},
        {kLeases + 40, 2, "a lease that is refused twice"},
        {kLeases + 60 + 24, 1, "node ids of no lease"},
        {kSecrets + 8, 1, "a first secret with a time"},
        {kSecrets + 12 + 8, 0, "a second secret from the beginning on"},
        {kSecrets + 12 + 8, 80000000, "two secrets from the same time on"},
        {kSecrets + 24 + 8, kMaxEnd, "a secret after all seconds"},
        {kSecrets + 36, 1, "a fourth secret where three are told"},
        {kEnds, kNodeIds, "first node id out of range"},
        {kEnds, kNodeIds - 3, "last node id out of range"},
        {kEnds + 4, 0, "no node id"},
        {kEnds + 4, kNodeIds + 1, "more node ids than there are"},
        {kEnds + 4, UINT32_MAX, "a number of node ids that wraps around"},
        {kEnds + 8, kMaxEnd + 1, "end out of range"},
        {kEnds + 12 + 8, kMaxEnd + 1, "end of the second range out of range"},
        {kEnds + 24 + 8, 1, "a third end where two are told"},
    };
    for (const auto& c : cases) {
        Bytes bytes = Encoded(Example());
        for (int i = 0; i < 4; i++)
            bytes[c.at + static_cast<size_t>(i)] = static_cast<uint8_t>(c.value >> 8 * i);
        EXPECT_EQ(ErrorOf(Sealed(bytes)), StateError::kWrongContent) << c.what;
    }
    Bytes leases = Encoded(Example());
    std::fill_n(leases.begin() + 28, 4, uint8_t{0});
    std::fill_n(leases.begin() + kSecrets, 3 * 12, uint8_t{0});
    EXPECT_EQ(ErrorOf(Sealed(leases)), StateError::kWrongContent) << "leases without a secret";
}

void SetEnd(WindowState* state, const NodeRange& nodes, uint32_t end) {
    state->Record(nodes, Window{end - 1, end});
}

TEST(WindowStateEnds, RangesOverlapByOneSharedNodeAndCoverByAll) {
    for (uint32_t a = 0; a < 6; a++)
        for (uint32_t b = 0; b < 6; b++)
            for (uint32_t m = 1; m < 6; m++)
                for (uint32_t n = 1; n < 6; n++) {
                    bool shared = false, all = true;
                    for (uint32_t i = b; i < b + n; i++) {
                        const bool in_both = i >= a && i < a + m;
                        shared |= in_both;
                        all &= in_both;
                    }
                    EXPECT_EQ((NodeRange{a, m}).Overlaps({b, n}), shared);
                    EXPECT_EQ((NodeRange{a, m}).Covers({b, n}), all);
                    // A range without node ids begins at UINT32_MAX, and overlaps no other range.
                    EXPECT_FALSE((NodeRange{a, m}).Covers({UINT32_MAX - b, n}));
                    EXPECT_FALSE((NodeRange{a, m}).Overlaps({UINT32_MAX - b, n}));
                }
}

TEST(WindowStateEnds, AWindowTakesBackOnlyWhatItRecorded) {
    WindowState state{};
    SetEnd(&state, {5, 2}, 100);
    SetEnd(&state, {6, 1}, 200);
    SetEnd(&state, {7, 1}, 300);
    state.Record({5, 2}, Window{250, 260});
    state.Record({5, 2}, Window{250, 270});
    const std::array<uint32_t, 2> cases[] = {{0, 200},   {150, 200}, {200, 200},
                                             {251, 251}, {270, 270}, {999, 270}};
    for (const auto& [end, expected] : cases) {
        WindowState sealed = state;
        sealed.TakeBack({end});
        EXPECT_EQ(sealed.ends[0], (WrittenEnd{{5, 2}, expected})) << end;
        EXPECT_EQ(sealed.EndFor({6, 1}), std::max(expected, 200u));
        EXPECT_EQ(sealed.EndFor({7, 1}), 300u);
        const WindowState once = sealed;
        sealed.TakeBack({0});
        EXPECT_EQ(sealed, once);
    }
    WindowState read;
    ASSERT_EQ(Decoded(Encoded(state), &read), StateError::kNone);
    read.TakeBack({0});
    EXPECT_EQ(read.EndFor({5, 1}), 270u) << "of a window that another run recorded";
}

constexpr Origin kOrigin{11, 1, {33, 44, 55}};
constexpr SecretRecords kSecret{1, {{22, 0}}};
constexpr NodeRange kNodes{100, 4};
constexpr uint32_t kHeldOff = 2003;  // the server started at second 2000
constexpr int64_t kSkewMs = 2000;
constexpr SkewRange kSkew{2000, 2000};
constexpr int64_t kStoppedAtMs = kWindowEpochMs + 2000 * kSecondMs;

// Returns the state that a clean stop writes: one end for kNodes, and one for former node ids.
WindowState Found(uint32_t end) {
    WindowState state{};
    state.origin = kOrigin;
    state.secrets = kSecret;
    state.skew = kSkew;
    state.stop = {{8, 9}, 500000, kStoppedAtMs, kNodes};
    state.write.number = 77;
    SetEnd(&state, {500, 1}, 7);
    SetEnd(&state, kNodes, end);
    return state;
}

// This server starts 500 ms after the stop in Found(), too soon for another server to have run.
constexpr Start kQuick{.origin = kOrigin,
                       .secrets = kSecret,
                       .nodes = kNodes,
                       .boot = {8, 9},
                       .uptime_ms = {500500},
                       .wall_ms = {kStoppedAtMs + 500},
                       .marker = 77,
                       .skew = kSkew};

StartPlan Plan(const WindowState& found, const Start& start = kQuick) {
    return PlanStart(StateError::kNone, found, start);
}

TEST(PlanStart, AQuickRestartGoesOnAtTheWrittenEnd) {
    for (const uint32_t end : {1u, 900u, 1500u, 5000u, kMaxEnd}) {
        const StartPlan plan = Plan(Found(end));
        EXPECT_EQ(plan.finding, Finding::kOwn);
        EXPECT_TRUE(plan.proven);
        EXPECT_EQ(plan.state.OpensAt(kNodes), end);
        EXPECT_EQ(plan.opens_at_ms, 0) << "no wait";
        EXPECT_EQ(plan.secrets, SecretsChange::kNone);
        EXPECT_EQ(plan.state.stop, Stop{}) << "no stop is recorded once the server goes on";
        EXPECT_EQ(plan.state.origin, kOrigin);
        EXPECT_EQ(plan.state.EndFor(kNodes), end);
        EXPECT_EQ(plan.state.EndFor({500, 1}), 7u);
    }
}

Second HeldOff(const Start& start) {
    return PlanStart(StateError::kMissing, WindowState{}, start).held_off_until;
}

TEST(SetTime, FromTheStartOfTheServerOrFromThePresent) {
    const struct {
        const char* what;
        int64_t now_ms;
        bool may_be_promoted;
        int64_t uptime_ms, wall_ms, held_off;
    } cases[] = {
        {"from the start", 70000, false, 500, 10000, 13},
        {"from the present after a promotion", 70000, true, 900, 70000, 73},
        {"also by a clock that was set back", 3000, true, 900, 3000, 6},
        {"from a clock that was set back; the uptime cannot be", 3000, false, 500, 3000, 6},
    };
    for (const auto& c : cases) {
        Start start = kQuick;
        SetTime({500, kWindowEpochMs + 10000}, {900, kWindowEpochMs + c.now_ms}, c.may_be_promoted,
                &start);
        EXPECT_EQ(start.uptime_ms, c.uptime_ms) << c.what;
        EXPECT_EQ(start.wall_ms, kWindowEpochMs + c.wall_ms) << c.what;
        EXPECT_EQ(HeldOff(start), c.held_off) << c.what;
    }
}

TEST(MayOpen, AtTheSecondAndAfterTheUptime) {
    EXPECT_TRUE(MayOpen({2003}, {502500}, {2003}, {502501}));
    EXPECT_FALSE(MayOpen({2003}, {502500}, {2002}, {502501}));
    EXPECT_FALSE(MayOpen({2003}, {502500}, {2003}, {502500}))
        << "as long as the proof of others holds";
}

constexpr NodeRanges kRanges{{100, 4}, 3};

TEST(NodeRanges, FollowEachOther) {
    EXPECT_EQ(kRanges.At(2), (NodeRange{108, 4}));
    EXPECT_EQ(kRanges.All(), (NodeRange{100, 12}));
    EXPECT_EQ(kRanges.IndexOf({104, 4}), 1u);
    for (const NodeRange& other : {NodeRange{112, 4}, {104, 3}, {102, 4}})
        EXPECT_EQ(kRanges.IndexOf(other), 3u);
}

TEST(ChooseRange, OfThoseThatMayOpenTheOneUsedLongestAgo) {
    const Second earliest[kMaxRanges]{};
    const Second later[kMaxRanges]{{}, {}, {80}};
    WindowState state{};
    EXPECT_EQ(LastRange(state, kRanges), 0u);
    EXPECT_EQ(ChooseRange(state, kRanges, 0, earliest, {50}), 1u) << "the lowest never used";
    SetEnd(&state, kRanges.At(0), 100);
    SetEnd(&state, kRanges.At(2), 50);
    EXPECT_EQ(LastRange(state, kRanges), 2u);
    EXPECT_EQ(ChooseRange(state, kRanges, 2, earliest, {200}), 1u) << "never used";
    SetEnd(&state, kRanges.At(1), 60);
    SetEnd(&state, {500, 1}, 70);
    EXPECT_EQ(LastRange(state, kRanges), 1u) << "whatever else was used";
    EXPECT_EQ(ChooseRange(state, kRanges, 1, earliest, {100}), 0u);
    EXPECT_EQ(ChooseRange(state, kRanges, 1, earliest, {99}), 2u) << "below the end of the oldest";
    EXPECT_EQ(ChooseRange(state, kRanges, 1, earliest, {50}), 2u);
    EXPECT_EQ(ChooseRange(state, kRanges, 1, earliest, {49}), 3u) << "none";
    EXPECT_EQ(ChooseRange(state, kRanges, 1, later, {79}), 3u) << "below what the slots allow";
    state.floor = {81};
    EXPECT_EQ(ChooseRange(state, kRanges, 1, earliest, {80}), 3u) << "below the floor";
    EXPECT_EQ(ChooseRange(state, kRanges, 1, earliest, {81}), 2u);
    SetEnd(&state, {110, 9}, 90);
    EXPECT_EQ(ChooseRange(state, kRanges, 1, earliest, {81}), 3u)
        << "an end of some of its node ids";
}

TEST(WindowStateEnds, ThoseOfConfiguredRangesAreNeverMerged) {
    constexpr NodeRanges kAll{{100, 4}, kMaxRanges};
    WindowState state{};
    for (uint32_t i = 0; i < kMaxRanges; i++)
        state.Record(kAll.At(i), Window{10 + i, 11 + i}, kAll);
    for (uint32_t i = 0; i < 40; i++) state.Record({1000 + 10 * i, 2}, Window{100, 200}, kAll);
    for (uint32_t i = 0; i < kMaxRanges; i++) EXPECT_EQ(state.EndFor(kAll.At(i)), 11 + i);
    EXPECT_EQ(state.end_count, kMaxWrittenEnds);
    EXPECT_EQ(state.EndFor({1000, 2}), 200u);
}

TEST(PlanStart, TheFloorIsThatOfTheLastStartThatHeldOff) {
    WindowState found = Found(900);
    found.floor = {5000};
    Start start = kQuick;
    start.marker = 0;
    EXPECT_EQ(Plan(found, start).state.floor, kHeldOff);
    start.after_crash_restart = true;
    EXPECT_EQ(Plan(found, start).state.floor, 5000u) << "after a crash of the same server";
    found.origin.timeline++;
    EXPECT_EQ(Plan(found, start).state.floor, kHeldOff) << "that of another server";
}

// Each case removes one condition of the proof that no other server has used the node ids.
struct Doubt {
    const char* what;
    void (*change)(WindowState* found, Start* start);
    Finding finding = Finding::kOwn;
};

#define CHANGE(...) [](auto* f, auto* s) { (void)f, (void)s, __VA_ARGS__; }
const Doubt kDoubts[] = {
    {"the stop is not recorded", CHANGE(f->stop = Stop{})},
    {"no write is known", CHANGE(f->write.number = s->marker = 0)},
    {"there was another write since: the disk was rolled back", CHANGE(s->marker = 78)},
    {"the marker shows the write before", CHANGE(f->write.follows = s->marker = 76)},
    {"none is known: the machine's memory was lost", CHANGE(s->marker = 0)},
    {"another boot", CHANGE(s->boot[0]++)},
    {"another boot by its second half", CHANGE(s->boot[1]++)},
    {"the boot is not known",
     CHANGE(f->stop.boot[0] = f->stop.boot[1] = 0, s->boot[0] = s->boot[1] = 0)},
    {"just too late", CHANGE(s->uptime_ms = {500000 + kSkewMs})},
    {"long after", CHANGE(s->uptime_ms = {900000})},
    {"before the stop", CHANGE(s->uptime_ms = {499999})},
    {"just too late by the wall clock", CHANGE(s->wall_ms = {kStoppedAtMs + kSkewMs})},
    {"long after by the wall clock: a machine was paused", CHANGE(s->wall_ms = {INT64_MAX / 2})},
    {"before the stop by the wall clock", CHANGE(s->wall_ms = {kStoppedAtMs - 1})},
    {"a stop at an impossible time", CHANGE(f->stop.uptime_ms = {INT64_MIN})},
    {"no difference of clocks is tolerated", CHANGE(s->skew.smallest_ms = 0)},
    {"a smaller one was tolerated since the start", CHANGE(s->skew.smallest_ms = 500)},
    {"a smaller one was tolerated before the stop", CHANGE(f->skew.smallest_ms = 500)},
    {"a smaller one was tolerated before the stop, and a greater one is since",
     CHANGE(f->skew = {500, 500}, s->skew = {2000, 2000})},
    {"a node id before those of the stop", CHANGE(s->nodes = {99, 5})},
    {"a node id after those of the stop", CHANGE(s->nodes = {100, 5})},
    {"node ids never used", CHANGE(s->nodes = {104, 1})},
    {"node ids used before those of the stop", CHANGE(s->nodes = {500, 1})},
    {"all node ids", CHANGE(s->nodes = {0, 131072})},
    {"another system", CHANGE(f->origin.system_identifier ^= 1), Finding::kOtherSystem},
    {"timeline before", CHANGE(f->origin.timeline = 0), Finding::kOtherTimeline},
    {"timeline after", CHANGE(f->origin.timeline = 2), Finding::kOtherTimeline},
    {"another inode", CHANGE(f->origin.identity.inode ^= 1), Finding::kCopied},
    {"another device", CHANGE(f->origin.identity.device ^= 1), Finding::kCopied},
    {"another birth", CHANGE(f->origin.identity.birth_nanoseconds++), Finding::kCopied},
};

TEST(PlanStart, AStartOfLeasedNodeIdsIsNotProven) {
    Start leased = kQuick;
    leased.nodes = {};
    leased.leased_nodes = 4;
    EXPECT_TRUE(Plan(Found(5)).proven);
    EXPECT_FALSE(Plan(Found(5), leased).proven);
    WindowState all = Found(5);
    all.stop.nodes = {0, kNodeIds};
    EXPECT_FALSE(Plan(all, leased).proven);
}

TEST(PlanStart, EveryDoubtHoldsOffBeyondStartAndWrittenEnd) {
    for (const Doubt& doubt : kDoubts)
        for (const uint32_t end : {1u, kHeldOff - 1, kHeldOff, 5000u}) {
            WindowState found = Found(end);
            Start start = kQuick;
            doubt.change(&found, &start);
            const StartPlan plan = Plan(found, start);
            EXPECT_FALSE(plan.proven) << doubt.what;
            EXPECT_EQ(plan.finding, doubt.finding) << doubt.what;
            EXPECT_EQ(plan.held_off_until, HeldOff(start)) << doubt.what;
            EXPECT_EQ(plan.state.OpensAt(start.nodes),
                      std::max(plan.held_off_until, found.EndFor(start.nodes)))
                << doubt.what;
            EXPECT_EQ(plan.opens_at_ms, start.uptime_ms + kSkewMs) << doubt.what;
            EXPECT_EQ(plan.state.origin, kOrigin) << doubt.what;
            EXPECT_EQ(plan.state.stop, Stop{}) << doubt.what;
            EXPECT_EQ(plan.state.EndFor(kNodes), end) << doubt.what;
        }
}

TEST(PlanStart, AsLongAsTheDifferenceOfClocksIsNotOver) {
    for (const int64_t elapsed : {int64_t{0}, kSkewMs - 1}) {
        Start start = kQuick;
        start.uptime_ms = {500000 + elapsed};
        start.wall_ms = {kStoppedAtMs + elapsed};
        EXPECT_TRUE(Plan(Found(900), start).proven);
    }
    WindowState found = Found(900);
    found.stop.boot[1] = 0;
    Start start = kQuick;
    start.boot[1] = 0;
    EXPECT_TRUE(Plan(found, start).proven) << "half of a boot's name may be zero";
}

TEST(PlanStart, WithoutStateItHoldsOff) {
    for (const StateError error :
         {StateError::kMissing, StateError::kLost, StateError::kWrongLength,
          StateError::kWrongMagic, StateError::kWrongVersion, StateError::kWrongChecksum,
          StateError::kWrongContent}) {
        const StartPlan plan = PlanStart(error, Found(5000), kQuick);
        EXPECT_EQ(plan.finding,
                  error == StateError::kMissing ? Finding::kFirstUse : Finding::kUnreadable);
        EXPECT_FALSE(plan.proven);
        EXPECT_EQ(plan.state.OpensAt(kNodes), kHeldOff);
        EXPECT_EQ(plan.opens_at_ms, kQuick.uptime_ms + kSkewMs);
        EXPECT_EQ(plan.state.origin, kOrigin);
        EXPECT_EQ(plan.state.end_count, 0u);
        EXPECT_EQ(plan.secrets, SecretsChange::kNone);
    }
}

TEST(PlanStart, ACopyIsRememberedUntilItIsAcknowledged) {
    const Second now = SecondOf(kQuick.wall_ms);
    EXPECT_EQ(Plan(Found(5000)).state.copied_at, 0u);
    for (const Doubt& doubt : kDoubts) {
        WindowState found = Found(5000);
        Start start = kQuick;
        doubt.change(&found, &start);
        const bool copy =
            doubt.finding == Finding::kCopied || doubt.finding == Finding::kOtherSystem;
        for (const uint32_t before : {0u, 7u}) {
            found.copied_at = {before};
            const StartPlan plan = Plan(found, start);
            const Second expected = copy ? SecondOf(start.wall_ms) : Second{before};
            EXPECT_EQ(plan.state.copied_at, expected) << doubt.what;
            EXPECT_EQ(Plan(plan.state, start).state.copied_at, expected) << "at its next start";
        }
    }
    // A copy remembers the node ids that its original could use, over its own windows and starts,
    // and over a copy of the copy, which may have two originals.
    WindowState original = Found(5000);
    original.end_count = 1;
    original.configured = {original.ends[0].nodes.first, 12};
    Start start = kQuick;
    start.nodes = {500, 4};
    EXPECT_EQ(Plan(original, start).state.original, NodeRange{}) << "no copy";
    start.origin.identity.inode ^= 1;
    WindowState copy = Plan(original, start).state;
    EXPECT_EQ(copy.original, original.configured);
    EXPECT_EQ(copy.configured, start.nodes);
    copy.Record(start.nodes, Window{Second{6000}, Second{6003}});
    EXPECT_EQ(Plan(copy, start).state.original, original.configured) << "at its next start";
    start.origin.identity.inode ^= 2;
    const NodeRange both = Plan(copy, start).state.original;
    EXPECT_TRUE(both.Covers(original.configured) && both.Covers({500, 4}));
    // The server's clock may show a time before the first or after the last second.
    WindowState copied = Found(5000);
    copied.origin.identity.inode ^= 1;
    EXPECT_EQ(CopiedAt(copied, kOrigin, now), now);
    EXPECT_EQ(CopiedAt(copied, kOrigin, {-5}), 1u);
    EXPECT_EQ(CopiedAt(copied, kOrigin, {int64_t{kMaxEnd} + 5}), kMaxEnd);
}

TEST(PlanStart, AnotherSecretIsNoticed) {
    constexpr SecretRecords kOther{1, {{23, 0}}}, kNone{};
    const struct {
        const char* what;
        SecretRecords before, after;
        SecretsChange expected;
    } cases[] = {
        {"another", kOther, kSecret, SecretsChange::kOther},
        {"none is no other one, and what was known stays known", kSecret, kNone,
         SecretsChange::kNone},
        {"none was known", kNone, kSecret, SecretsChange::kNone},
    };
    for (const auto& c : cases) {
        WindowState found = Found(1500);
        found.secrets = c.before;
        Start start = kQuick;
        start.secrets = c.after;
        const StartPlan plan = Plan(found, start);
        EXPECT_EQ(plan.secrets, c.expected) << c.what;
        EXPECT_EQ(plan.finding, Finding::kOwn) << c.what;
        EXPECT_EQ(plan.state.OpensAt(kNodes), 1500u) << c.what;
        EXPECT_EQ(plan.state.secrets.count, 1u) << c.what;
        EXPECT_EQ(plan.state.secrets.records[0], kSecret.records[0]) << c.what;
    }
}

TEST(CompareSecrets, BelowTheEndNothingChanges) {
    constexpr uint32_t kEnd = 100;
    const SecretRecords one = RingOf("A");
    const SecretRecords two = RingOf("A B50");
    const SecretRecords coming = RingOf("A B50 C100");
    const struct {
        const char* what;
        SecretRecords before, after;
        SecretsChange expected;
    } cases[] = {
        {"the same", two, two, SecretsChange::kNone},
        {"grown", two, coming, SecretsChange::kNone},
        {"grown twice", one, RingOf("A B100 C101"), SecretsChange::kNone},
        {"one that has not begun is withdrawn", coming, two, SecretsChange::kNone},
        {"replaced", coming, RingOf("A B50 D100"), SecretsChange::kNone},
        {"moved", coming, RingOf("A B50 C5000"), SecretsChange::kNone},
        {"moved into the past", coming, RingOf("A B50 C99"), SecretsChange::kRefused},
        {"grown in the past", one, two, SecretsChange::kRefused},
        {"shortened", two, one, SecretsChange::kRefused},
        {"its first lost", two, RingOf("B"), SecretsChange::kRefused},
        {"another second", two, RingOf("A C50"), SecretsChange::kRefused},
        {"another time", two, RingOf("A B51"), SecretsChange::kRefused},
        {"another first", two, RingOf("D B50"), SecretsChange::kRefused},
        {"quite another", two, RingOf("G"), SecretsChange::kRefused},
        {"the only one replaced", one, RingOf("G"), SecretsChange::kOther},
        {"the only one replaced by two", one, RingOf("G H50"), SecretsChange::kOther},
        {"one put before the only one", one, RingOf("G A50"), SecretsChange::kRefused},
        {"none before", RingOf(""), two, SecretsChange::kNone},
        {"none after", two, RingOf(""), SecretsChange::kNone},
    };
    for (const auto& c : cases)
        EXPECT_EQ(CompareSecrets(c.before, c.after, {kEnd}), c.expected) << c.what;
    EXPECT_EQ(CompareSecrets(one, two, {50}), SecretsChange::kNone);
    EXPECT_EQ(CompareSecrets(one, two, {51}), SecretsChange::kRefused);
}

constexpr SecretRecords kTwo{2, {{1, 0}, {2, 50}}};

// The server reloads at second 80 and tolerates 2 seconds, so other servers may be at second 82.
Reload ReloadOf(const SecretRecords& before, const SecretRecords& after) {
    Reload reload{};
    reload.before = before;
    reload.after = after;
    reload.issues = true;
    reload.wall_ms = {kWindowEpochMs + 80 * kSecondMs + 400};
    reload.skew = 2000;
    return reload;
}

TEST(DiffersFrom, StaysUntilTheRingHasAnotherSecretThere) {
    const SecretRecords one = RingOf("A");
    const SecretRecords wrong = RingOf("A I100");
    const struct {
        const char* what;
        Second differs_from;
        SecretRecords before, after;
        Second left;
    } cases[] = {
        {"nothing is known", 0, one, one, 0},
        {"the same ring", 100, one, one, 100},
        {"the one that lacked", 100, one, RingOf("A B100"), 0},
        {"another time", 100, one, RingOf("A B99"), 100},
        {"a later time", 100, one, RingOf("A B101"), 100},
        {"one in between, too", 100, one, RingOf("A B50 C100"), 0},
        {"another first secret", 100, one, RingOf("G"), 100},
        {"none, after a crash", 100, one, SecretRecords{}, 100},
        {"the wrong one of that time", 100, wrong, wrong, 100},
        {"still, with a later one", 100, wrong, RingOf("A I100 C200"), 100},
        {"the right one in its place", 100, wrong, RingOf("A B100"), 0},
        {"nothing in its place", 100, wrong, one, 100},
    };
    for (const auto& c : cases)
        EXPECT_EQ(DiffersFrom(c.differs_from, c.before, c.after), c.left) << c.what;
}

TEST(DiffersFrom, WhatIsReadForCertain) {
    const auto raw = [](uint64_t second, uint64_t node, uint64_t sequence) {
        return Packed(kRandflake, {second, node, sequence});
    };
    EXPECT_TRUE(CertainlyRead(kRandflake, raw(99, 5, 7), {100}));
    EXPECT_FALSE(CertainlyRead(kRandflake, raw(100, 5, 7), {100}));
    EXPECT_FALSE(CertainlyRead(kRandflake, raw(kMaxEnd - 1, 0, 1), {100}));
    EXPECT_FALSE(CertainlyRead(kRandflake, raw(100, 1, 0), {100}));
    EXPECT_TRUE(CertainlyRead(kRandflake, raw(100, 0, 0), {100})) << "stands for a second";
    EXPECT_TRUE(CertainlyRead(kRandflake, raw(kMaxEnd - 1, 5, 7), {UINT32_MAX}));
}

SecretRecords TwoAnd(uint32_t from) { return {3, {{1, 0}, {2, 50}, {3, from}}}; }

ReloadPlan PlanFor(const Reload& reload, uint32_t end) {
    WindowState state = Found(end);
    state.secrets = kTwo;
    return PlanReload(reload, &state);
}

TEST(PlanReload, SecretsAreAddedBehindTheLastOne) {
    const struct {
        const char* what;
        SecretRecords after;
        ReloadError error;
        uint32_t secret;
    } cases[] = {
        {"the same", kTwo, ReloadError::kNone, 0},
        {"one more", TwoAnd(500), ReloadError::kNone, 0},
        {"fewer", {1, {{1, 0}, {2, 50}}}, ReloadError::kNotGrown, 1},
        {"none", {}, ReloadError::kNotGrown, 0},
        {"another second", {2, {{1, 0}, {3, 50}}}, ReloadError::kNotGrown, 1},
        {"another time", {2, {{1, 0}, {2, 51}}}, ReloadError::kNotGrown, 1},
        {"another first and one more", {3, {{4, 0}, {2, 50}, {3, 500}}}, ReloadError::kNotGrown, 0},
    };
    for (const auto& c : cases) {
        const ReloadPlan plan = PlanFor(ReloadOf(kTwo, c.after), 70);
        EXPECT_EQ(plan.error, c.error) << c.what;
        EXPECT_EQ(plan.secret, c.secret) << c.what;
    }
}

void ExpectEarliest(const Reload& reload, uint32_t end, uint32_t earliest) {
    Reload tried = reload;
    tried.after = TwoAnd(earliest);
    EXPECT_EQ(PlanFor(tried, end).error, ReloadError::kNone) << end;
    tried.after = TwoAnd(earliest - 1);
    const ReloadPlan plan = PlanFor(tried, end);
    EXPECT_EQ(plan.error, ReloadError::kTooEarly) << end;
    EXPECT_EQ(plan.secret, 2u);
    EXPECT_EQ(plan.earliest, earliest);
    tried.after.records[tried.after.count++] = {4, 5000};
    EXPECT_EQ(PlanFor(tried, end).secret, 2u);
}

TEST(PlanReload, UnderStaticNodeIdsAfterWhatOthersMayHaveReached) {
    const Reload reload = ReloadOf(kTwo, {});
    ExpectEarliest(reload, 70, 83);
    ExpectEarliest(reload, 83, 83);
    ExpectEarliest(reload, 84, 84);
    Reload before_epoch = reload;
    before_epoch.wall_ms = {0};
    before_epoch.before = {1, {{1, 0}}};
    before_epoch.after = {2, {{1, 0}, {2, 1}}};
    EXPECT_EQ(PlanReload(before_epoch, nullptr).error, ReloadError::kNone);
    Reload late = ReloadOf(kTwo, TwoAnd(kMaxEnd - 1));
    late.wall_ms = {INT64_MAX / 2};
    EXPECT_EQ(PlanFor(late, 70).earliest, kMaxEnd);
}

TEST(PlanReload, WhatTheStateRefuses) {
    // After a crash the server has lost its secrets, but it has read the state.
    EXPECT_EQ(PlanFor(ReloadOf({}, TwoAnd(60)), 60).error, ReloadError::kNone);
    EXPECT_EQ(PlanFor(ReloadOf({}, TwoAnd(60)), 61).error, ReloadError::kRefused);
    EXPECT_EQ(PlanFor(ReloadOf({}, {1, {{1, 0}}}), 51).error, ReloadError::kRefused);
    Reload resumed = ReloadOf({}, TwoAnd(60));
    resumed.leases_end = {61};
    EXPECT_EQ(PlanFor(resumed, 60).error, ReloadError::kRefused) << "a lease that was resumed";
}

TEST(LeaseOpensAt, TheWrittenEndsOfItsNodeIds) {
    const auto opens_at = [](StateError error, const WindowState& state, const NodeRange& nodes) {
        return LeaseOpensAt(error, state, nodes, {kHeldOff});
    };
    EXPECT_EQ(opens_at(StateError::kNone, Found(5000), kNodes), 5000u);
    EXPECT_EQ(opens_at(StateError::kNone, Found(5000), {103, 9}), 5000u);
    EXPECT_EQ(opens_at(StateError::kNone, Found(5000), {104, 9}), 0u);
    EXPECT_EQ(opens_at(StateError::kMissing, WindowState{}, kNodes), 0u);
    // A lost or damaged file does not show which static node ids the directory has used.
    for (const StateError error : {StateError::kLost, StateError::kWrongChecksum})
        EXPECT_EQ(opens_at(error, WindowState{}, kNodes), kHeldOff);
    EXPECT_EQ(LeaseOpensAt(StateError::kLost, WindowState{}, kNodes, {kMaxEnd + 5}), kMaxEnd);
}

TEST(RunMarker, IsEightBytes) {
    const uint64_t run = 0x0123456789abcdef;
    uint8_t bytes[9] = {};
    std::memcpy(bytes, &run, sizeof run);
    EXPECT_EQ(ParseRunMarker(bytes, 8), run);
    for (const size_t length : {0u, 7u, 9u}) EXPECT_EQ(ParseRunMarker(bytes, length), 0u) << length;
}

TEST(BootId, IsAUuid) {
    const auto parse = [](const std::string& text) {
        std::array<uint64_t, 2> boot = {1, 1};
        ParseBootId(text.data(), text.size(), boot.data());
        return boot;
    };
    constexpr std::array<uint64_t, 2> kNone = {0, 0};
    const std::string text = "01234567-89ab-cdef-fedc-ba9876543210\n";
    EXPECT_EQ(parse(text), (std::array<uint64_t, 2>{0x0123456789abcdef, 0xfedcba9876543210}));
    EXPECT_EQ(parse(""), kNone);
    EXPECT_EQ(parse(text + "\n"), kNone);
    for (size_t i = 0; i < text.size(); i++) {
        EXPECT_EQ(parse(text.substr(0, i)), kNone) << i;
        for (const char c : {'g', 'A', ' ', '\0'}) {
            std::string other = text;
            other[i] = c;
            EXPECT_EQ(parse(other), kNone) << other;
        }
    }
    EXPECT_EQ(parse("0123456789abcdeffedcba98765432101234\n"), kNone);
}

TEST(Fingerprints, Text) {
    const auto format = [](const SecretRecords& records) {
        char text[kMaxFingerprintsText];
        const size_t length = FormatFingerprints(records, text);
        EXPECT_EQ(length, std::strlen(text));
        return std::string(text);
    };
    EXPECT_EQ(format({}), "");
    EXPECT_EQ(format({1, {{0xfedcba9876543210, 0}}}), "fedcba9876543210");
    EXPECT_EQ(format({3, {{0, 0}, {1, 1}, {~uint64_t{0}, kMaxEnd - 1}}}),
              "0000000000000000 0000000000000001@1730000001 ffffffffffffffff@2803741823");
    SecretRecords all{kMaxGenerations, {}};
    for (uint32_t i = 0; i < kMaxGenerations; i++) all.records[i] = {i, i};
    EXPECT_EQ(format(all).size(), kMaxFingerprintsText - 1);
    char text[kFingerprintText + 1];
    EXPECT_EQ(FormatFingerprint(0x00000000000000af, text), kFingerprintText);
    EXPECT_STREQ(text, "00000000000000af");
}

}  // namespace
}  // namespace randflake
