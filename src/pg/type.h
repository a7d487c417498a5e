// The SQL type randflake, as its functions see it: a value holds the raw number, in time order
// (core/ordered.h), and goes in and out encrypted.

#ifndef RANDFLAKE_PG_TYPE_H
#define RANDFLAKE_PG_TYPE_H

#include "pg/pg.h"

#include "core/ordered.h"

static inline Datum datum_of_raw(uint64 raw) {
    return Int64GetDatum(randflake::OrderedFromRaw(raw));
}

static inline uint64 raw_of_datum(Datum value) {
    return randflake::RawFromOrdered(DatumGetInt64(value));
}

// Whether this backend has found the database bound to the server's secret; see type_key.cpp.
extern bool type_key_checked;
void check_type_key(Oid function);

// ERROR unless the secret is at hand and is the one under which the database keeps the type. Each
// function that encrypts or decrypts for the type begins with it.
static inline void require_type_key(FunctionCallInfo fcinfo) {
    if (unlikely(!type_key_checked))
        check_type_key(fcinfo->flinfo->fn_oid);
}

#endif
