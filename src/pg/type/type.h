// The SQL type randflake stores raw numbers as signed numbers that sort by time
// (core/identifier/signed_order.h). Input decrypts an identifier, and output encrypts the number.

#pragma once

#include "pg/base/pg.h"

#include "core/identifier/layout.h"
#include "core/identifier/signed_order.h"

extern "C" PGDLLEXPORT Datum randflake_in(PG_FUNCTION_ARGS);

// This role passed the session's last check of USAGE on the type; see type_usage.cpp.
extern Oid type_maker;

void check_type_usage(Oid maker);

// Raises an ERROR if the role lacks USAGE on the type. Call this before making a value.
static inline void require_type_usage(FunctionCallInfo fcinfo) {
    if (unlikely(GetUserId() != type_maker)) check_type_usage(fcinfo->flinfo->fn_oid);
}

// Installs the check of column defaults. _PG_init calls this.
void type_default_init();

// Raises an ERROR if `expression`, an output of nodeToString, turns nextval() into a randflake.
void refuse_sequence(const char* expression, Oid type);

static inline Datum datum_of_raw(uint64 raw) { return Int64GetDatum(randflake::ToSigned(raw)); }

static inline uint64 raw_of_datum(Datum value) {
    return randflake::ToUnsigned(DatumGetInt64(value));
}

static inline randflake::Second second_of_raw(uint64 raw) {
    return randflake::kRandflake.SecondOf(randflake::kRandflake.Unpack(raw).timestamp);
}
static inline randflake::Second second_of_datum(Datum value) {
    return second_of_raw(raw_of_datum(value));
}
