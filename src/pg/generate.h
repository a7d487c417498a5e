// Numbers for this backend: from a slot in shared memory to an identifier.

#ifndef RANDFLAKE_PG_GENERATE_H
#define RANDFLAKE_PG_GENERATE_H

#include "pg/pg.h"

#include "core/generator.h"

// Reserves 1 to `wanted` raw numbers, waiting up to randflake.max_wait; ERROR when there are none.
// Interruptible. The caller has called require_generator.
randflake::Run reserve_numbers(uint32 wanted);

// ERROR unless this server can generate: preloaded, with a node id and a secret.
void require_generator();

// ERROR unless the library was preloaded.
void require_preload();

// ERROR unless the secret is at hand: preloaded and configured.
void require_secret();

// The ERROR for a call that got no number within randflake.max_wait; `last` is its last attempt.
[[noreturn]] void report_unavailable(const randflake::Run& last);

#endif
