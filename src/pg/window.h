// The window of a server with a static node range: who opens it, who extends it, and from when.

#ifndef RANDFLAKE_PG_WINDOW_H
#define RANDFLAKE_PG_WINDOW_H

#include "pg/pg.h"

#include "core/generator.h"
#include "core/window_state.h"
#include "pg/window_file.h"

// From the clock's second to the written end: two seconds more than the current tick of any layout
// may take. It bounds what a crash costs; extended when that tick comes within a second of the end,
// it makes one write in two seconds.
int64 window_seconds();

// Why the window was not opened or extended when it was last tried.
enum class WindowProblem : uint8_t {
    kNone,
    kNotYet,       // it may not open before `opens_at`
    kClockJumped,  // the clock is `clock_jump` seconds ahead of where it should be
    kFileFailed,   // see `failure`
};

// In shared memory, protected by the window lock.
struct WindowControl {
    bool loaded;  // state on disk was read; the rest of the first block counts
    int64 opens_at;
    randflake::WindowState state;

    WindowProblem problem;
    int64 clock_jump;
    FileFailure failure;
    int64 retry_at;     // steady_milliseconds before which no write is tried after a failure
    int64 next_log_at;  // steady_milliseconds before which no further failure is logged

    int64 started_at;         // wall clock when the server started, seconds since the epoch
    int64 started_at_uptime;  // the same instant on the clock that never steps, seconds
};

void window_init(WindowControl* control);

// Opens the window, or moves its end, if the clock calls for it and no other backend is at it.
// True when the window changed, or another backend changed it meanwhile, so that a new attempt at
// a number makes sense at once. Not during recovery.
bool window_extend();

// Gives all slots the node ids from first_node_id on and a new window, which follows the last one
// in time. One caller at a time.
void change_window(int64 first_node_id, randflake::Window next);

// Writes the exact end; for the postmaster when it exits cleanly and no child is left.
void window_write_clean_end();

// A consistent copy, for messages. False while another session writes: it holds the lock until the
// disk is done, and waiting for the lock could not be cancelled.
bool window_control(WindowControl* copy);

// Whether a run reserved in this window tells that the end is near enough to extend it now.
static inline bool window_near_end(const randflake::Layout& layout, const randflake::Run& run) {
    return layout.EndsAfter(static_cast<uint64_t>(run.now), run.window.end - 1);
}

#endif
