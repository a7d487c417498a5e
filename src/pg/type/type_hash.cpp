// Defines the hash of the type randflake. PostgreSQL's hash of bigint first combines the two halves
// of a number. The second and sequence number of a busy server would then cancel out.

#include "pg/base/sql_function.h"
#include "pg/type/type.h"

SQL_FUNCTION(randflake_hash);
Datum randflake_hash(PG_FUNCTION_ARGS) {
    const uint64 raw = raw_of_datum(PG_GETARG_DATUM(0));
    return hash_any(reinterpret_cast<const unsigned char*>(&raw), sizeof raw);
}

SQL_FUNCTION(randflake_hash_extended);
Datum randflake_hash_extended(PG_FUNCTION_ARGS) {
    const uint64 raw = raw_of_datum(PG_GETARG_DATUM(0));
    return hash_any_extended(reinterpret_cast<const unsigned char*>(&raw), sizeof raw,
                             static_cast<uint64>(PG_GETARG_INT64(1)));
}
