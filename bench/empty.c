/* The empty C function that every other function is measured against. */

#include "postgres.h"
#include "fmgr.h"

PG_MODULE_MAGIC;

PGDLLEXPORT Datum bench_empty(PG_FUNCTION_ARGS);
PG_FUNCTION_INFO_V1(bench_empty);

Datum
bench_empty(PG_FUNCTION_ARGS)
{
    PG_RETURN_INT64(1);
}
