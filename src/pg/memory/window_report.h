// Why there is no window, for messages, and what the log says of the state on disk.

#ifndef RANDFLAKE_PG_MEMORY_WINDOW_REPORT_H
#define RANDFLAKE_PG_MEMORY_WINDOW_REPORT_H

#include "pg/base/pg.h"

#include "core/server/server.h"
#include "core/window/generator.h"
#include "pg/base/error_text.h"
#include "pg/window/file_identity.h"

// The last attempt to open or extend the window. In shared memory, protected by its own spinlock:
// who makes an attempt may hold the window lock for as long as the disk takes.
struct WindowReport {
    slock_t mutex;
    bool started;               // the state was read since the start; the next two count
    bool copy;                  // the directory is a copy, and nobody has acknowledged it
    TimestampTz copy_found_at;  // when the state turned out to be of another server; 0: it did not
    randflake::WindowTrouble trouble;
    int64 hold_off_ms;    // the longest that there may be
    FileFailure failure;  // with kFileFailed

    // Of static node ids: the range in use, and from which second on each may be used again.
    uint32 range;
    randflake::Second opens_at[randflake::kMaxRanges];
};

void window_init_report();

// Whether this data directory is a copy that nobody has acknowledged, and when that was found; 0:
// it is to be written down. Reads the disk until the state was read for the first identifier.
bool window_of_copy(TimestampTz* found_at);
void window_record_acknowledged();

// A copy of the report; its mutex means nothing.
WindowReport window_report();

// These secrets are not those under which identifiers of seconds before the written end may have
// been made.
ErrorText secrets_refused_error(randflake::Second written_end);

// The rest is for the holder of the window lock, which all but the last assert.

void window_record_trouble(const randflake::WindowTrouble& trouble);
void window_record_failure(const FileFailure& failure);
void window_record_start(const randflake::StartPlan& plan, const randflake::WindowState& found,
                         randflake::StateError error);
// The range in use is another one than `before` since the second `now`.
void window_log_range(const randflake::NodeRanges& ranges, uint32 before, uint32 in_use,
                      randflake::Second now);
void window_show_ranges(uint32 in_use, const randflake::Second (&opens_at)[randflake::kMaxRanges]);

// Also for the postmaster at its end, who takes no spinlocks.
void window_log_failure(const FileFailure& failure);

#endif
