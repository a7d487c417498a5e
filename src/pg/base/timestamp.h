// Times of identifiers as PostgreSQL's timestamps with time zone, and back.

#ifndef RANDFLAKE_PG_BASE_TIMESTAMP_H
#define RANDFLAKE_PG_BASE_TIMESTAMP_H

#include "pg/base/pg.h"

#include "core/base/time.h"

// PostgreSQL's epoch.
static constexpr randflake::WallMs kPostgresEpoch{int64{POSTGRES_EPOCH_JDATE - UNIX_EPOCH_JDATE} *
                                                  SECS_PER_DAY * 1000};

// An instant as PostgreSQL's timestamp with time zone; a second as that at which it begins.
static inline TimestampTz timestamp_of(randflake::WallMs instant) {
    return (instant - kPostgresEpoch).count * 1000;
}
static inline TimestampTz timestamp_of(randflake::Second second) {
    return timestamp_of(StartOf(second));
}

// The same as people read it, in the session's time zone; palloc'd.
const char* second_text(randflake::Second second);

// The second of an identifier that a time lies in; an ERROR with this SQLSTATE when there is none.
randflake::Second second_of_timestamp(TimestampTz time, int sqlstate);

#endif
