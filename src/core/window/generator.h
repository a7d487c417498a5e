// The generator computes the next reservation of raw numbers from a slot's word, the clock and the
// window. It has no state: callers pass the atomic words to Reserve.
//
// A slot is an atomic word: the last raw number reserved under a node id. As long as the slot keeps
// its node id, the word only grows. So exactly one compare-and-swap moves the word past a number,
// and this reserves the number. The window is the range of seconds [start, end) that this server
// owns for its node ids. The generator reserves only numbers with ticks in the window.
//
// A server has a set of slots for each family of identifiers. All sets have the same node ids and
// the same window. Each family has its own layout, and so its own numbers. A second consists of
// whole ticks (layout.h), so each tick is inside the window or outside in every layout. If the node
// ids or the time of a window do not fit in a layout, its slots contain kEmptySlot, and the
// generator reserves nothing from them.
//
// Reserve and ChangeWindow follow this protocol:
//
//   Reserve                            ChangeWindow (one caller at a time)
//     load word                          store window: closed
//     read clock                         store every word of every set (node id, just before start)
//     load window                        store window: [start, end)
//     compare-and-swap word
//
// Reserve loads the word before the window. If ChangeWindow stores another word after this load,
// the compare-and-swap fails. If Reserve loads the new word, it then loads the closed or the new
// window. So wherever Reserve and ChangeWindow pause, a number lies in the window that is in force
// at its reservation. To move the end of an open window, its only caller stores the window once.
//
// Reserve is safe against ABA only if the word of a slot never repeats. So windows never go back in
// time: ChangeWindow refuses a window that starts before earliest() of the last window, even if
// that window is closed. Otherwise the word with which a window begins (the last number of the tick
// before it) could equal a word of a former window. Then a Reserve that had paused since that
// window would succeed.
//
// After a seal, the next window starts two or more seconds after the last second used. So it begins
// with a word of a later second than all words of the sealed window, and than the word with which
// that window began.
//
// The rule holds for each node id separately, because a word contains its node id. So a server that
// uses several ranges of node ids in turn remembers earliest() for each range. When the server
// changes the range, it may go back in time, but not to a used second of the new range. Then a
// window may repeat under other node ids. A Reserve that paused during the change holds a word of
// the former node ids, so its compare-and-swap fails with any window.
//
// kEmptySlot may repeat: the generator reserves nothing from it.

#pragma once

#include <atomic>
#include <cstdint>

#include "core/base/assert.h"
#include "core/identifier/layout.h"

namespace randflake {

struct Window {
    Second start;
    Second end;  // exclusive

    // Returns a closed window. The next window starts at this second or later.
    static constexpr Window ClosedUntil(Second next) { return {next, next}; }
    constexpr bool closed() const { return start >= end; }
    // Returns the earliest start of the next window, whether this one is closed or not.
    constexpr Second earliest() const { return end; }

