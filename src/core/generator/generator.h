// The generator reserves raw numbers. It keeps no state: callers pass the slots and the window.
//
// A slot is one atomic word: the last raw number reserved under one node id. While the slot keeps
// its node id, the word only grows. So a number belongs to the process whose compare-and-swap moved
// the word past that number. The window is a half-open range of seconds [start, end) that this
// server owns for its node ids. The generator reserves only numbers in the window.
//
// A server has one set of slots for each family of identifiers. All sets have the same node ids and
// the same window, but each has its own layout. If a layout cannot hold the window's node ids or
// seconds, the layout's slots contain kEmptySlot, and the generator reserves nothing from them.
//
// Protocol between Reserve and ChangeWindow:
//
//   Reserve                            ChangeWindow (one caller at a time)
//     load word                          store window: closed
//     read clock                         store every word of every set (node id, just before start)
//     load window                        store window: [start, end)
//     compare-and-swap word
//
// Reserve loads the slot's word first. If ChangeWindow stores another word later, the
// compare-and-swap fails. If Reserve loads the new word, it loads the window later, and so gets a
// closed window or the new one. So wherever the two functions pause, every number is in the window
// that is in force when the number is reserved. To move an open window's end, the caller stores the
// window's word.
//
// The compare-and-swap is safe against ABA only if a slot never has the same word twice.
// ChangeWindow sets each slot to the last number of the tick before the window. If windows could go
// back in time, a slot could get this number again. Then a Reserve that paused meanwhile would
// wrongly succeed. So ChangeWindow refuses a window that begins before earliest() of the last
// window.
//
// SealWindow makes the next window start two or more seconds after the last second used. So the
// word that ChangeWindow stores next is later than every former word of the slot.
//
// Windows must follow each other in time only if they have the same node id, because a slot's word
// contains the node id. A server with several ranges of node ids stores, for each range, the
// earliest second at which the range's next window may begin. When the server returns to a range,
// the window may go back in time, but never to a second that an earlier window of that range
// contained. A Reserve call that paused before this change then fails, because the slot no longer
// contains the word that the call loaded. kEmptySlot may repeat, because the generator reserves
// nothing from it.

#pragma once

#include <atomic>
#include <cstdint>

#include "core/base/assert.h"
#include "core/identifier/layout.h"

namespace randflake {

struct Window {
    Second start;
    Second end;  // exclusive

    // Returns a closed window. The next window starts at `next` or later.
    static constexpr Window ClosedUntil(Second next) { return {next, next}; }
    constexpr bool closed() const { return start >= end; }
    // Returns the earliest start of the next window, whether this window is closed or not.
    constexpr Second earliest() const { return end; }

