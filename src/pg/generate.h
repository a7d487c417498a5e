// Numbers for this backend: from a slot in shared memory to an identifier.

#ifndef RANDFLAKE_PG_GENERATE_H
#define RANDFLAKE_PG_GENERATE_H

#include "pg/pg.h"

#include "core/generator.h"

// The slot that a call tries first; the others follow when it is used up in this second.
enum class SlotChoice : uint8 {
    kOwn,     // the backend's own: backends do not disturb each other
    kLowest,  // the same for all backends: together they count upwards
};

// Reserves 1 to `wanted` raw numbers, waiting up to randflake.max_wait; ERROR when there are none.
// Interruptible. The caller has called require_generator.
randflake::Run reserve_numbers(SlotChoice choice, uint32 wanted);

// The same for Snowflake numbers, from the lowest slot with room, by the clock's tick. The caller
// has called require_snowflake.
randflake::Run reserve_snowflake(uint32 wanted);

// ERROR unless this server can generate: preloaded, with a node id and a secret.
void require_generator();

// ERROR unless this server can generate Snowflake numbers, which need no secret: preloaded, with
// node ids that fit in the layout.
void require_snowflake();

// Whether the window is open, but not for Snowflake numbers: their layout cannot hold it.
bool snowflake_without_window();

// ERROR unless the library was preloaded.
void require_preload();

// ERROR unless the secret is at hand: preloaded and configured.
void require_secret();

// The ERROR for a call that got no number within randflake.max_wait; `last` is its last attempt.
[[noreturn]] void report_unavailable(const randflake::Layout& layout, const randflake::Run& last);

#endif
