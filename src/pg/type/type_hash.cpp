// The type randflake: its hash, for hash joins, grouping, hash indexes and hash partitions.
//
// Every user can call it, through hash_record() and partitions also without naming it. So it is a
// pseudorandom function under a key that is derived from the secret. A hash of the stored number
// alone would give time, node id and sequence number to a user who tries candidates. And the
// server's hash of bigint folds the upper half onto the lower, where seconds and sequence numbers
// of busy servers cancel out.

#include "core/identifier/siphash.h"
#include "pg/base/sql_function.h"
#include "pg/type/type.h"
#include "pg/type/type_key.h"

static uint64 hash_of_datum(Datum value) {
    const uint64 raw = raw_of_datum(value);
    return randflake::SipHash(type_hash_key, &raw, 1);
}

SQL_FUNCTION(randflake_hash);
Datum randflake_hash(PG_FUNCTION_ARGS) {
    require_type_hash(fcinfo);
    PG_RETURN_INT32(static_cast<int32>(hash_of_datum(PG_GETARG_DATUM(0))));
}

// With seed 0 its lower half is the hash above, as PostgreSQL demands of each hash operator class.
SQL_FUNCTION(randflake_hash_extended);
Datum randflake_hash_extended(PG_FUNCTION_ARGS) {
    require_type_hash(fcinfo);
    const Datum value = PG_GETARG_DATUM(0);
    const int64 seed = PG_GETARG_INT64(1);
    if (seed == 0)
        PG_RETURN_INT64(static_cast<int64>(hash_of_datum(value)));
    const uint64 seeded[] = {raw_of_datum(value), static_cast<uint64>(seed)};
    PG_RETURN_INT64(static_cast<int64>(
        randflake::SipHash(type_hash_key, seeded, sizeof seeded / sizeof *seeded)));
}