    // Returns start and end in two unsigned halves of 32 bits, which can hold every second of an
    // identifier.
    constexpr uint64_t ToWord() const {
        RANDFLAKE_ASSERT(start.count == static_cast<uint32_t>(start.count));
        RANDFLAKE_ASSERT(end.count == static_cast<uint32_t>(end.count));
        return static_cast<uint64_t>(start.count) << 32 | static_cast<uint32_t>(end.count);
    }
    static constexpr Window FromWord(uint64_t word) {
        return {{static_cast<int64_t>(word >> 32)}, {static_cast<uint32_t>(word)}};
    }
    friend constexpr bool operator==(const Window&, const Window&) = default;
};

// A slot without a window has this word: in new shared memory, after SealWindow, and if a layout
// cannot hold the window. No slot reaches or begins with this number, because windows start at tick
// 1 or later and a sequence has at least one bit.
inline constexpr uint64_t kEmptySlot = 0;

enum class Outcome : uint8_t {
    kReserved,
    kExhausted,         // every sequence number of this tick is used
    kClockBehind,       // the same, and the clock is before the slot's tick
    kClockBeforeEpoch,  // the clock is before the layout's first tick
    kClockAfterEnd,     // the clock is after the layout's last tick
    kWindowClosed,      // there is no window
    kNoWord,            // the slot had no window when its word was loaded
    kBeforeWindow,      // the window starts later
    kWindowEnded,       // the window ended
    kNotInLayout,  // never from NextReservation: kNoWord, and the layout cannot hold the window
};

struct Reservation {
    Outcome outcome;
    uint32_t count;     // numbers reserved; at least 1 with kReserved, else 0
    uint64_t first;     // raw numbers first .. first + count - 1; the last is the new word
    uint64_t previous;  // the slot's former word
    Tick now;           // the clock reading that decided
    Window window;      // the window that decided
};

// Computes the reservation after the slot's `word`: 1 to `wanted` numbers of one tick, or none.
//
// If the clock is behind the slot's tick, the slot continues in its own tick. So used numbers
// cannot repeat, and a small step back of the clock causes no wait.
//
// Always inline, so that the compiler optimizes each constexpr layout.
[[gnu::always_inline]] constexpr Reservation NextReservation(const Layout& layout, uint64_t word,
                                                             Tick now, Window window,
                                                             uint32_t wanted) noexcept {
    RANDFLAKE_ASSERT(wanted >= 1);
    Reservation reservation{Outcome::kReserved, 0, 0, word, now, window};
    if (now.count < 0) {
        reservation.outcome = Outcome::kClockBeforeEpoch;
        return reservation;
    }
    if (static_cast<uint64_t>(now.count) > layout.max_timestamp()) {
        reservation.outcome = Outcome::kClockAfterEnd;
        return reservation;
    }
    if (window.closed() || word == kEmptySlot) {
        reservation.outcome = window.closed() ? Outcome::kWindowClosed : Outcome::kNoWord;
        return reservation;
    }

    const auto tick = static_cast<uint64_t>(now.count);
    Fields next = layout.Unpack(word);
    if (tick > next.timestamp) {
        next.timestamp = tick;
        next.sequence = layout.FirstSequence(next.node_id);
    } else if (next.sequence < layout.max_sequence()) {
        next.sequence++;
    } else if (layout.Before(next.timestamp, window.start)) {
        // ChangeWindow stored this word. Numbers are left, but the window has not started yet.
        reservation.outcome = Outcome::kBeforeWindow;
        return reservation;
    } else {
        reservation.outcome = tick < next.timestamp ? Outcome::kClockBehind : Outcome::kExhausted;
        return reservation;
    }

    if (layout.Before(next.timestamp, window.start)) {
        reservation.outcome = Outcome::kBeforeWindow;
        return reservation;
    }
    if (!layout.Before(next.timestamp, window.end)) {
        reservation.outcome = Outcome::kWindowEnded;
        return reservation;
    }

    if (!layout.Pack(next, &reservation.first)) {
        reservation.outcome = Outcome::kClockAfterEnd;
        return reservation;
    }
    const uint64_t room = layout.max_sequence() - next.sequence + 1;
    reservation.count = wanted < room ? wanted : static_cast<uint32_t>(room);
    RANDFLAKE_ASSERT(reservation.first > word);
    RANDFLAKE_ASSERT((reservation.first + reservation.count - 1) >> layout.sequence_bits ==
                     reservation.first >> layout.sequence_bits);
    return reservation;
}

// Returns whether a reservation is so near the end of its window that the server should extend the
// window.
constexpr bool NearsEnd(const Layout& layout, const Reservation& reservation) noexcept {
    return !layout.Before(static_cast<uint64_t>(reservation.now.count), reservation.window.end - 1);
}

// Returns whether the clock is so far behind the slot or the window that the server may use another
// range of node ids.
constexpr bool ClockIsBehind(const Layout& layout, const Reservation& reservation,
                             Ms skew) noexcept {
    const uint64_t reached = reservation.count > 0 ? layout.Unpack(reservation.first).timestamp
                             : reservation.outcome == Outcome::kClockBehind
                                 ? layout.Unpack(reservation.previous).timestamp
                             : reservation.outcome == Outcome::kBeforeWindow
                                 ? layout.FirstTick(reservation.window.start)
                                 : 0;
    const Ticks behind = Tick{static_cast<int64_t>(reached)} - reservation.now;
    return behind > 0 && Ms{behind.count * layout.unit} > skew;
}

// Reserves up to `wanted` numbers in a slot. `clock()` returns the layout's tick. Lock-free. Any
// number of processes may call Reserve at the same time, and one may call ChangeWindow.
template <typename AtomicWord, typename Clock>
Reservation Reserve(const Layout& layout, AtomicWord& slot, const AtomicWord& window,
                    uint32_t wanted, Clock&& clock) {
    for (;;) {
        uint64_t word = slot.load(std::memory_order_acquire);
        // This reads the clock after the word. So if `now` is before the word's tick, the clock has
        // stepped back.
        const Tick now = clock();
        const Reservation reservation = NextReservation(
            layout, word, now, Window::FromWord(window.load(std::memory_order_acquire)), wanted);
        if (reservation.outcome != Outcome::kReserved)
            return reservation;
        if (slot.compare_exchange_strong(word, reservation.first + reservation.count - 1,
                                         std::memory_order_acq_rel, std::memory_order_relaxed))
            return reservation;
    }
}

// Sets *word to the word with which a slot begins a window: all earlier ticks count as used.
// Returns false if the layout cannot hold the node id, or if the window begins before tick 1 or
// after the last tick.
constexpr bool WordBefore(const Layout& layout, Window window, uint64_t node_id,
                          uint64_t* word) noexcept {
    const uint64_t first = layout.FirstTick(window.start);
    return first >= 1 && layout.Pack({first - 1, node_id, layout.max_sequence()}, word);
}

// Returns why Reserve found kNoWord: true if the layout cannot hold the window, false if the window
// was changing. The layout can hold the window if it can hold `last_node`, the last node id that
// the slots may get. Otherwise the window was open all the time if it is the same before and after.
// Only with several ranges of node ids might it have repeated in between.
template <typename AtomicWord>
bool LayoutLacksWindow(const Layout& layout, uint64_t last_node, const AtomicWord& slot,
                       const AtomicWord& window) noexcept {
    const uint64_t seen = window.load(std::memory_order_acquire);
    uint64_t word;
    return !Window::FromWord(seen).closed() && slot.load(std::memory_order_acquire) == kEmptySlot &&
           window.load(std::memory_order_acquire) == seen &&
           !WordBefore(layout, Window::FromWord(seen), last_node, &word);
}

// Describes the slots of one layout: `slot(i)` is the atomic word of slot i, for i below
// layout.Slots().
template <typename SlotAt>
struct SlotSet {
    const Layout& layout;
    SlotAt slot;
};
template <typename SlotAt>
SlotSet(const Layout&, SlotAt&&) -> SlotSet<SlotAt>;

// Gives the slots of every set the node ids first_node, first_node + 1, ... and a new window. A set
// gets no words if its layout cannot hold the window and all node ids. If no set can hold them, or
// if the new window starts before earliest(), closes the window and returns false. Only one process
// may call this at a time. The server must never have used this window with these node ids before.
template <typename AtomicWord, typename... SlotAt>
bool ChangeWindow(uint32_t slots, uint64_t first_node, AtomicWord& window, Window next,
                  const SlotSet<SlotAt>&... sets) {
    RANDFLAKE_ASSERT(!next.closed() && slots >= 1);
    const Second earliest = Window::FromWord(window.load(std::memory_order_acquire)).earliest();
    window.store(Window::ClosedUntil(earliest).ToWord(), std::memory_order_release);
    const auto holds = [&](const Layout& layout) {
        uint64_t word;
        return WordBefore(layout, next, first_node + slots - 1, &word);
    };
    if (next.start < earliest || !(holds(sets.layout) || ...))
        return false;

    const auto store = [&](const auto& set) {
        const bool held = holds(set.layout);
        for (uint32_t i = 0; i < set.layout.Slots(slots); i++) {
            uint64_t word = kEmptySlot;
            if (held)
                (void)WordBefore(set.layout, next, first_node + i, &word);
            set.slot(i).store(word, std::memory_order_release);
        }
    };
    (store(sets), ...);
    window.store(next.ToWord(), std::memory_order_release);
    return true;
}

// Returns the last second of a window in which a slot with this word has used numbers. If the slot
// has used none, returns the second before the window.
constexpr Second LastSecondUsed(const Layout& layout, uint64_t word, Window window) noexcept {
    RANDFLAKE_ASSERT(!window.closed());
    const uint64_t tick = layout.Unpack(word).timestamp;
    if (word == kEmptySlot || layout.Before(tick, window.start))
        return window.start - 1;
    RANDFLAKE_ASSERT(layout.Before(tick, window.end));
    return layout.SecondOf(tick);
}

inline constexpr Second kNotUsed{-1};

// Closes the window, so that no set reserves further numbers in it. Returns the last second in
// which a number of the window was reserved, or kNotUsed. A concurrent compare-and-swap either
// succeeds before and counts, or fails. Call this with the same sets as ChangeWindow; only one
// process may call either at a time.
template <typename AtomicWord, typename... SlotAt>
Second SealWindow(uint32_t slots, AtomicWord& window, const SlotSet<SlotAt>&... sets) {
    const Window old = Window::FromWord(window.load(std::memory_order_acquire));
    if (old.closed())
        return kNotUsed;
    window.store(Window::ClosedUntil(old.earliest()).ToWord(), std::memory_order_release);
    Second last = old.start - 1;
    const auto seal = [&](const auto& set) {
        for (uint32_t i = 0; i < set.layout.Slots(slots); i++) {
            const uint64_t word = set.slot(i).exchange(kEmptySlot, std::memory_order_acq_rel);
            if (const Second second = LastSecondUsed(set.layout, word, old); second > last)
                last = second;
        }
    };
    (seal(sets), ...);
    RANDFLAKE_ASSERT(last < old.end);
    window.store(Window::ClosedUntil(last + 2).ToWord(), std::memory_order_release);
    return last >= old.start ? last : kNotUsed;
}

}  // namespace randflake
