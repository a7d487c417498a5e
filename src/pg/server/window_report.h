// Reports why there is no window, and logs problems with the state on disk.

#pragma once

#include "pg/base/pg.h"

#include "pg/base/error_text.h"
#include "pg/server/environment.h"

// Describes the last attempt to open or extend the window. The report is in shared memory. It has
// its own spinlock, because a process that holds the window lock may wait for the disk.
struct WindowReport {
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

// Returns whether this data directory is a copy that the operator has not acknowledged, and whose
// original can use node ids of this server. *found_at is the time when the server found the copy,
// or 0 if unknown. *original, if not null, becomes the writer of the copied state; its system
// identifier is 0 if a former start found the copy. May read the state from disk.
bool window_of_copy(TimestampTz* found_at, randflake::Origin* original = nullptr);

// Writes down that the operator, or a proof, has acknowledged the copy. Returns false if this
// failed.
bool window_acknowledge_copy();

WindowReport window_report();

// Returns the error for secrets that would change the meaning of issued identifiers.
ErrorText secrets_refused_error(randflake::Second written_end);

// Only a holder of the window lock calls this function.
void window_record_failure(const FileFailure& failure);

// The exiting postmaster may call this without the lock.
void window_log_failure(const FileFailure& failure);
