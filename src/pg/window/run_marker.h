// Which write of this data directory's state was the last since the machine booted, kept in the
// machine's memory. A disk that is rolled back does not roll it back; see WriteRecord in
// core/window/window_state.h.

#ifndef RANDFLAKE_PG_WINDOW_RUN_MARKER_H
#define RANDFLAKE_PG_WINDOW_RUN_MARKER_H

#include "pg/base/pg.h"

#include "core/window/window_state.h"
#include "pg/window/file_identity.h"

// An open object of shared memory that is a regular file of this user, under one name alone.
bool is_own_file(int fd);

// The machine's boot, zero when it is not known.
void read_boot_id(uint64 boot[2]);

// The mark, 0 when none is known.
uint64 run_marker_read(const randflake::Origin& origin);

// Makes it this mark, or none: then *mark becomes 0. A failure means that it may still be a former
// one.
FileFailure run_marker_write(const randflake::Origin& origin, uint64* mark);

#endif
