#include "pg/base/timestamp.h"

using randflake::kRandflake;

const char* second_text(int64 second) {
    return pstrdup(timestamptz_to_str(timestamp_of_second(second)));
}

uint64 second_of_timestamp(TimestampTz time, int sqlstate) {
    const TimestampTz first = timestamp_of_second(0);
    const TimestampTz last = timestamp_of_second(static_cast<int64>(kRandflake.max_timestamp()));
    if (time < first || time >= last + USECS_PER_SEC) {
        const char* lower = pstrdup(timestamptz_to_str(first));
        ereport(ERROR, (errcode(sqlstate), errmsg("timestamp out of range"),
                        errdetail("It must be from %s to %s.", lower, timestamptz_to_str(last))));
    }
    return static_cast<uint64>((time - first) / USECS_PER_SEC);
}
