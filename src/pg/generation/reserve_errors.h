// Why a call got no number, or the next one will get none.

#ifndef RANDFLAKE_PG_GENERATION_RESERVE_ERRORS_H
#define RANDFLAKE_PG_GENERATION_RESERVE_ERRORS_H

#include "pg/base/pg.h"

#include "core/window/generator.h"

// The ERROR for a call that got no number within randflake.max_wait; `last` is its last attempt.
[[noreturn]] void raise_unavailable(const randflake::Layout& layout,
                                    const randflake::Reservation& last);

// What stops Randflake's identifiers, or soon will: the words of that ERROR in one line; palloc'd.
// Null when nothing does.
const char* generator_problem();

#endif
