// Defines the functions for a value's time and node id. These functions need no secret.

#include "core/identifier/layout.h"
#include "pg/base/sql_function.h"
#include "pg/base/timestamp.h"
#include "pg/type/type.h"

using randflake::kRandflake;

SQL_FUNCTION(randflake_timestamp);
Datum randflake_timestamp(PG_FUNCTION_ARGS) {
    PG_RETURN_TIMESTAMPTZ(timestamp_of(second_of_datum(PG_GETARG_DATUM(0))));
}

SQL_FUNCTION(randflake_node_id);
Datum randflake_node_id(PG_FUNCTION_ARGS) {
    PG_RETURN_INT32(
        static_cast<int32>(kRandflake.Unpack(raw_of_datum(PG_GETARG_DATUM(0))).node_id));
}

SQL_FUNCTION(randflake_lower);
Datum randflake_lower(PG_FUNCTION_ARGS) {
    require_type_usage(fcinfo);
    const randflake::Second second =
        second_of_timestamp(PG_GETARG_TIMESTAMPTZ(0), ERRCODE_DATETIME_FIELD_OVERFLOW);
    uint64 raw;
    if (!kRandflake.Pack({kRandflake.FirstTick(second), 0, 0}, &raw))
        elog(ERROR, "second of an identifier does not fit");
    return datum_of_raw(raw);
}
