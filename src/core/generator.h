// The generator: how the next run of raw numbers follows from a slot's word, the clock and the
// window. Pure; the only atomics are those the caller passes to Reserve.
//
// A slot is one word: the last raw number reserved under one node id. It only moves forward while
// its node id stays the same, so a number is reserved by the one compare-and-swap that moves the
// word past it. The window is a half-open range of seconds [start, end) that this server owns for
// its node ids; a number outside it is never reserved.
//
// Protocol between Reserve and ChangeWindow:
//
//   Reserve                            ChangeWindow (one caller at a time)
//     load word                          store window: closed
//     read clock                         store every slot's word (node id, just before start)
//     load window                        store window: [start, end)
//     compare-and-swap word
//
// Reserve loads the word first. If its word is older than a change, the compare-and-swap fails,
// because the change stored another word. If its word is the new one, the window it loads later is
// closed or new. So a number lies in the window in force when it is reserved, wherever the two are
// paused. Moving the end of an open window needs no protocol: one store, by the same one caller.
//
// That takes for granted that no word comes back once it was changed. It could when a node id comes
// back: the word before a window is, bit for bit, the last number of the second before. Then a
// Reserve that was paused through the windows of other node ids in between would succeed with what
// it made of one of those. So windows follow each other in time: a closed window keeps, as start
// and end, the first second at which the next one may start, and an earlier start is refused.
// Usually that is the end of the last one, and no number that follows the word before a window lies
// before its start, while all windows before ended there. A window that was sealed before its end
// leaves an earlier second: two after the last one used, so that no word of a sealed window is the
// word before a later one. What SealWindow itself stores comes back with every sealed window, but
// nothing is ever reserved from it.

#ifndef RANDFLAKE_CORE_GENERATOR_H
#define RANDFLAKE_CORE_GENERATOR_H

#include <atomic>
#include <cstdint>

#include "layout.h"

namespace randflake {

// Seconds since the layout's epoch. Closed when empty.
struct Window {
    uint32_t start;
    uint32_t end;  // exclusive

