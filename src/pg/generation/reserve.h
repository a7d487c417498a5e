// Reserves raw numbers for this backend in shared slots. reserve_errors.cpp explains failed calls.

#pragma once

#include "pg/base/pg.h"

#include "core/window/generator.h"

// A call tries this slot first. If it is used up in this second, the call tries the others.
enum class SlotChoice : uint8 {
    kOwn,     // the backend's own slot, so backends do not disturb each other
    kLowest,  // the same slot for all backends, so together they count upwards
};

// Reserves 1 to `wanted` raw numbers. Waits up to randflake.max_wait, interruptibly, and then
// raises an ERROR. The caller has called require_generator.
randflake::Reservation reserve_numbers(SlotChoice choice, uint32 wanted);

// Reserves Snowflake numbers, from the lowest slot with room. Call require_snowflake before.
randflake::Reservation reserve_snowflake(uint32 wanted);

// Reserves 53-bit numbers, from the backend's own slot. The caller has called require_generator53.
randflake::Reservation reserve_53(uint32 wanted);

// Raises the ERROR for a call whose `last` attempt got no number within randflake.max_wait.
[[noreturn]] void raise_unavailable(const randflake::Layout& layout,
                                    const randflake::Reservation& last);

// Logs, at most once in a minute of the clock, that every number of this second is used. Ignores
// other outcomes, and layouts whose ticks are shorter than a second.
void log_exhausted(const randflake::Layout& layout, const randflake::Reservation& last);

// Returns the text of the ERROR, in one line, that stops Randflake's identifiers now or soon;
// palloc'd. Null without a problem.
const char* generator_problem();
