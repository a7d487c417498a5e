// The generator computes the next reservation of raw numbers from a slot's word, the clock and the
// window. The generator is pure: the only atomics are those that callers pass to Reserve.
//
// A slot is one word: the last raw number reserved under one node id. While its node id stays, the
// word only grows. So the one compare-and-swap that moves the word past a number reserves this
// number. The window is a half-open range of seconds [start, end) that this server owns for its
// node ids. The generator reserves only numbers whose ticks lie in it.
//
// A server has a set of slots for each family of identifiers. All sets have the same node ids and
// one window. Families are different spaces of numbers, each with its own layout. Ticks tile
// seconds (layout.h), so all layouts agree on which ticks a window holds. A layout may be unable to
// hold a window because of its node ids or its time. The slots of such a layout have no words
// (kEmptySlot), and the generator reserves nothing.
//
// Protocol between Reserve and ChangeWindow:
//
//   Reserve                            ChangeWindow (one caller at a time)
//     load word                          store window: closed
//     read clock                         store every word of every set (node id, just before start)
//     load window                        store window: [start, end)
//     compare-and-swap word
//
// Reserve loads the word first. A change after this load stores another word, and the
// compare-and-swap fails. If the word is already the new one, the window loaded after it is closed
// or new. So a number lies in the window in force at its reservation, wherever Reserve and
// ChangeWindow pause. Moving an open window's end takes one store by the one caller.
//
// Reserve is safe against ABA only if no slot's word repeats. Windows therefore never go back in
// time: ChangeWindow refuses a window that starts before earliest() of the last window, which a
// closed window keeps. Otherwise the word before a window, the last number of the tick before it,
// could equal a word of a former window, and a Reserve paused since then would succeed.
//
// After a seal, the next window starts at the last second used + 2 or later. So the word before it
// is in a later second than every word of the sealed window and the word before that window.
//
// The rule holds for each node id separately, because a word has its node id. So a server that uses
// several ranges of node ids in turn keeps the earliest second of each range. When the server
// returns to a range, it may go back in time, but never to a former second of that range. The
// window's word may then repeat with other node ids. A Reserve that paused meanwhile has a former
// word, and fails whatever window it loads.
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

    // Returns the window as two unsigned halves of 32 bits, which hold every second of an
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

// The word of a slot without a window: in new shared memory, after SealWindow, and where
// ChangeWindow finds that a layout cannot hold the window. No window has or follows this number,
// because windows start at tick 1 or later and a sequence has at least one bit.
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

// Makes one step from the slot's `word`. Reserves 1 to `wanted` numbers, all of one tick, or none.
//
// If the clock is behind the slot's tick, the slot continues in its tick: used numbers cannot
// recur, and a small step of the clock back costs nothing.
//
// Always inline, so that a constexpr layout folds away beside others.
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
        // ChangeWindow stored this word: numbers are left, but the window has yet to start.
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

// Returns whether a reservation is so near its window's end that the server should extend it.
constexpr bool NearsEnd(const Layout& layout, const Reservation& reservation) noexcept {
    return !layout.Before(static_cast<uint64_t>(reservation.now.count), reservation.window.end - 1);
}

// Returns whether the clock is so far behind a reservation, or behind what prevented it, that the
// server may use another range of node ids.
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

// Reserves up to `wanted` numbers in a slot. `clock()` returns the layout's tick. Lock-free; safe
// against any number of concurrent Reserve and one ChangeWindow.
template <typename AtomicWord, typename Clock>
Reservation Reserve(const Layout& layout, AtomicWord& slot, const AtomicWord& window,
                    uint32_t wanted, Clock&& clock) {
    for (;;) {
        uint64_t word = slot.load(std::memory_order_acquire);
        // The clock is read after the word. So if `now` is before the word's tick, the clock
        // stepped back; the process was not slow.
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

// Sets *word to the word of a slot that has used nothing of a window: all earlier ticks count as
// used. False if the window begins before the layout's tick 1 or after its last, or the node id
// does not fit.
constexpr bool WordBefore(const Layout& layout, Window window, uint64_t node_id,
                          uint64_t* word) noexcept {
    const uint64_t first = layout.FirstTick(window.start);
    return first >= 1 && layout.Pack({first - 1, node_id, layout.max_sequence()}, word);
}

// Returns the reason of a kNoWord from Reserve: true if the layout cannot hold the window, false if
// the window was changing. A layout that holds every node id up to `last_node`, the last one that
// the slots may get, holds the window. For other layouts, a window that is the same before and
// after was open all the time, unless windows repeat. Windows never repeat under leases or with one
// range of node ids.
template <typename AtomicWord>
bool LayoutLacksWindow(const Layout& layout, uint64_t last_node, const AtomicWord& slot,
                       const AtomicWord& window) noexcept {
    const uint64_t seen = window.load(std::memory_order_acquire);
    uint64_t word;
    return !Window::FromWord(seen).closed() && slot.load(std::memory_order_acquire) == kEmptySlot &&
           window.load(std::memory_order_acquire) == seen &&
           !WordBefore(layout, Window::FromWord(seen), last_node, &word);
}

// The slots of one layout: `slot(i)` is the i-th slot's atomic word, for i below layout.Slots().
template <typename SlotAt>
struct SlotSet {
    const Layout& layout;
    SlotAt slot;
};
template <typename SlotAt>
SlotSet(const Layout&, SlotAt&&) -> SlotSet<SlotAt>;

// Gives the slots of every set the node ids first_node, first_node + 1, ... and a new window. A set
// gets none if its layout cannot hold the window and all the node ids. Closes the window and
// returns false if no set can hold it, or if the new window starts before earliest(). One caller at
// a time. The server must never have had the pair of node ids and window before.
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

// Closes the window and prevents further reservations in it by any set. Every number reserved in
// it, now or later, lies in seconds up to the result, or kNotUsed if there is none. A concurrent
// compare-and-swap either came first, and counts, or fails. One caller at a time, as with
// ChangeWindow, and with the same sets.
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