    constexpr bool closed() const { return start >= end; }
    constexpr uint64_t ToWord() const { return uint64_t{start} << 32 | end; }
    static constexpr Window FromWord(uint64_t word) {
        return {static_cast<uint32_t>(word >> 32), static_cast<uint32_t>(word)};
    }
    friend constexpr bool operator==(const Window&, const Window&) = default;
};

// The word of a slot without a window: what shared memory begins with, and what SealWindow leaves.
// It is no number of any window and comes before none, because windows start at second 1 or later
// and a sequence has at least one bit.
inline constexpr uint64_t kNoWindow = 0;

enum class Outcome : uint8_t {
    kReserved,
    kExhausted,         // every sequence number of this second is used
    kClockBehind,       // the same, and the clock is before the slot's second
    kClockBeforeEpoch,  // the clock is before the layout's first second
    kClockAfterEnd,     // the clock is after the layout's last second
    kWindowClosed,      // or not yet open when the slot's word was loaded
    kBeforeWindow,      // the window starts later
    kWindowEnded,       // the window ended
};

struct Run {
    Outcome outcome;
    uint32_t count;     // numbers reserved; at least 1 with kReserved, else 0
    uint64_t first;     // raw numbers first .. first + count - 1, the last being the new word
    uint64_t previous;  // the slot's word as it was
    int64_t now;        // the clock reading that decided, seconds since the epoch
    Window window;      // the window that decided
};

// One step. `word` is the slot's word, `now` in seconds since the layout's epoch, `wanted` >= 1.
// At most `wanted` numbers, all of one second.
//
// A clock behind the slot's second continues in that second: numbers already used cannot come
// again, and a clock that was stepped back a little costs nothing.
constexpr Run NextRun(const Layout& layout, uint64_t word, int64_t now, Window window,
                      uint32_t wanted) noexcept {
    Run run{Outcome::kReserved, 0, 0, word, now, window};
    if (now < 0) {
        run.outcome = Outcome::kClockBeforeEpoch;
        return run;
    }
    if (static_cast<uint64_t>(now) > layout.max_timestamp()) {
        run.outcome = Outcome::kClockAfterEnd;
        return run;
    }
    if (window.closed() || word == kNoWindow) {
        run.outcome = Outcome::kWindowClosed;
        return run;
    }

    const auto second = static_cast<uint64_t>(now);
    Fields next = layout.Unpack(word);
    if (second > next.timestamp) {
        next.timestamp = second;
        next.sequence = 0;
    } else if (next.sequence < layout.max_sequence()) {
        next.sequence++;
    } else if (next.timestamp < window.start) {
        // A word stored by ChangeWindow, not a used-up second: the window has yet to start.
        run.outcome = Outcome::kBeforeWindow;
        return run;
    } else {
        run.outcome = second < next.timestamp ? Outcome::kClockBehind : Outcome::kExhausted;
        return run;
    }

    if (next.timestamp < window.start) {
        run.outcome = Outcome::kBeforeWindow;
        return run;
    }
    if (next.timestamp >= window.end) {
        run.outcome = Outcome::kWindowEnded;
        return run;
    }

    if (!layout.Pack(next, &run.first)) {
        run.outcome = Outcome::kClockAfterEnd;
        return run;
    }
    const uint64_t room = layout.max_sequence() - next.sequence + 1;
    run.count = wanted < room ? wanted : static_cast<uint32_t>(room);
    return run;
}

// Reserves up to `wanted` numbers in a slot. `clock()` gives seconds since the layout's epoch.
// Lock-free; safe against any number of concurrent Reserve and one ChangeWindow.
template <typename AtomicWord, typename Clock>
Run Reserve(const Layout& layout, AtomicWord& slot, const AtomicWord& window, uint32_t wanted,
            Clock&& clock) {
    for (;;) {
        uint64_t word = slot.load(std::memory_order_acquire);
        // The clock is read after the word, so `now` before the word's second means that the clock
        // stepped back, not that this process was slow.
        const int64_t now = clock();
        const Run run = NextRun(layout, word, now,
                                Window::FromWord(window.load(std::memory_order_acquire)), wanted);
        if (run.outcome != Outcome::kReserved)
            return run;
        if (slot.compare_exchange_strong(word, run.first + run.count - 1, std::memory_order_acq_rel,
                                         std::memory_order_relaxed))
            return run;
    }
}

// The word of a slot that has used nothing of a window yet: everything before the window counts as
// used. `window.start` >= 1.
constexpr bool WordBefore(const Layout& layout, Window window, uint64_t node_id,
                          uint64_t* word) noexcept {
    return window.start >= 1 &&
           layout.Pack({uint64_t{window.start} - 1, node_id, layout.max_sequence()}, word);
}

// Gives the slots the node ids first_node, first_node + 1, ... and a new window. `slot(i)` is the
// i-th slot's atomic word. False, with the window closed, if a node id or second does not fit, or
// if the new window starts before the last one allows. One caller at a time; the rectangle must be
// one the server was never given before.
template <typename AtomicWord, typename SlotAt>
bool ChangeWindow(const Layout& layout, SlotAt&& slot, uint32_t slots, uint64_t first_node,
                  AtomicWord& window, Window next) {
    const uint32_t earliest = Window::FromWord(window.load(std::memory_order_acquire)).end;
    window.store(Window{earliest, earliest}.ToWord(), std::memory_order_release);
    uint64_t word;
    if (next.start < earliest || !WordBefore(layout, next, first_node + slots - 1, &word))
        return false;
    for (uint32_t i = 0; i < slots; i++) {
        (void)WordBefore(layout, next, first_node + i, &word);
        slot(i).store(word, std::memory_order_release);
    }
    window.store(next.ToWord(), std::memory_order_release);
    return true;
}

// Closes the window and makes sure that nothing more is reserved in it: every number that was or
// ever will be reserved in it lies in seconds up to the result, which is negative when there is
// none. A compare-and-swap that was under way either came first, and counts, or finds another word.
// One caller at a time, as with ChangeWindow.
template <typename AtomicWord, typename SlotAt>
int64_t SealWindow(const Layout& layout, SlotAt&& slot, uint32_t slots, AtomicWord& window) {
    const Window old = Window::FromWord(window.load(std::memory_order_acquire));
    if (old.closed())
        return -1;
    window.store(Window{old.end, old.end}.ToWord(), std::memory_order_release);
    int64_t last = int64_t{old.start} - 1;
    for (uint32_t i = 0; i < slots; i++) {
        const uint64_t word = slot(i).exchange(kNoWindow, std::memory_order_acq_rel);
        const auto second = static_cast<int64_t>(layout.Unpack(word).timestamp);
        if (second > last)
            last = second;
    }
    const auto earliest = static_cast<uint32_t>(last + 2);
    window.store(Window{earliest, earliest}.ToWord(), std::memory_order_release);
    return last >= int64_t{old.start} ? last : -1;
}

}  // namespace randflake

#endif
