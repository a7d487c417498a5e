// Tests NextReservation at the limits of each outcome, and the templates with real atomics.

#include "core/generator/generator.h"
#include "printers.h"

namespace randflake {
namespace {

constexpr uint64_t kMax = 131071;
constexpr uint64_t kEnd = (1u << 30) - 1;
constexpr Window kWindow{100, 200};

uint64_t Word(uint64_t timestamp, uint64_t node_id, uint64_t sequence) {
    return Packed(kRandflake, {timestamp, node_id, sequence});
}

Reservation Next(uint64_t word, int64_t now, Window window = kWindow, uint32_t wanted = 1) {
    return NextReservation(kRandflake, word, {now}, window, wanted);
}

void ExpectReserved(const Reservation& reservation, const Fields& first, uint32_t count) {
    EXPECT_EQ(reservation.outcome, Outcome::kReserved);
    EXPECT_EQ(kRandflake.Unpack(reservation.first), first);
    EXPECT_EQ(reservation.count, count);
}

struct Refused {
    uint64_t word;
    int64_t now;
    Window window = kWindow;
};

// Checks that a refusal reserves nothing, and that it returns the caller's word, clock and window.
void ExpectRefused(Outcome outcome, std::initializer_list<Refused> cases) {
    for (const auto& [word, now, window] : cases)
        for (const uint32_t wanted : {1u, 32u, UINT32_MAX}) {
            SCOPED_TRACE(testing::PrintToString(kRandflake.Unpack(word)));
            const Reservation reservation = Next(word, now, window, wanted);
            EXPECT_EQ(reservation.outcome, outcome);
            EXPECT_EQ(reservation.count, 0u);
            EXPECT_EQ(reservation.previous, word);
            EXPECT_EQ(reservation.now, now);
            EXPECT_EQ(reservation.window, window);
        }
}

constexpr uint32_t k2041 = 1u << 29;
constexpr Window kLast{kEnd, kEnd + 1}, kAround2041{k2041 - 1, k2041 + 1};

TEST(NextReservation, Reserves) {
    const struct {
        const char* what;
        Fields before;
        int64_t now;
        Fields first;
        uint32_t wanted = 1, count = 1;
        Window window = kWindow;
    } cases[] = {
        {"a new second starts at sequence 0", {99, 7, kMax}, 100, {100, 7, 0}},
        {"the next second", {120, 7, 5}, 121, {121, 7, 0}},
        {"a later second", {120, 7, kMax}, 150, {150, 7, 0}},
        {"the window's last second", {120, 7, 5}, 199, {199, 7, 0}},
        {"after nothing at all", {0, 0, 1}, 121, {121, 0, 1}},
        {"number 0 of node id 0 is nobody's", {99, 0, kMax}, 100, {100, 0, 1}},
        {"and 131071 are left of it", {120, 0, 5}, 121, {121, 0, 1}, UINT32_MAX, 131071},
        {"but not of node id 1", {120, 1, 5}, 121, {121, 1, 0}, UINT32_MAX, 131072},
        {"nor of the last node id", {120, 131071, 5}, 121, {121, 131071, 0}},
        {"the same second goes on", {120, 131071, 0}, 120, {120, 131071, 1}},
        {"to its last number", {120, 0, kMax - 1}, 120, {120, 0, kMax}},
        {"a clock behind finishes the slot's second", {120, 7, 5}, 119, {120, 7, 6}},
        {"far behind", {120, 7, 5}, 0, {120, 7, 6}},
        {"far behind, with several", {120, 7, 5}, 0, {120, 7, 6}, 3, 3},
        {"many of a new second", {120, 7, 5}, 121, {121, 7, 0}, 32, 32},
        {"many of the same second", {120, 7, 5}, 120, {120, 7, 6}, 32, 32},
        {"the last 32", {120, 7, kMax - 32}, 120, {120, 7, kMax - 31}, 32, 32},
        {"31 where 32 are wanted", {120, 7, kMax - 31}, 120, {120, 7, kMax - 30}, 32, 31},
        {"one where 32 are wanted", {120, 7, kMax - 1}, 120, {120, 7, kMax}, 32, 1},
        {"a whole second", {120, 7, 5}, 121, {121, 7, 0}, 131072, 131072},
        {"no more than a second", {120, 7, 5}, 121, {121, 7, 0}, 131073, 131072},
        {"whatever is wanted", {120, 7, 5}, 121, {121, 7, 0}, UINT32_MAX, 131072},
        {"the last second", {120, 7, 5}, kEnd, {kEnd, 7, 0}, 1, 1, kLast},
        {"the last of all", {kEnd, kMax, kMax - 1}, kEnd, {kEnd, kMax, kMax}, 32, 1, kLast},
        {"the top bit of time", {k2041 - 1, 7, kMax}, k2041, {k2041, 7, 0}, 1, 1, kAround2041},
        {"a clock behind it", {k2041, 7, 0}, k2041 - 1, {k2041, 7, 1}, 1, 1, kAround2041},
    };
    for (const auto& c : cases) {
        SCOPED_TRACE(c.what);
        const uint64_t word = Packed(kRandflake, c.before);
        const Reservation reservation = Next(word, c.now, c.window, c.wanted);
        ExpectReserved(reservation, c.first, c.count);
        EXPECT_EQ(reservation.previous, word);
        EXPECT_EQ(reservation.now, c.now);
        EXPECT_EQ(reservation.window, c.window);
    }
}

TEST(NextReservation, Refuses) {
    constexpr auto w = Word;
    ExpectRefused(Outcome::kExhausted, {{w(120, 7, kMax), 120}, {UINT64_MAX, kEnd, kLast}});
    ExpectRefused(Outcome::kClockBehind, {{w(120, 7, kMax), 119}, {w(120, 7, kMax), 0}});
    ExpectRefused(Outcome::kClockBeforeEpoch,
                  {{w(120, 7, 5), -1}, {w(120, 7, 5), INT64_MIN}, {0, -1, {0, 10}}});
    ExpectRefused(Outcome::kClockAfterEnd, {{w(120, 7, 5), kEnd + 1, kLast},
                                            {w(120, 7, 5), INT64_MAX, kLast},
                                            {w(kEnd, 7, 5), kEnd + 1, {100, UINT32_MAX}}});
    ExpectRefused(Outcome::kWindowClosed, {{w(120, 7, 5), 121, {0, 0}},
                                           {w(120, 7, 5), 121, {121, 121}},
                                           {w(120, 7, 5), 121, {130, 110}}});
    // A slot that has no window cannot reserve numbers, even if other slots already can.
    ExpectRefused(Outcome::kNoWord, {{kEmptySlot, 121}, {kEmptySlot, 121, {1, 1u << 30}}});
    ExpectRefused(Outcome::kBeforeWindow, {{w(99, 7, kMax), 99},
                                           {w(99, 7, kMax), 0},
                                           {w(90, 7, kMax), 99},
                                           {w(90, 7, 5), 90},
                                           {w(99, 7, kMax - 1), 99}});
    // In the last case, the clock does not matter: the slot's word is past the window's end.
    ExpectRefused(
        Outcome::kWindowEnded,
        {{w(120, 7, 5), 200}, {w(199, 7, kMax), 200}, {w(199, 7, 5), kEnd}, {w(200, 7, 5), 150}});
}

using AtomicWord = std::atomic<uint64_t>;

// Long runs use up what they may take of a second. Then a single number is still free.
TEST(LongRun, LeavesAQuarterOfEachSecond) {
    const auto take = [](uint64_t word, uint32_t wanted) {
        return NextReservation(kRandflake, word, {120}, kWindow, wanted, Share::kLongRun);
    };
    ExpectReserved(take(Word(119, 7, 5), 1000), {120, 7, 0}, 1000);
    ExpectReserved(take(Word(119, 7, 5), UINT32_MAX), {120, 7, 0}, 49152);
    ExpectReserved(take(Word(120, 7, 49151), UINT32_MAX), {120, 7, 49152}, 24576);
    ExpectReserved(take(Word(120, 7, 98175), UINT32_MAX), {120, 7, 98176}, 64);

    uint64_t word = Word(119, 7, 5);
    for (Reservation run = take(word, UINT32_MAX); run.count > 0; run = take(word, UINT32_MAX)) {
        const uint64_t left = 98304 - kRandflake.Unpack(run.first).sequence;
        EXPECT_GE(run.count, kLeastOfLongRun);
        EXPECT_LE(run.count, left / 2);
        word = run.first + run.count - 1;
    }
    EXPECT_EQ(take(word, 1).outcome, Outcome::kExhausted);
    EXPECT_EQ(take(word, 1).count, 0u);
    EXPECT_LT(kRandflake.Unpack(word).sequence, 98304u);
    ExpectReserved(Next(word, 120, kWindow, UINT32_MAX),
                   {120, 7, kRandflake.Unpack(word).sequence + 1},
                   static_cast<uint32_t>(131071 - kRandflake.Unpack(word).sequence));
    EXPECT_EQ(NextReservation(kRandflake, word, {119}, kWindow, 1, Share::kLongRun).outcome,
              Outcome::kClockBehind);
    ExpectReserved(NextReservation(kRandflake, word, {121}, kWindow, 1, Share::kLongRun),
                   {121, 7, 0}, 1);
}

// Twitter's layout counts milliseconds. Its epoch is not at the start of a second.
constexpr Layout kTwitter{1288834974657, 41, 10, 12, 1};
constexpr uint64_t kWindowStart = StartOf(kWindow.start).count - kTwitter.epoch;
constexpr uint64_t kWindowEnd = StartOf(kWindow.end).count - kTwitter.epoch;

struct Server {
    std::array<AtomicWord, 3> randflake{}, snowflake{};
    AtomicWord window{0};

