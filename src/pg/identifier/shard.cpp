// Defines the SQL functions about shards. They need no secret and no shared memory.

#include "core/identifier/shard.h"

#include "pg/base/sql_function.h"

static int32 require_shards(int32 shards) {
    if (shards < 1)
        ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
                        errmsg("number of shards must be at least 1, not %d", shards)));
    return shards;
}

SQL_FUNCTION(randflake_shard) {
    PG_RETURN_INT32(randflake::ShardOf(PG_GETARG_INT64(0), require_shards(PG_GETARG_INT32(1))));
}

// Returns SETOF (shard integer, lower bigint, upper bigint), one row per call.
SQL_FUNCTION(randflake_shard_ranges) {
    constexpr int kColumns = 3;
    if (SRF_IS_FIRSTCALL()) {
        FuncCallContext* context = SRF_FIRSTCALL_INIT();
        context->tuple_desc = result_row(fcinfo, kColumns, context->multi_call_memory_ctx);
        context->max_calls = require_shards(PG_GETARG_INT32(0));
    }

    FuncCallContext* context = SRF_PERCALL_SETUP();
    if (context->call_cntr >= context->max_calls) SRF_RETURN_DONE(context);

    const auto shard = static_cast<int32>(context->call_cntr);
    const auto shards = static_cast<int32>(context->max_calls);
    Datum values[kColumns] = {Int32GetDatum(shard),
                              Int64GetDatum(randflake::ShardLower(shard, shards)),
                              Int64GetDatum(randflake::ShardUpper(shard, shards))};
    bool nulls[kColumns] = {};
    SRF_RETURN_NEXT(context,
                    HeapTupleGetDatum(heap_form_tuple(context->tuple_desc, values, nulls)));
}
