// Declares the SQL type randflake. A value stores the raw number in time order
// (core/identifier/signed_order.h); input decrypts it and output encrypts it.

#pragma once

#include "pg/base/pg.h"

#include "core/identifier/layout.h"
#include "core/identifier/signed_order.h"

extern "C" PGDLLEXPORT Datum randflake_in(PG_FUNCTION_ARGS);

// The last role that had USAGE on the type; see type_usage.cpp.
extern Oid type_maker;

void check_type_usage(Oid maker);

// Raises an ERROR unless the current role has USAGE on the type. Each function that makes a value
// from something else calls it first.
static inline void require_type_usage(FunctionCallInfo fcinfo) {
    if (unlikely(GetUserId() != type_maker))
        check_type_usage(fcinfo->flinfo->fn_oid);
}

// Installs the check of column defaults; in _PG_init.
void type_default_init();

// Raises an error if the type is randflake and an expression (of nodeToString) for it takes a
// number from a sequence.
void refuse_sequence(const char* expression, Oid type);

static inline Datum datum_of_raw(uint64 raw) {
    return Int64GetDatum(randflake::ToSigned(raw));
}

static inline uint64 raw_of_datum(Datum value) {
    return randflake::ToUnsigned(DatumGetInt64(value));
}

static inline randflake::Second second_of_raw(uint64 raw) {
    return randflake::kRandflake.SecondOf(randflake::kRandflake.Unpack(raw).timestamp);
}
static inline randflake::Second second_of_datum(Datum value) {
    return second_of_raw(raw_of_datum(value));
}
