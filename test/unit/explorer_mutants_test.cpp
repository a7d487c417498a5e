// Runs the explorer on broken protocols. Each protocol leaves out one measure of generator.h, and
// the explorer must find a violation. So the explorer can fail, and the protocol needs each
// measure.

#include <gtest/gtest.h>

#include "explorer.h"

namespace randflake::explorer {
namespace {

// Expects the violation with the shortest history to begin with this text.
template <typename Broken>
void ExpectViolation(const std::string& expected, const Scenario& scenario) {
    const Findings findings = Explorer<Broken>(scenario).Explore();
    EXPECT_EQ(findings.violation.substr(0, expected.size()), expected) << findings.violation;
}

const Scenario kOneLayout{.layouts = {{kWindowEpochMs, 2, 1, 1}},
                          .slots = 1,
                          .backends = 2,
                          .node_ids = 2,
                          .most_wanted = 1};

const Scenario kTwoLayouts{.layouts = {{kWindowEpochMs, 2, 1, 1}, {kWindowEpochMs, 3, 1, 1, 500}},
                           .slots = 1,
                           .backends = 1,
                           .node_ids = 2,
                           .most_wanted = 1};

struct WindowFirst : ShippedCore {
    static Reservation Reserve(const Layout& layout, Cell& slot, const Cell& window,
                               uint32_t wanted, auto clock) {
        for (;;) {
            const Window seen = Window::FromWord(window.load());
            uint64_t word = slot.load();
            const Reservation reservation = NextReservation(layout, word, clock(), seen, wanted);
            if (reservation.outcome != Outcome::kReserved ||
                slot.compare_exchange_strong(word, reservation.first + reservation.count - 1))
                return reservation;
        }
    }
};

// Moves the word without a check that it still equals the loaded word.
struct PlainStore : ShippedCore {
    static Reservation Reserve(const Layout& layout, Cell& slot, const Cell& window,
                               uint32_t wanted, auto clock) {
        const uint64_t word = slot.load();
        const Reservation reservation =
            NextReservation(layout, word, clock(), Window::FromWord(window.load()), wanted);
        if (reservation.outcome == Outcome::kReserved)
            slot.store(reservation.first + reservation.count - 1);
        return reservation;
    }
};

// Retries the same numbers after a lost compare-and-swap.
struct StaleReservation : ShippedCore {
    static Reservation Reserve(const Layout& layout, Cell& slot, const Cell& window,
                               uint32_t wanted, auto clock) {
        uint64_t word = slot.load();
        const Reservation reservation =
            NextReservation(layout, word, clock(), Window::FromWord(window.load()), wanted);
        if (reservation.outcome == Outcome::kReserved)
            while (!slot.compare_exchange_strong(word, reservation.first + reservation.count - 1)) {
            }
        return reservation;
    }
};

// Moves the word past only the first number of a reservation.
struct WordTooShort : ShippedCore {
    static Reservation Reserve(const Layout& layout, Cell& slot, const Cell& window,
                               uint32_t wanted, auto clock) {
        for (;;) {
            uint64_t word = slot.load();
            const Reservation reservation =
                NextReservation(layout, word, clock(), Window::FromWord(window.load()), wanted);
            if (reservation.outcome != Outcome::kReserved ||
                slot.compare_exchange_strong(word, reservation.first))
                return reservation;
        }
    }
};

uint64_t Before(const Layout& layout, Window window, uint64_t node_id) {
    uint64_t word = 0;
    WordBefore(layout, window, node_id, &word);
    return word;
}

// Opens the new window before the slot has its word.
struct OpenedFirst : ShippedCore {
    static bool ChangeWindow(uint32_t, uint64_t node_id, Cell& window, Window next, const auto& set,
                             const auto&...) {
        window.store(next.ToWord());
        set.slot(0).store(Before(set.layout, next, node_id));
        return true;
    }
};

// Changes to any window that the server has not used, even an earlier window.
struct BackInTime : ShippedCore {
    static bool ChangeWindow(uint32_t, uint64_t node_id, Cell& window, Window next, const auto& set,
                             const auto&...) {
        window.store(0);
        set.slot(0).store(Before(set.layout, next, node_id));
        window.store(next.ToWord());
        return true;
    }
};

// Seals a window by closing it, without changing the words.
struct SealedByClosing : ShippedCore {
    static Second SealWindow(uint32_t, Cell& window, const auto& set, const auto&...) {
        window.store(Window::ClosedUntil(Window::FromWord(window.load()).earliest()).ToWord());
        return set.layout.SecondOf(set.layout.Unpack(set.slot(0).load()).timestamp);
    }
};

// Seals a window, and lets the next window start right after the last used second.
struct SealedTooTight : ShippedCore {
    static Second SealWindow(uint32_t slots, Cell& window, const auto&... sets) {
        const Second last = randflake::SealWindow(slots, window, sets...);
        const Second earliest = Window::FromWord(window.load()).earliest() - 1;
        window.store(Window::ClosedUntil(earliest).ToWord());
        return last;
    }
};

// Enters a range again at the written end, so that a former word may recur.
struct RangeEnteredAnywhere : ShippedCore {
    static void EnterRange(Cell& window, Second) {
        window.store(Window::ClosedUntil(Second{0}).ToWord());
    }
};

// Accepts a tick if the second after it is in the window.
struct WindowTooLong : ShippedCore {
    static Reservation Reserve(const Layout& layout, Cell& slot, const Cell& window,
                               uint32_t wanted, auto clock) {
        for (;;) {
            uint64_t word = slot.load();
            const Tick now = clock();
            Window seen = Window::FromWord(window.load());
            if (!seen.closed())
                seen.end = seen.end + 1;
            const Reservation reservation = NextReservation(layout, word, now, seen, wanted);
            if (reservation.outcome != Outcome::kReserved ||
                slot.compare_exchange_strong(word, reservation.first + reservation.count - 1))
                return reservation;
        }
    }
};

// Gives the new window to the slots of one layout only.
struct OneSetChanged : ShippedCore {
    static bool ChangeWindow(uint32_t slots, uint64_t node_id, Cell& window, Window next,
                             const auto& first, const auto&... others) {
        // Gives both layouts their first window.
        if (((others.slot(0).load() == kEmptySlot) || ...))
            return randflake::ChangeWindow(slots, node_id, window, next, first, others...);
        return randflake::ChangeWindow(slots, node_id, window, next, first);
    }
};

struct OneSetSealed : ShippedCore {
    static Second SealWindow(uint32_t slots, Cell& window, const auto& first, const auto&...) {
        return randflake::SealWindow(slots, window, first);
    }
};

TEST(ExplorerFinds, EachBrokenProtocol) {
    Scenario runs_of_two = kOneLayout;
    runs_of_two.most_wanted = 2;
    Scenario ranges = kOneLayout;
    ranges.ranges = true;
    ExpectViolation<WindowFirst>("number 3/0/0 is outside the window", kOneLayout);
    ExpectViolation<PlainStore>("number 1/0/0 is reserved twice", kOneLayout);
    ExpectViolation<StaleReservation>("number 1/0/0 is reserved twice", kOneLayout);
    ExpectViolation<WordTooShort>("number 1/0/1 is reserved twice", runs_of_two);
    ExpectViolation<OpenedFirst>("number 2/0/0 is outside the window", kOneLayout);
    ExpectViolation<BackInTime>("number 2/0/0 is outside the window", kOneLayout);
    ExpectViolation<SealedByClosing>("number 1/0/0 is outside the window", kOneLayout);
    ExpectViolation<SealedTooTight>("number 2/0/0 is outside the window", kOneLayout);
    ExpectViolation<RangeEnteredAnywhere>("number 2/0/0 is outside the window", ranges);
    ExpectViolation<WindowTooLong>("number 2/0/0 is outside the window", kOneLayout);
    ExpectViolation<OneSetChanged>("number 4/0/0 is outside the window", kTwoLayouts);
    ExpectViolation<OneSetSealed>("number 2/0/0 is outside the window", kTwoLayouts);
}

}  // namespace
}  // namespace randflake::explorer
