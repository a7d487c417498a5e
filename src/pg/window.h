// The window of a server with a static node range: who opens it, who extends it, and from when. And
// the state on disk, where the windows of leases are announced, too.

#ifndef RANDFLAKE_PG_WINDOW_H
#define RANDFLAKE_PG_WINDOW_H

#include "pg/pg.h"

#include "core/generator.h"
#include "core/window_state.h"
#include "pg/window_file.h"

// Why the window was not opened or extended when it was last tried.
enum class WindowProblem : uint8_t {
    kNone,
    kWriting,      // a session is writing the new end
    kNotYet,       // it may not open before `opens_at`
    kClockJumped,  // the clock is `clock_jump` seconds ahead of where it should be
    kFileFailed,   // see `failure`
    kSecrets,      // the state on disk refuses this server's secrets: see `written_end`
};

// The last attempt, for messages. In shared memory, protected by its own spinlock: whoever makes an
// attempt may hold the window lock for as long as the disk takes.
struct WindowReport {
    slock_t mutex;
    TimestampTz copy_found_at;  // when the state turned out to be of another server; 0: it did not
    WindowProblem problem;
    int64 opens_at;
    int64 clock_jump;
    int64 written_end;
    FileFailure failure;
};

// In shared memory, protected by the window lock.
struct WindowControl {
    bool loaded;  // state on disk was read; the rest of this block counts
    randflake::StateError found;
    randflake::WindowState state;
    uint32 opens_at;    // of static node ids, see PlanStart
    int64 opens_at_ms;  // the same
    uint32 held_off;    // see Start
    uint64 run;         // random number of this run, see Stop

    int64 retry_at_ms;     // on the clock that never steps: no write is tried before
    int64 next_log_at_ms;  // nor a failure logged

    // When the server started, on the wall clock and on the one that cannot be set; and in which
    // boot of the machine.
    int64 started_at_ms;
    int64 started_at_uptime_ms;
    uint64 boot[2];
    bool began_in_recovery;  // so that it may have been promoted since
};

void window_init_shared();

// Opens the window, or moves its end, if the clock calls for it and no other backend is at it.
// True when the window changed, or another backend changed it meanwhile, so that a new attempt at
// a number makes sense at once. Not during recovery.
bool window_extend();

// Gives all slots the node ids from first_node_id on and a new window, which follows the last one
// in time. One caller at a time.
void change_window(int64 first_node_id, randflake::Window next);

// Writes the exact end; for the postmaster when it exits cleanly and no child is left.
void window_write_clean_end();

// For the lease worker. The first second at which a window of these node ids may open; false when
// the state on disk cannot be read.
bool window_lease_opens_at(const randflake::NodeRange& nodes, uint32* second);

// For the lease worker: makes it durable that these node ids may be used in this window, before it
// is opened or its end is moved.
bool window_announce_lease(const randflake::NodeRange& nodes, const randflake::Window& window);

// For the lease worker, when the window of a lease was sealed: takes back what was announced of it
// from `end` on, 0 when nothing was used.
void window_take_back_lease(uint32 end);

// Reads the state on disk if that was not done since the start; false, after a report, if that is
// not possible. The caller holds the window lock.
bool window_load_state();

// For the lease worker: a coordinator has told from which second on this server, which named that
// many secrets, lacks one; 0 if it lacks none.
void window_note_difference(uint32 differs_from, int named_secrets);

// Secrets were added, and the state, if it is loaded, has the former ones. The caller holds the
// window lock.
void window_take_secrets(const randflake::SecretRecords& secrets);

// A copy of the report; its mutex means nothing.
WindowReport window_report();

// Whether a run reserved in this window tells that the end is near enough to extend it now.
static inline bool window_near_end(const randflake::Layout& layout, const randflake::Run& run) {
    return !layout.Before(static_cast<uint64_t>(run.now), run.window.end - 1);
}

#endif
