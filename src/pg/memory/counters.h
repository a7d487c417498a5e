// Counts the server's identifiers. No counter counts single identifiers: a slot's word contains the
// number of reservations in its second, and a change of the second adds this number.

#pragma once

#include "pg/base/pg.h"

#include <atomic>

#include "core/window/generator.h"

struct Slot;

struct Counters {
    std::atomic<uint64> waits;              // calls that waited
    std::atomic<uint64> wait_microseconds;  // the sum of these waits
    std::atomic<uint64> slots_exhausted;    // used-up seconds, or ticks, of a node id
    std::atomic<uint64> clock_steps_back;
    std::atomic<uint64> window_extensions;    // writes to disk, or renewals of the lease
    std::atomic<int64> reset_at;              // TimestampTz
    std::atomic<int64> exhaustion_logged_at;  // a second of the clock; 0: never

    // The latest clock that Randflake and 53-bit numbers saw, and the latest that Snowflake saw.
    // Processes write these once a second or tick and read them at every reservation: each has its
    // cache line.
    alignas(64) std::atomic<int64> latest_second;
    alignas(64) std::atomic<int64> latest_tick;
};

// Call one of these after reserving numbers in a slot of that family.
void count_reservation(Slot& slot, const randflake::Reservation& reservation);
void count_snowflake_reservation(Slot& slot, const randflake::Reservation& reservation);
void count_53_reservation(Slot& slot, const randflake::Reservation& reservation);

// Call after closing a window, before the slots get the words of the next one.
void count_window_closed(randflake::Window old);

void count_wait(int64 microseconds);

// Returns the numbers reserved since the last reset in a slot of Randflake, or in all slots.
uint64 count_of_slot(const Slot& slot);
uint64 count_of_all_slots();

void counters_reset();
