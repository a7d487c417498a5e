/* C functions of the benchmark: the empty one that all others are measured against, and a clock. */

#include "postgres.h"

#include <time.h>

#include "fmgr.h"

PG_MODULE_MAGIC;

PGDLLEXPORT Datum bench_empty(PG_FUNCTION_ARGS);
PG_FUNCTION_INFO_V1(bench_empty);

Datum bench_empty(PG_FUNCTION_ARGS) { PG_RETURN_INT64(1); }

/* Seconds that this backend has spent on a processor, the kernel's work for it included. */
PGDLLEXPORT Datum bench_processor_clock(PG_FUNCTION_ARGS);
PG_FUNCTION_INFO_V1(bench_processor_clock);

Datum bench_processor_clock(PG_FUNCTION_ARGS) {
    struct timespec now;

    if (clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now) != 0)
        elog(ERROR, "could not read the processor clock: %m");
    PG_RETURN_FLOAT8(now.tv_sec + now.tv_nsec / 1e9);
}
