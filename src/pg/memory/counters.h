// Counts the server's identifiers. The sequence number in a slot's word counts the numbers reserved
// in its tick. A call that moves the word to another tick adds this count to Slot::finished.

#pragma once

#include "pg/base/pg.h"

#include <atomic>

#include "core/generation/generator.h"

struct Slot;

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
