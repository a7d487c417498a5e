// The explorer on broken protocols. Each leaves out one measure of generator.h, and each must be
// found out: so the explorer is known to fail where it should, and each measure to be needed.

#include <gtest/gtest.h>

#include "explorer.h"

namespace randflake::explorer {
namespace {

// What is expected is the start of the shortest history's violation.
template <typename Broken>
void ExpectViolation(const std::string& expected, uint32_t most_wanted = 1) {
    const Findings findings = Explorer<Broken>({.layout = {0, 2, 1, 1},
                                                .slots = 1,
                                                .backends = 2,
                                                .node_ids = 2,
                                                .most_wanted = most_wanted})
                                  .Explore();
    EXPECT_EQ(findings.violation.substr(0, expected.size()), expected) << findings.violation;
}

// Loads the window before the word.
struct WindowFirst : ShippedCore {
    static Run Reserve(const Layout& layout, Cell& slot, const Cell& window, uint32_t wanted,
                       auto clock) {
        for (;;) {
            const Window seen = Window::FromWord(window.load());
            uint64_t word = slot.load();
            const Run run = NextRun(layout, word, clock(), seen, wanted);
            if (run.outcome != Outcome::kReserved ||
                slot.compare_exchange_strong(word, run.first + run.count - 1))
                return run;
        }
    }
};

TEST(ExplorerFinds, WindowLoadedBeforeTheWord) {
    ExpectViolation<WindowFirst>("number 3/0/0 is outside the window");
}

// Moves the word without looking whether it is still the one that was loaded.
struct PlainStore : ShippedCore {
    static Run Reserve(const Layout& layout, Cell& slot, const Cell& window, uint32_t wanted,
                       auto clock) {
        const uint64_t word = slot.load();
        const Run run = NextRun(layout, word, clock(), Window::FromWord(window.load()), wanted);
        if (run.outcome == Outcome::kReserved)
            slot.store(run.first + run.count - 1);
        return run;
    }
};

TEST(ExplorerFinds, StoreForCompareAndSwap) {
    ExpectViolation<PlainStore>("number 1/0/0 is reserved twice");
}

// After a lost compare-and-swap, tries the same numbers again.
struct StaleRun : ShippedCore {
    static Run Reserve(const Layout& layout, Cell& slot, const Cell& window, uint32_t wanted,
                       auto clock) {
        uint64_t word = slot.load();
        const Run run = NextRun(layout, word, clock(), Window::FromWord(window.load()), wanted);
        if (run.outcome == Outcome::kReserved)
            while (!slot.compare_exchange_strong(word, run.first + run.count - 1)) {
            }
        return run;
    }
};

TEST(ExplorerFinds, NumbersOfALostAttempt) {
    ExpectViolation<StaleRun>("number 1/0/0 is reserved twice");
}

// Moves the word past the first number of a run only.
struct WordTooShort : ShippedCore {
    static Run Reserve(const Layout& layout, Cell& slot, const Cell& window, uint32_t wanted,
                       auto clock) {
        for (;;) {
            uint64_t word = slot.load();
            const Run run = NextRun(layout, word, clock(), Window::FromWord(window.load()), wanted);
            if (run.outcome != Outcome::kReserved || slot.compare_exchange_strong(word, run.first))
                return run;
        }
    }
};

TEST(ExplorerFinds, WordNotMovedPastTheRun) {
    ExpectViolation<WordTooShort>("number 1/0/1 is reserved twice", 2);
}

uint64_t Before(const Layout& layout, Window window, uint64_t node_id) {
    uint64_t word = 0;
    WordBefore(layout, window, node_id, &word);
    return word;
}

// Opens the new window before the slot has its word.
struct OpenedFirst : ShippedCore {
    static bool ChangeWindow(const Layout& layout, auto slot, uint32_t, uint64_t node_id,
                             Cell& window, Window next) {
        window.store(next.ToWord());
        slot(0).store(Before(layout, next, node_id));
        return true;
    }
};

TEST(ExplorerFinds, WindowOpenedBeforeTheWordIsStored) {
    ExpectViolation<OpenedFirst>("number 2/0/0 is outside the window");
}

// Changes to any window that was never given before, be it earlier than the last.
struct BackInTime : ShippedCore {
    static bool ChangeWindow(const Layout& layout, auto slot, uint32_t, uint64_t node_id,
                             Cell& window, Window next) {
        window.store(0);
        slot(0).store(Before(layout, next, node_id));
        window.store(next.ToWord());
        return true;
    }
};

TEST(ExplorerFinds, WindowsThatGoBackInTime) {
    ExpectViolation<BackInTime>("number 2/0/0 is outside the window");
}

// Seals a window by closing it, with the words left as they are.
struct SealedByClosing : ShippedCore {
    static int64_t SealWindow(const Layout& layout, auto slot, uint32_t, Cell& window) {
        const uint32_t end = Window::FromWord(window.load()).end;
        window.store(Window{end, end}.ToWord());
        return static_cast<int64_t>(layout.Unpack(slot(0).load()).timestamp);
    }
};

TEST(ExplorerFinds, WordsLeftInASealedWindow) {
    ExpectViolation<SealedByClosing>("number 1/0/0 is outside the window");
}

// Seals a window, and lets the next one start right after the last second used.
struct SealedTooTight : ShippedCore {
    static int64_t SealWindow(const Layout& layout, auto& slot, uint32_t slots, Cell& window) {
        const int64_t last = randflake::SealWindow(layout, slot, slots, window);
        const uint32_t earliest = Window::FromWord(window.load()).end - 1;
        window.store(Window{earliest, earliest}.ToWord());
        return last;
    }
};

TEST(ExplorerFinds, WindowRightAfterASealedOne) {
    ExpectViolation<SealedTooTight>("number 2/0/0 is outside the window");
}

}  // namespace
}  // namespace randflake::explorer
