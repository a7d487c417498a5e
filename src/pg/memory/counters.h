// What the server counts about its identifiers. Nothing is counted per identifier: a slot's word
// tells how many numbers of its second are reserved, and only a change of the second adds them up.

#ifndef RANDFLAKE_PG_MEMORY_COUNTERS_H
#define RANDFLAKE_PG_MEMORY_COUNTERS_H

#include "pg/base/pg.h"

#include <atomic>

#include "core/window/generator.h"

struct Slot;

struct Counters {
    std::atomic<uint64> waits;              // calls that had to wait
    std::atomic<uint64> wait_microseconds;  // by all of them together
    std::atomic<uint64> slots_exhausted;    // seconds, or ticks, of a node id that were used up
    std::atomic<uint64> clock_steps_back;
    std::atomic<uint64> window_extensions;    // writes to disk, or renewals of the lease
    std::atomic<int64> reset_at;              // TimestampTz
    std::atomic<int64> exhaustion_logged_at;  // a second of the clock; 0: not yet

    // The clock as last seen by Randflake and for 53 bits, and by Snowflake. Written once a second
    // or tick and read by every reservation, so each has a cache line of its own.
    alignas(64) std::atomic<int64> latest_second;
    alignas(64) std::atomic<int64> latest_tick;
};

// To be called after numbers were reserved in a slot of Randflake, of Snowflake or of 53-bit
// numbers.
void count_reservation(Slot& slot, const randflake::Reservation& reservation);
void count_snowflake_reservation(Slot& slot, const randflake::Reservation& reservation);
void count_53_reservation(Slot& slot, const randflake::Reservation& reservation);

// To be called after the window was closed and before the slots get the words of another one.
void count_window_closed(randflake::Window old);

void count_wait(int64 microseconds);

// Numbers reserved in a slot of Randflake, and in all slots of all families, since the counters
// were reset.
uint64 count_of_slot(const Slot& slot);
uint64 count_of_all_slots();

void counters_reset();

#endif
