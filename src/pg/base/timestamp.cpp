// Converts between PostgreSQL's timestamptz and the seconds in identifiers.

#include "pg/base/timestamp.h"

#include "core/identifier/layout.h"

using namespace randflake;

const char* second_text(Second second) { return pstrdup(timestamptz_to_str(timestamp_of(second))); }

Second second_of_timestamp(TimestampTz time, int sqlstate) {
    const TimestampTz first = timestamp_of(Second{0});
    const TimestampTz last = timestamp_of(kNoSecond - 1);
    if (time < first || time >= last + USECS_PER_SEC) {
        const char* lower = pstrdup(timestamptz_to_str(first));
        ereport(ERROR, (errcode(sqlstate), errmsg("timestamp out of range"),
                        errdetail("It must be from %s to %s.", lower, timestamptz_to_str(last))));
    }
    return {(time - first) / USECS_PER_SEC};
}
