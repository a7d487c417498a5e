// Converts between PostgreSQL's timestamptz and the times in identifiers.

#pragma once

#include "pg/base/pg.h"

#include "core/base/time.h"

static constexpr randflake::WallMs kPostgresEpoch{int64{POSTGRES_EPOCH_JDATE - UNIX_EPOCH_JDATE} *
                                                  SECS_PER_DAY * 1000};

// Returns the timestamp of an instant, or of the beginning of a second.
static inline TimestampTz timestamp_of(randflake::WallMs instant) {
    return (instant - kPostgresEpoch).count * 1000;
}
static inline TimestampTz timestamp_of(randflake::Second second) {
    return timestamp_of(StartOf(second));
}

// Returns the beginning of a second as text in the session's time zone; palloc'd.
const char* second_text(randflake::Second second);

// Returns the second of `time`. Raises an ERROR with `sqlstate` if `time` is out of range.
randflake::Second second_of_timestamp(TimestampTz time, int sqlstate);
