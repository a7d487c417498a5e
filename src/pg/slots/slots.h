// Holds the slots of node ids, the window that they share, and the server's counters. The sequence
// number in a slot's word counts the numbers reserved in its tick. A call that moves the word to
// another tick adds this count to Slot::finished.
//
// All fields are atomic, except slot_count, which never changes. core/generator/generator.h has
// the protocol of words and window. A slot's word outlives the backends that use the slot.

#pragma once

#include "pg/base/pg.h"

#include <atomic>

#include "core/generator/generator.h"
#include "pg/identifier/snowflake_layout.h"

using AtomicWord = std::atomic<uint64_t>;
static_assert(AtomicWord::is_always_lock_free);

// Each slot has its own cache line, so that backends in different slots do not slow each other
// down. 64 bytes is the line size of x86-64 and most ARM processors.
struct alignas(64) Slot {
    AtomicWord word;
    AtomicWord finished;  // how many numbers were reserved before the word's second
};

struct Counters {
    std::atomic<uint64> waits;              // calls that waited
    std::atomic<uint64> wait_microseconds;  // the sum of these waits
    std::atomic<uint64> slots_exhausted;    // how often a node id's second or tick was used up
    std::atomic<uint64> clock_steps_back;
    std::atomic<uint64> window_extensions;    // writes to disk, or renewals of the lease
    std::atomic<int64> reset_at;              // TimestampTz
    std::atomic<int64> exhaustion_logged_at;  // a second of the clock; 0: never

    // `latest_second` is the last clock time for Randflake and 53-bit numbers, `latest_tick` for
    // Snowflake numbers. A reservation reads only one of them, so each has its own cache line.
    alignas(64) std::atomic<int64> latest_second;
    alignas(64) std::atomic<int64> latest_tick;
};

struct SharedSlots {
    uint32 slot_count;
    Counters counters;

    alignas(64) AtomicWord window;
    // Randflake and Snowflake have slot_count slots each, and 53-bit numbers have up to 256.
    Slot slots[FLEXIBLE_ARRAY_MEMBER];
};

// This pointer is null in a server that has not preloaded the library.
[[gnu::visibility("hidden")]] extern SharedSlots* shared_slots;

static inline Slot& randflake_slot(uint32 i) {
    Assert(i < shared_slots->slot_count);
    return shared_slots->slots[i];
}
static inline Slot& snowflake_slot(uint32 i) {
    Assert(i < shared_slots->slot_count);
    return shared_slots->slots[shared_slots->slot_count + i];
}
static inline Slot& randflake53_slot(uint32 i) {
    Assert(i < randflake::kRandflake53.Slots(shared_slots->slot_count));
    return shared_slots->slots[2 * shared_slots->slot_count + i];
}

// Calls `use` with the slots of all families, which share the window.
template <typename Use> static inline auto with_slot_sets(Use&& use) {
    return use(randflake::SlotSet{randflake::kRandflake,
                                  [](uint32_t i) -> AtomicWord& { return randflake_slot(i).word; }},
               randflake::SlotSet{snowflake_layout,
                                  [](uint32_t i) -> AtomicWord& { return snowflake_slot(i).word; }},
               randflake::SlotSet{randflake::kRandflake53, [](uint32_t i) -> AtomicWord& {
                                      return randflake53_slot(i).word;
                                  }});
}

// Each family of numbers has one of these functions. Call it after reserving numbers in a slot.
void count_reservation(Slot& slot, const randflake::Reservation& reservation);
void count_snowflake_reservation(Slot& slot, const randflake::Reservation& reservation);
void count_53_reservation(Slot& slot, const randflake::Reservation& reservation);

// Call this after a window closes and before the slots get words of the next window.
void count_window_closed(randflake::Window old);

void count_wait(int64 microseconds);

// Return how many numbers were reserved in a slot, or in all slots, since the last reset.
uint64 count_of_slot(const Slot& slot);
uint64 count_of_all_slots();

void counters_reset();
