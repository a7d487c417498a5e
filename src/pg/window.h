// The window of a server with a static node range: who opens it, who extends it, and from when.

#ifndef RANDFLAKE_PG_WINDOW_H
#define RANDFLAKE_PG_WINDOW_H

#include "pg/pg.h"

#include "core/generator.h"

// Opens the window, or moves its end, if the clock calls for it and no other backend is at it.
// True when the window changed or another backend changed it meanwhile, so that a new attempt at a
// number makes sense at once.
bool window_extend();

// The first second the window may open at, since the epoch; for messages.
int64 window_opens_at();

// Whether a run reserved in this window tells that the end is near enough to extend it now.
static inline bool window_near_end(const randflake::Run& run) {
    return run.now + 1 >= run.window.end;
}

#endif