    auto Sets(auto&& use) {
        return use(SlotSet{kRandflake, [this](uint32_t i) -> AtomicWord& { return randflake[i]; }},
                   SlotSet{kTwitter, [this](uint32_t i) -> AtomicWord& { return snowflake[i]; }});
    }
    bool Change(uint64_t first_node, Window next) {
        return Sets([&](const auto&... sets) {
            return ChangeWindow(3, first_node, window, next, sets...);
        });
    }
    Second Seal() {
        return Sets([&](const auto&... sets) { return SealWindow(3, window, sets...); });
    }
    auto Take(uint32_t slot, int64_t now) {
        return Reserve(kRandflake, randflake[slot], window, 1, [now] { return Tick{now}; });
    }
    auto TakeSnowflake(uint32_t slot, uint64_t tick) {
        return Reserve(kTwitter, snowflake[slot], window, 1,
                       [tick] { return Tick{static_cast<int64_t>(tick)}; });
    }
    bool closed() const { return Window::FromWord(window.load()).closed(); }
};

TEST(ChangeWindow, RefusesToGoBackInTime) {
    Server server;
    EXPECT_TRUE(server.Change(40, kWindow));
    EXPECT_FALSE(server.Change(50, {kWindow.end - 1, 300}));
    EXPECT_TRUE(server.closed());
    // A closed window keeps the last open window's end. No window may start before this end.
    EXPECT_FALSE(server.Change(50, {kWindow.end - 1, 300}));
    EXPECT_TRUE(server.Change(50, {kWindow.end, 300}));
}

TEST(SealWindow, NothingUsed) {
    Server server;
    EXPECT_LT(server.Seal(), 0);  // no window yet
    EXPECT_TRUE(server.Change(40, kWindow));
    EXPECT_LT(server.Seal(), 0);
    EXPECT_LT(server.Seal(), 0);
    EXPECT_TRUE(server.closed());
}

// The window after a seal may start two seconds after the last used second.
TEST(SealWindow, LeavesTheRestOfTheTimeToTheNextWindow) {
    Server server;
    EXPECT_TRUE(server.Change(40, kWindow));
    ExpectReserved(server.Take(0, 110), {110, 40, 0}, 1);
    EXPECT_EQ(server.Seal(), 110);
    EXPECT_FALSE(server.Change(50, {111, 300}));
    EXPECT_TRUE(server.Change(50, {112, 300}));
    EXPECT_LT(server.Seal(), 0);
    EXPECT_FALSE(server.Change(60, {112, 300}));
    EXPECT_TRUE(server.Change(60, {113, 300}));
    ExpectReserved(server.Take(2, 113), {113, 62, 0}, 1);
}

TEST(NearsEnd, InTheLastSecondOfTheWindow) {
    EXPECT_FALSE(NearsEnd(kRandflake, Next(Word(120, 7, 5), 198)));
    EXPECT_TRUE(NearsEnd(kRandflake, Next(Word(120, 7, 5), 199)));
    for (const bool near : {false, true}) {
        const Tick now{static_cast<int64_t>(kWindowEnd) - (near ? 1000 : 1001)};
        EXPECT_EQ(NearsEnd(kTwitter, {Outcome::kReserved, 1, 0, 0, now, kWindow}), near);
    }
}

TEST(ClockIsBehind, ByMoreThanIsTolerated) {
    EXPECT_FALSE(ClockIsBehind(kRandflake, Next(Word(120, 7, 5), 118), 2000));
    EXPECT_TRUE(ClockIsBehind(kRandflake, Next(Word(120, 7, 5), 117), 2000));
    EXPECT_TRUE(ClockIsBehind(kRandflake, Next(Word(120, 7, kMax), 117), 2000));
    EXPECT_TRUE(ClockIsBehind(kRandflake, Next(Word(99, 7, kMax), 97), 2000));
    EXPECT_FALSE(ClockIsBehind(kRandflake, Next(Word(99, 7, kMax), 97, {100, 100}), 2000));
}

TEST(TwoLayouts, ChangeTogether) {
    Server server;
    EXPECT_TRUE(server.Change(40, kWindow));
    for (uint32_t i = 0; i < 3; i++) {
        EXPECT_EQ(server.randflake[i].load(), Word(99, 40 + i, kMax));
        EXPECT_EQ(kTwitter.Unpack(server.snowflake[i].load()),
                  (Fields{kWindowStart - 1, 40 + i, 4095}));
    }
    // Twitter's layout lacks node id 1024, so this window opens in none of that layout's slots.
    EXPECT_TRUE(server.Change(1022, {200, 300}));
    for (uint32_t i = 0; i < 3; i++) {
        EXPECT_EQ(server.randflake[i].load(), Word(199, 1022 + i, kMax));
        EXPECT_EQ(server.snowflake[i].load(), kEmptySlot);
        EXPECT_EQ(server.TakeSnowflake(i, kWindowEnd).outcome, Outcome::kNoWord);
        EXPECT_TRUE(LayoutLacksWindow(kTwitter, 1024, server.snowflake[i], server.window));
        EXPECT_FALSE(LayoutLacksWindow(kRandflake, 1024, server.randflake[i], server.window));
        EXPECT_FALSE(LayoutLacksWindow(kTwitter, 1023, server.snowflake[i], server.window));
    }
    EXPECT_FALSE(server.Change(131070, {300, 400}));
}

TEST(TwoLayouts, SlotsOfANarrowLayout) {
    EXPECT_EQ(kRandflake.Slots(131072), 131072u);
    EXPECT_EQ(kRandflake53.Slots(255), 255u);
    EXPECT_EQ(kRandflake53.Slots(256), 256u);
    EXPECT_EQ(kRandflake53.Slots(1000), 256u);
    AtomicWord window{0};
    std::vector<AtomicWord> wide(300), narrow(256);
    const SlotSet wide_set{kRandflake, [&](uint32_t i) -> AtomicWord& { return wide.at(i); }};
    const SlotSet narrow_set{kRandflake53, [&](uint32_t i) -> AtomicWord& { return narrow.at(i); }};
    const auto change = [&](uint32_t slots, uint64_t first_node, Window next) {
        return ChangeWindow(slots, first_node, window, next, wide_set, narrow_set);
    };
    EXPECT_TRUE(change(256, 0, kWindow));
    EXPECT_EQ(kRandflake53.Unpack(narrow[255].load()), (Fields{99, 255, 32767}));
    EXPECT_TRUE(change(300, 0, {200, 300}));
    EXPECT_EQ(narrow[255].load(), kEmptySlot);
    EXPECT_NE(wide[299].load(), kEmptySlot);
    EXPECT_TRUE(change(256, 1, {300, 400}));
    EXPECT_EQ(narrow[0].load(), kEmptySlot);
    EXPECT_TRUE(change(1, 255, {400, 500}));
    EXPECT_NE(narrow[0].load(), kEmptySlot);
    EXPECT_EQ(narrow[1].load(), kEmptySlot);
    EXPECT_LT(SealWindow(300, window, wide_set, narrow_set), 0);
}

TEST(TwoLayouts, SealTogether) {
    Server server;
    EXPECT_TRUE(server.Change(40, kWindow));
    EXPECT_EQ(server.TakeSnowflake(1, kWindowStart + 12000).outcome, Outcome::kReserved);
    EXPECT_EQ(server.Seal(), 112);
    for (uint32_t i = 0; i < 3; i++) {
        EXPECT_EQ(server.randflake[i].load(), kEmptySlot);
        EXPECT_EQ(server.snowflake[i].load(), kEmptySlot);
    }
    EXPECT_FALSE(LayoutLacksWindow(kTwitter, 1024, server.snowflake[0], server.window));
    EXPECT_FALSE(server.Change(50, {113, 300}));
    EXPECT_TRUE(server.Change(50, {114, 300}));
    EXPECT_LT(server.Seal(), 0);
}

}  // namespace
}  // namespace randflake
