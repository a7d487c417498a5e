// Defines snowflake_generate(), which returns unencrypted numbers in the layout
// randflake.snowflake_layout. A backend reserves a statement's first number without a batch, so
// that the numbers of single-row statements are in the order of time. For further numbers, it
// reserves batches. The next batch is twice as long if the statement uses up a batch within a tick
// of the layout, and otherwise half as long. The backend drops a batch when its statement ends or
// the coarse clock ticks. So a number's time lags behind the clock by at most one tick of the
// layout plus one tick of the coarse clock.

#include "pg/base/clock.h"
#include "pg/base/sql_function.h"
#include "pg/generator/reserve.h"
#include "pg/identifier/copy.h"
#include "pg/identifier/snowflake_layout.h"
#include "pg/server/require.h"

using namespace randflake;

// In a batch of this length, clock reading and compare-and-swap cost little per number.
static constexpr uint32 kLargestBatch = 64;

namespace {
struct Prefetched {
    TimestampTz statement;  // when the batch's statement began
    int64 seconds;          // the coarse clock at the batch's reservation
    long nanoseconds;
    uint64 last;    // the identifier returned last
    uint32 left;    // how many identifiers of the batch are left
    uint32 wanted;  // length of the next batch
    Tick tick;      // the layout's tick at the batch's reservation
};
}  // namespace

static Prefetched prefetched;
static bool ready;

static pg_noinline uint64 next_batch(TimestampTz statement, const struct timespec& clock) {
    if (unlikely(!ready)) {
        Assert(IsUnderPostmaster || !IsPostmasterEnvironment);
        require_snowflake();
        ready = true;
    }

    // Empties the batch first, because the reservation may raise an error.
    prefetched.left = 0;
    if (prefetched.statement != statement) prefetched.wanted = 1;
    Assert(prefetched.wanted >= 1 && prefetched.wanted <= kLargestBatch);
    const Reservation reservation = reserve_snowflake(prefetched.wanted);

    if (prefetched.statement == statement)
        prefetched.wanted = reservation.now.count == prefetched.tick.count
                                ? Min(reservation.count * 2, kLargestBatch)
                                : Max(prefetched.wanted / 2, 1);
    prefetched.statement = statement;
    prefetched.seconds = clock.tv_sec;
    prefetched.nanoseconds = clock.tv_nsec;
    prefetched.tick = {reservation.now.count};
    prefetched.left = reservation.count - 1;
    prefetched.last = snowflake_layout.ToId(reservation.first);
    return prefetched.last;
}

SQL_FUNCTION(snowflake_generate) {
    const TimestampTz statement = GetCurrentStatementStartTimestamp();
    const struct timespec clock = wall_clock();
    if (likely(prefetched.left > 0 && prefetched.statement == statement &&
               prefetched.nanoseconds == clock.tv_nsec && prefetched.seconds == clock.tv_sec)) {
        prefetched.left--;
        prefetched.last += uint64{1} << snowflake_layout.sequence_shift;
        PG_RETURN_INT64(static_cast<int64>(prefetched.last));
    }
    PG_RETURN_INT64(static_cast<int64>(next_batch(statement, clock)));
}

SQL_FUNCTION_IN_COPY(snowflake_generate)
