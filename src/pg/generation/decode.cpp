// SQL functions that look into identifiers with the secret: decode, generated_at, encode.

#include "core/identifier/layout.h"
#include "core/secret/secret_ring.h"
#include "pg/base/clock.h"
#include "pg/server/require.h"
#include "pg/base/result_row.h"
#include "pg/secret/secret.h"
#include "pg/server/shmem.h"
#include "pg/base/sql_function.h"
#include "pg/base/timestamp.h"

using randflake::Fields;
using randflake::kRandflake;

// False if no secret of this server made the identifier. An ERROR if that, or what it says, is not
// certain.
static bool decode(int64 id, Fields* fields) {
    uint64 raw;
    const bool made = secret_ring().Decrypt(kRandflake, static_cast<uint64>(id), &raw);
    require_certain(made ? &raw : nullptr);
    if (!made)
        return false;
    *fields = kRandflake.Unpack(raw);
    return true;
}

// The row's descriptor is looked up once per query and kept with the call site.
static TupleDesc decoded_row(FunctionCallInfo fcinfo, int columns) {
    FmgrInfo* call_site = fcinfo->flinfo;
    if (unlikely(call_site->fn_extra == nullptr))
        call_site->fn_extra = result_row(fcinfo, columns, call_site->fn_mcxt);
    return static_cast<TupleDesc>(call_site->fn_extra);
}

SQL_FUNCTION(randflake_decode);
Datum randflake_decode(PG_FUNCTION_ARGS) {
    require_secret();
    Fields fields{};
    const bool none = !decode(PG_GETARG_INT64(0), &fields);
    Datum values[] = {TimestampTzGetDatum(timestamp_of(kRandflake.SecondOf(fields.timestamp))),
                      Int32GetDatum(static_cast<int32>(fields.node_id)),
                      Int32GetDatum(static_cast<int32>(fields.sequence))};
    bool nulls[] = {none, none, none};
    PG_RETURN_DATUM(
        HeapTupleGetDatum(heap_form_tuple(decoded_row(fcinfo, lengthof(values)), values, nulls)));
}

SQL_FUNCTION(randflake_generated_at);
Datum randflake_generated_at(PG_FUNCTION_ARGS) {
    require_secret();
    Fields fields;
    if (!decode(PG_GETARG_INT64(0), &fields))
        PG_RETURN_NULL();
    PG_RETURN_TIMESTAMPTZ(timestamp_of(kRandflake.SecondOf(fields.timestamp)));
}

[[noreturn]] static void raise_out_of_range(const char* what, int32 value, uint64 max) {
    ereport(ERROR,
            (errcode(ERRCODE_INVALID_PARAMETER_VALUE), errmsg("%s %d is out of range", what, value),
             errdetail("It must be from 0 to %llu.", static_cast<unsigned long long>(max))));
}

SQL_FUNCTION(randflake_encode);
Datum randflake_encode(PG_FUNCTION_ARGS) {
    require_secret();
    const randflake::Second second =
        second_of_timestamp(PG_GETARG_TIMESTAMPTZ(0), ERRCODE_INVALID_PARAMETER_VALUE);
    const int32 node_id = PG_GETARG_INT32(1);
    const int32 sequence = PG_GETARG_INT32(2);
    if (node_id < 0 || static_cast<uint64>(node_id) > kRandflake.max_node_id())
        raise_out_of_range("node id", node_id, kRandflake.max_node_id());
    if (sequence < 0 || static_cast<uint64>(sequence) > kRandflake.max_sequence())
        raise_out_of_range("sequence", sequence, kRandflake.max_sequence());

    uint64 raw, id;
    const Fields fields{kRandflake.FirstTick(second), static_cast<uint64>(node_id),
                        static_cast<uint64>(sequence)};
    if (!kRandflake.Pack(fields, &raw))
        elog(ERROR, "fields of an identifier do not fit");
    require_certain(&raw);
    if (!secret_ring().Encrypt(kRandflake, raw, &id))
        ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
                        errmsg("there is no identifier of this second, node id and sequence"),
                        errdetail("An identifier of an earlier secret takes its place.")));
    PG_RETURN_INT64(static_cast<int64>(id));
}
