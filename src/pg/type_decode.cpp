// The type randflake: time and node id, which need no secret.

#include "core/layout.h"
#include "pg/sql_function.h"
#include "pg/timestamp.h"
#include "pg/type.h"

using randflake::Fields;
using randflake::kRandflake;

static Fields fields_of_datum(Datum value) {
    return kRandflake.Unpack(raw_of_datum(value));
}

SQL_FUNCTION(randflake_timestamp) {
    const Fields fields = fields_of_datum(PG_GETARG_DATUM(0));
    PG_RETURN_TIMESTAMPTZ(timestamp_of_second(static_cast<int64>(fields.timestamp)));
}

SQL_FUNCTION(randflake_node_id) {
    PG_RETURN_INT32(static_cast<int32>(fields_of_datum(PG_GETARG_DATUM(0)).node_id));
}

// The smallest value of a second.
SQL_FUNCTION(randflake_lower) {
    const uint64 second =
        second_of_timestamp(PG_GETARG_TIMESTAMPTZ(0), ERRCODE_DATETIME_FIELD_OVERFLOW);
    uint64 raw;
    if (!kRandflake.Pack({second, 0, 0}, &raw))
        elog(ERROR, "second of an identifier does not fit");
    return datum_of_raw(raw);
}