    // Each half of the word is an unsigned 32-bit number, in which any identifier's second fits.
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

// A slot has this word when shared memory is new, after SealWindow, and while its layout cannot
// hold the window. A slot with a window never has this word, because windows start at tick 1 or
// later and a sequence has at least one bit.
inline constexpr uint64_t kEmptySlot = 0;

enum class Outcome : uint8_t {
    kReserved,
    kExhausted,         // every sequence number of this tick is used
    kClockBehind,       // as kExhausted, and the clock is before the slot's tick
    kClockBeforeEpoch,  // the clock is before the layout's first tick
    kClockAfterEnd,     // the clock is after the layout's last tick
    kWindowClosed,      // there is no window
    kNoWord,            // the slot had no window when its word was loaded
    kBeforeWindow,      // the window starts later
    kWindowEnded,       // the window ended
    kNotInLayout,  // as kNoWord, because the layout cannot hold the window; see LayoutLacksWindow
};

struct Reservation {
    Outcome outcome;
    uint32_t count;     // numbers reserved; at least 1 with kReserved, else 0
    uint64_t first;     // raw numbers first .. first + count - 1; the last is the new word
    uint64_t previous;  // the slot's former word
    Tick now;           // the clock reading that decided
    Window window;      // the window that decided
};

// Which numbers of a slot's tick a reservation may take.
enum class Share : uint8_t {
    kAll,
    kLongRun,  // at most half of the numbers that are left before the tick's last quarter
};

// A long run takes at least this many numbers of a slot. If the slot has fewer, it counts as used
// up.
inline constexpr uint64_t kLeastOfLongRun = 64;

// Returns how many numbers of a tick a reservation may take if it begins at `sequence`. So however
// many statements reserve long runs, each slot keeps a quarter of every tick for short
// reservations, and a long run leaves a part of the rest to the next long run.
constexpr uint64_t RoomOf(const Layout& layout, uint64_t sequence, Share share) noexcept {
    const uint64_t left = layout.max_sequence() - sequence + 1;
    const uint64_t kept = (layout.max_sequence() + 1) / 4;
    if (share == Share::kAll) return left;
    const uint64_t room = left > kept ? (left - kept) / 2 : 0;
    return room >= kLeastOfLongRun ? room : 0;
}

// Computes the reservation that follows the slot's `word`: 1 to `wanted` numbers of one tick, or
// none. If the clock is behind the slot's tick, the reservation continues in the slot's tick. So no
// number repeats, and a small step back of the clock does no harm. The function is always inlined
// so that the compiler folds a constexpr layout away.
[[gnu::always_inline]] constexpr Reservation NextReservation(const Layout& layout, uint64_t word,
                                                             Tick now, Window window,
                                                             uint32_t wanted,
                                                             Share share = Share::kAll) noexcept {
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
        // ChangeWindow stored this word, and the window has not started.
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

    const uint64_t room = RoomOf(layout, next.sequence, share);
    if (share == Share::kLongRun && room == 0) {
        reservation.outcome = tick < next.timestamp ? Outcome::kClockBehind : Outcome::kExhausted;
        return reservation;
    }
    if (!layout.Pack(next, &reservation.first)) {
        reservation.outcome = Outcome::kClockAfterEnd;
        return reservation;
    }
    reservation.count = wanted < room ? wanted : static_cast<uint32_t>(room);
    RANDFLAKE_ASSERT(reservation.first > word);
    RANDFLAKE_ASSERT((reservation.first + reservation.count - 1) >> layout.sequence_bits ==
                     reservation.first >> layout.sequence_bits);
    return reservation;
}

// Returns whether the window's last second has begun. The server should then extend the window.
constexpr bool NearsEnd(const Layout& layout, const Reservation& reservation) noexcept {
    return !layout.Before(static_cast<uint64_t>(reservation.now.count), reservation.window.end - 1);
}

// Returns whether the clock is more than `skew` behind the reserved tick. If so, the server may use
// another range. Without a reservation, compares the clock with the slot's tick or with the window.
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

// Reserves up to `wanted` numbers in a slot. `clock()` returns the current tick of the layout.
// Needs no lock: any number of processes may run Reserve while one process runs ChangeWindow.
template <typename AtomicWord, typename Clock>
Reservation Reserve(const Layout& layout, AtomicWord& slot, const AtomicWord& window,
                    uint32_t wanted, Clock&& clock, Share share = Share::kAll) {
    for (;;) {
        uint64_t word = slot.load(std::memory_order_acquire);
        // The word is loaded before the clock is read. So if `now` is before the word's tick, the
        // clock stepped back, and this process was not merely slow.
        const Tick now = clock();
        const Reservation reservation = NextReservation(
            layout, word, now, Window::FromWord(window.load(std::memory_order_acquire)), wanted,
            share);
        if (reservation.outcome != Outcome::kReserved) return reservation;
        if (slot.compare_exchange_strong(word, reservation.first + reservation.count - 1,
                                         std::memory_order_acq_rel, std::memory_order_relaxed))
            return reservation;
    }
}

// Sets *word to a slot's first word in this window: the last number before the window. Returns
// false if the node id does not fit, or if the window starts before tick 1 or after the last tick.
constexpr bool WordBefore(const Layout& layout, Window window, uint64_t node_id,
                          uint64_t* word) noexcept {
    const uint64_t first = layout.FirstTick(window.start);
    return first >= 1 && layout.Pack({first - 1, node_id, layout.max_sequence()}, word);
}

// Returns true if Reserve failed because the layout cannot hold the window. Returns false if the
// window was changing. `last_node` is the last node id that the slots may get. Loads the window
// twice: before and after it loads the slot's word. If both loads return the same window, this
// window was also open when the word was loaded. The only exception: between the loads, the server
// closed this window, and opened a window of the same seconds for another range of node ids.
template <typename AtomicWord>
bool LayoutLacksWindow(const Layout& layout, uint64_t last_node, const AtomicWord& slot,
                       const AtomicWord& window) noexcept {
    const uint64_t seen = window.load(std::memory_order_acquire);
    uint64_t word;
    return !Window::FromWord(seen).closed() && slot.load(std::memory_order_acquire) == kEmptySlot &&
           window.load(std::memory_order_acquire) == seen &&
           !WordBefore(layout, Window::FromWord(seen), last_node, &word);
}

// `slot(i)` returns the atomic word of the layout's i-th slot, for i below layout.Slots().
template <typename SlotAt> struct SlotSet {
    const Layout& layout;
    SlotAt slot;
};
template <typename SlotAt> SlotSet(const Layout&, SlotAt&&) -> SlotSet<SlotAt>;

// Opens the window `next`. In every set, the slots get the node ids first_node, first_node + 1, ...
// If a set's layout cannot hold the window and all node ids, the set's slots become empty. If no
// layout can hold the window and all node ids, or if `next` starts before earliest(), closes the
// open window and returns false. Only one process may call this at a time. The node ids must be
// unused in all seconds of `next`.
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
    if (next.start < earliest || !(holds(sets.layout) || ...)) return false;

    const auto store = [&](const auto& set) {
        const bool held = holds(set.layout);
        for (uint32_t i = 0; i < set.layout.Slots(slots); i++) {
            uint64_t word = kEmptySlot;
            if (held) (void)WordBefore(set.layout, next, first_node + i, &word);
            set.slot(i).store(word, std::memory_order_release);
        }
    };
    (store(sets), ...);
    window.store(next.ToWord(), std::memory_order_release);
    return true;
}

// Returns the last second, in the window, in which the slot with this word reserved numbers.
// Without such a second, returns the second before the window.
constexpr Second LastSecondUsed(const Layout& layout, uint64_t word, Window window) noexcept {
    RANDFLAKE_ASSERT(!window.closed());
    const uint64_t tick = layout.Unpack(word).timestamp;
    if (word == kEmptySlot || layout.Before(tick, window.start)) return window.start - 1;
    RANDFLAKE_ASSERT(layout.Before(tick, window.end));
    return layout.SecondOf(tick);
}

inline constexpr Second kNotUsed{-1};

// Closes the window for all sets. Returns the last second in which a number was reserved in the
// window, or kNotUsed. A concurrent compare-and-swap of a slot counts if it comes before this
// function's exchange of the slot, and fails otherwise. Only one process at a time may call
// SealWindow or ChangeWindow, and all calls must pass the same `sets`.
template <typename AtomicWord, typename... SlotAt>
Second SealWindow(uint32_t slots, AtomicWord& window, const SlotSet<SlotAt>&... sets) {
    const Window old = Window::FromWord(window.load(std::memory_order_acquire));
    if (old.closed()) return kNotUsed;
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
