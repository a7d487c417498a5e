// Reports why there is no window, and logs problems with the state on disk.

#pragma once

#include "pg/base/pg.h"

#include "core/generation/generator.h"
#include "core/server/server.h"
#include "pg/base/error_text.h"
#include "pg/window/file_identity.h"

// Describes the last attempt to open or extend the window. The report is in shared memory. It has
// its own spinlock, because a process that holds the window lock may wait for the disk.
struct WindowReport {
    slock_t mutex;
    bool started;                // the server has read the state; the next three fields are valid
    bool copy;                   // the directory is a copy that the operator has not acknowledged
    TimestampTz copy_found_at;   // when the state proved to be another server's; 0: never
    randflake::Origin original;  // of the state that this start found in a copy; zero: unknown
    randflake::WindowTrouble trouble;
    int64 hold_off_ms;    // the longest possible hold-off
    FileFailure failure;  // valid with kFileFailed

    // `range` is the range of static node ids in use. Range i may open at opens_at[i] or later.
    uint32 range;
    randflake::Second opens_at[randflake::kMaxRanges];
};

void window_init_report();

// Returns whether this data directory is a copy that the operator has not acknowledged, and whose
// original can use node ids of this server. *found_at is the time when the server found the copy,
// or 0 if unknown. *original, if not null, becomes the writer of the copied state; its system
// identifier is 0 if a former start found the copy. May read the state from disk.
bool window_of_copy(TimestampTz* found_at, randflake::Origin* original = nullptr);
void window_record_acknowledged();

// Returns a copy of the report. Do not use the copy's mutex.
WindowReport window_report();

// Returns the error for secrets that would change the meaning of issued identifiers.
ErrorText secrets_refused_error(randflake::Second written_end);

// Only a holder of the window lock calls these functions.

void window_record_trouble(const randflake::WindowTrouble& trouble);
void window_record_failure(const FileFailure& failure);
void window_record_start(const randflake::StartPlan& plan, const randflake::WindowState& found,
                         randflake::StateError error);
// Logs that the server changed from the range `before` to `in_use` at the second `now`.
void window_log_range(const randflake::NodeRanges& ranges, uint32 before, uint32 in_use,
                      randflake::Second now);
void window_show_ranges(uint32 in_use, const randflake::Second (&opens_at)[randflake::kMaxRanges]);

// The exiting postmaster may call this without the lock.
void window_log_failure(const FileFailure& failure);
