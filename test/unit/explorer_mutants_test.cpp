// Runs the explorer on broken protocols, each without one safety measure of generator.h. The
// explorer must find a violation in each run, which shows that the protocol needs the measure.

#include "explorer.h"

namespace randflake::explorer {
namespace {

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

enum class Fault {
    kWindowFirst,       // loads the window before the word
    kPlainStore,        // moves the word without a check that it still equals the loaded word
    kStaleReservation,  // retries the same numbers after a lost compare-and-swap
    kWordTooShort,      // moves the word past only the first number of a reservation
    kWindowTooLong,     // accepts a tick if the second after it is in the window
    kOpenedFirst,       // opens the new window before the slot has its word
    kBackInTime,        // changes to any window that is not used, even an earlier window
};
using enum Fault;

template <Fault fault> struct BrokenReserve : ShippedCore {
    static Reservation Reserve(const Layout& layout, Cell& slot, const Cell& window,
                               uint32_t wanted, auto clock) {
        for (;;) {
            Window seen{};
            if (fault == kWindowFirst) seen = Window::FromWord(window.load());
            uint64_t word = slot.load();
            const Tick now = clock();
            if (fault != kWindowFirst) seen = Window::FromWord(window.load());
            if (fault == kWindowTooLong && !seen.closed()) seen.end = seen.end + 1;
            const Reservation reservation = NextReservation(layout, word, now, seen, wanted);
            if (reservation.outcome != Outcome::kReserved) return reservation;
            const uint64_t moved =
                reservation.first + (fault == kWordTooShort ? 0 : reservation.count - 1);
            if (fault == kPlainStore) {
                slot.store(moved);
                return reservation;
            }
            do {
                if (slot.compare_exchange_strong(word, moved)) return reservation;
            } while (fault == kStaleReservation);
        }
    }
};

template <Fault fault> struct BrokenChange : ShippedCore {
    static bool ChangeWindow(uint32_t, uint64_t node_id, Cell& window, Window next, const auto& set,
                             const auto&...) {
        window.store(fault == kOpenedFirst ? next.ToWord() : 0);
        uint64_t word = 0;
        WordBefore(set.layout, next, node_id, &word);
        set.slot(0).store(word);
        window.store(next.ToWord());
        return true;
    }
};

// Seals a window by closing it, without moving the slots' words past the closed seconds.
struct SealedByClosing : ShippedCore {
    static Second SealWindow(uint32_t, Cell& window, const auto& set, const auto&...) {
        window.store(Window::ClosedUntil(Window::FromWord(window.load()).earliest()).ToWord());
        return set.layout.SecondOf(set.layout.Unpack(set.slot(0).load()).timestamp);
    }
};

// Seals a window, but lets the next window start one second too early.
struct SealedTooTight : ShippedCore {
    static Second SealWindow(uint32_t slots, Cell& window, const auto&... sets) {
        const Second last = randflake::SealWindow(slots, window, sets...);
        const Second earliest = Window::FromWord(window.load()).earliest() - 1;
        window.store(Window::ClosedUntil(earliest).ToWord());
        return last;
    }
};

// Lets a range start again at any second, so a slot can get a word that it had before.
struct RangeEnteredAnywhere : ShippedCore {
    static void EnterRange(Cell& window, Second) {
        window.store(Window::ClosedUntil(Second{0}).ToWord());
    }
};

struct OneSetChanged : ShippedCore {
    static bool ChangeWindow(uint32_t slots, uint64_t node_id, Cell& window, Window next,
                             const auto& first, const auto&... others) {
        // This mutant gives the first window to both layouts. An empty slot cannot reserve numbers.
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
    ExpectViolation<BrokenReserve<kWindowFirst>>("number 3/0/0 is outside the window", kOneLayout);
    ExpectViolation<BrokenReserve<kPlainStore>>("number 1/0/0 is reserved twice", kOneLayout);
    ExpectViolation<BrokenReserve<kStaleReservation>>("number 1/0/0 is reserved twice", kOneLayout);
    ExpectViolation<BrokenReserve<kWordTooShort>>("number 1/0/1 is reserved twice", runs_of_two);
    ExpectViolation<BrokenChange<kOpenedFirst>>("number 2/0/0 is outside the window", kOneLayout);
    ExpectViolation<BrokenChange<kBackInTime>>("number 2/0/0 is outside the window", kOneLayout);
    ExpectViolation<SealedByClosing>("number 1/0/0 is outside the window", kOneLayout);
    ExpectViolation<SealedTooTight>("number 2/0/0 is outside the window", kOneLayout);
    ExpectViolation<RangeEnteredAnywhere>("number 2/0/0 is outside the window", ranges);
    ExpectViolation<BrokenReserve<kWindowTooLong>>("number 2/0/0 is outside the window",
                                                   kOneLayout);
    ExpectViolation<OneSetChanged>("number 4/0/0 is outside the window", kTwoLayouts);
    ExpectViolation<OneSetSealed>("number 2/0/0 is outside the window", kTwoLayouts);
}

}  // namespace
}  // namespace randflake::explorer
