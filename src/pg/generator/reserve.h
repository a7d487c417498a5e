// Reserves raw numbers for this backend in slots of shared memory.

#pragma once

#include "pg/base/pg.h"

#include "core/generator/generator.h"

// A call tries this slot first. If the slot is used up in this second, the call tries others.
enum class SlotChoice : uint8 {
    kOwn,     // chosen by the backend's number, so that backends do not contend for slots
    kLowest,  // the same slot for all backends, so that their numbers form one rising sequence
};

// Reserves 1 to `wanted` raw numbers. If no number is free within randflake.max_wait, raises an
// ERROR. Interrupts end the wait. Call require_generator first.
randflake::Reservation reserve_numbers(SlotChoice choice, uint32 wanted);

// Reserves Snowflake numbers, as reserve_numbers does with kLowest. Call require_snowflake first.
randflake::Reservation reserve_snowflake(uint32 wanted);

// Like reserve_numbers with kOwn, but reserves 53-bit numbers. Call require_generator53 first.
randflake::Reservation reserve_53(uint32 wanted);

// Reserves up to `wanted` numbers for a long run (see Share::kLongRun). *visited counts the slots
// that this run has tried, and a run takes numbers of each slot once. Does not wait: if there is no
// number, returns the reason.
randflake::Reservation reserve_long_run(uint32* visited, uint32 wanted);
randflake::Reservation reserve_long_run_53(uint32* visited, uint32 wanted);

// Waits until the clock's second is not `second`, at most randflake.max_wait. Interrupts end it.
void wait_for_second_after(randflake::Second second);

// Raises the ERROR for a call that got no number in time. `last` is the call's last attempt.
[[noreturn]] void raise_unavailable(const randflake::Layout& layout,
                                    const randflake::Reservation& last);

// If `last` is kExhausted, logs at most once a minute that every number of this second is used.
// Does nothing for layouts whose ticks are shorter than a second.
void log_exhausted(const randflake::Layout& layout, const randflake::Reservation& last);

// Returns the problem that randflake_status shows, as one line; palloc'd. Null if there is none.
const char* generator_problem();
