// Defines the functions of the type that need no secret: time, node id and hash of a value.

#include "core/identifier/layout.h"
#include "pg/base/sql_function.h"
#include "pg/base/timestamp.h"
#include "pg/type/type.h"

using randflake::kRandflake;

SQL_FUNCTION(randflake_timestamp) {
    PG_RETURN_TIMESTAMPTZ(timestamp_of(second_of_datum(PG_GETARG_DATUM(0))));
}

SQL_FUNCTION(randflake_node_id) {
    PG_RETURN_INT32(
        static_cast<int32>(kRandflake.Unpack(raw_of_datum(PG_GETARG_DATUM(0))).node_id));
}

SQL_FUNCTION(randflake_lower) {
    require_type_usage(fcinfo);
    const randflake::Second second =
        second_of_timestamp(PG_GETARG_TIMESTAMPTZ(0), ERRCODE_DATETIME_FIELD_OVERFLOW);
    uint64 raw;
    if (!kRandflake.Pack({kRandflake.FirstTick(second), 0, 0}, &raw))
        elog(ERROR, "second of an identifier does not fit");
    return datum_of_raw(raw);
}

// PostgreSQL's hash of bigint first combines the two halves of a number. The second and sequence
// number of a busy server would then cancel out.

SQL_FUNCTION(randflake_hash) {
    const uint64 raw = raw_of_datum(PG_GETARG_DATUM(0));
    return hash_any(reinterpret_cast<const unsigned char*>(&raw), sizeof raw);
}

SQL_FUNCTION(randflake_hash_extended) {
    const uint64 raw = raw_of_datum(PG_GETARG_DATUM(0));
    return hash_any_extended(reinterpret_cast<const unsigned char*>(&raw), sizeof raw,
                             static_cast<uint64>(PG_GETARG_INT64(1)));
}
