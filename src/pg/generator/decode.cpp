// Defines the SQL functions that decode and encode identifiers of 64 and 53 bits.

#include "core/identifier/layout.h"
#include "core/secret/secret_ring.h"
#include "pg/base/sql_function.h"
#include "pg/base/timestamp.h"
#include "pg/secret/secret.h"
#include "pg/server/decode_horizon.h"
#include "pg/server/require.h"

using namespace randflake;

// Returns false if none of this server's secrets made the identifier. Raises an ERROR if a secret
// that this server lacks may have made the identifier.
template <typename Ring>
static bool decode(const Layout& layout, const Ring& ring, int64 id, Fields* fields) {
    uint64 raw;
    const bool made = ring.Decrypt(layout, static_cast<uint64>(id), &raw);
    require_certain(layout, made ? &raw : nullptr);
    if (!made) return false;
    *fields = layout.Unpack(raw);
    return true;
}

static Datum decoded_row(FunctionCallInfo fcinfo, bool made, const Fields& fields) {
    Datum values[] = {TimestampTzGetDatum(timestamp_of(kRandflake.SecondOf(fields.timestamp))),
                      Int32GetDatum(static_cast<int32>(fields.node_id)),
                      Int32GetDatum(static_cast<int32>(fields.sequence))};
    bool nulls[] = {!made, !made, !made};
    FmgrInfo* call_site = fcinfo->flinfo;
    if (unlikely(call_site->fn_extra == nullptr))
        call_site->fn_extra = result_row(fcinfo, lengthof(values), call_site->fn_mcxt);
    return HeapTupleGetDatum(
        heap_form_tuple(static_cast<TupleDesc>(call_site->fn_extra), values, nulls));
}

SQL_FUNCTION(randflake_decode) {
    require_secret();
    Fields fields{};
    const bool made = decode(kRandflake, secret_ring(), PG_GETARG_INT64(0), &fields);
    PG_RETURN_DATUM(decoded_row(fcinfo, made, fields));
}

SQL_FUNCTION(randflake53_decode) {
    require_secret();
    const int64 id = PG_GETARG_INT64(0);
    if (static_cast<uint64>(id) > kMaxFeistel53)
        ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
                        errmsg("%lld is not a 53-bit identifier", static_cast<long long>(id)),
                        errdetail("They are from 0 to %llu.",
                                  static_cast<unsigned long long>(kMaxFeistel53))));
    Fields fields{};
    const bool made = decode(kRandflake53, secret_ring53(), id, &fields);
    PG_RETURN_DATUM(decoded_row(fcinfo, made, fields));
}

SQL_FUNCTION(randflake_generated_at) {
    require_secret();
    Fields fields;
    if (!decode(kRandflake, secret_ring(), PG_GETARG_INT64(0), &fields)) PG_RETURN_NULL();
    PG_RETURN_TIMESTAMPTZ(timestamp_of(kRandflake.SecondOf(fields.timestamp)));
}

static uint64 require_in_range(const char* what, int32 value, uint64 max) {
    if (value < 0 || static_cast<uint64>(value) > max)
        ereport(
            ERROR,
            (errcode(ERRCODE_INVALID_PARAMETER_VALUE), errmsg("%s %d is out of range", what, value),
             errdetail("It must be from 0 to %llu.", static_cast<unsigned long long>(max))));
    return static_cast<uint64>(value);
}

template <typename Ring>
static Datum encode(FunctionCallInfo fcinfo, const Layout& layout, const Ring& ring) {
    const Fields fields{layout.FirstTick(second_of_timestamp(PG_GETARG_TIMESTAMPTZ(0),
                                                             ERRCODE_INVALID_PARAMETER_VALUE)),
                        require_in_range("node id", PG_GETARG_INT32(1), layout.max_node_id()),
                        require_in_range("sequence", PG_GETARG_INT32(2), layout.max_sequence())};
    uint64 raw, id;
    if (!layout.Pack(fields, &raw)) elog(ERROR, "fields of an identifier do not fit");
    require_certain(layout, &raw);
    if (!ring.Encrypt(layout, raw, &id))
        ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
                        errmsg("there is no identifier of this second, node id and sequence"),
                        errdetail("An identifier of an earlier secret takes its place.")));
    PG_RETURN_INT64(static_cast<int64>(id));
}

SQL_FUNCTION(randflake_encode) {
    require_secret();
    return encode(fcinfo, kRandflake, secret_ring());
}

SQL_FUNCTION(randflake53_encode) {
    require_secret();
    return encode(fcinfo, kRandflake53, secret_ring53());
}
