// Times of identifiers as PostgreSQL's timestamps with time zone, and back.

#ifndef RANDFLAKE_PG_BASE_TIMESTAMP_H
#define RANDFLAKE_PG_BASE_TIMESTAMP_H

#include "pg/base/pg.h"

#include "core/identifier/layout.h"

// PostgreSQL's epoch, Unix milliseconds.
static constexpr int64 kPostgresEpochMs =
    int64{POSTGRES_EPOCH_JDATE - UNIX_EPOCH_JDATE} * SECS_PER_DAY * 1000;

// Unix milliseconds as PostgreSQL's timestamp with time zone.
static inline TimestampTz timestamp_of_milliseconds(int64 milliseconds) {
    return (milliseconds - kPostgresEpochMs) * 1000;
}

// A second since the Randflake epoch as PostgreSQL's timestamp with time zone.
static inline TimestampTz timestamp_of_second(int64 second) {
    return timestamp_of_milliseconds((randflake::kWindowEpochSeconds + second) * 1000);
}

// The same as people read it, in the session's time zone; palloc'd.
const char* second_text(int64 second);

// The second of an identifier that a time lies in; an ERROR with this SQLSTATE when there is none.
uint64 second_of_timestamp(TimestampTz time, int sqlstate);

#endif
