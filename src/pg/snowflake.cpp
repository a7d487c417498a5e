// snowflake_generate(): a number in the clear, by the layout of randflake.snowflake_layout.
//
// The order of identifiers matters here, so a session that wants one takes one: it reads the clock
// to the millisecond and reserves a single number. A statement that wants many reserves runs and
// hands them out. A run belongs to its statement and to one tick of the coarse clock; it doubles
// while runs are used up within a tick of the layout, and halves when they are not, so a number is
// hardly ever older than its call by more than two ticks of the layout, and never by more than one
// of either clock's beyond that.
//
// As with Randflake, the run is this process's own and shared with no other.

#include "pg/clock.h"
#include "pg/require.h"
#include "pg/reserve.h"
#include "pg/shmem.h"
#include "pg/snowflake_layout.h"
#include "pg/sql_function.h"

using randflake::Run;

// What pays for the reading of the clock and the compare-and-swap.
static constexpr uint32 kLongestRun = 64;

namespace {
struct Prefetched {
    TimestampTz statement;  // when the statement began that the run belongs to
    int64 seconds;          // the coarse clock when the run was reserved
    long nanoseconds;
    uint64 last;    // identifier handed out last
    uint32 left;    // that many follow
    uint32 wanted;  // of the next run
    int64 tick;     // of the layout, when the run was reserved
};
}  // namespace

static Prefetched prefetched;
static bool ready;

static pg_noinline uint64 next_run(TimestampTz statement, const struct timespec& clock) {
    if (unlikely(!ready)) {
        Assert(IsUnderPostmaster || !IsPostmasterEnvironment);
        require_snowflake();
        ready = true;
    }

    // Nothing is left if this fails.
    prefetched.left = 0;
    if (prefetched.statement != statement)
        prefetched.wanted = 1;
    const Run run = reserve_snowflake(prefetched.wanted);

    if (prefetched.statement == statement)
        prefetched.wanted = run.now == prefetched.tick ? Min(run.count * 2, kLongestRun)
                                                       : Max(prefetched.wanted / 2, 1);
    prefetched.statement = statement;
    prefetched.seconds = clock.tv_sec;
    prefetched.nanoseconds = clock.tv_nsec;
    prefetched.tick = run.now;
    prefetched.left = run.count - 1;
    prefetched.last = snowflake_layout.ToId(run.first);
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
    PG_RETURN_INT64(static_cast<int64>(next_run(statement, clock)));
}
