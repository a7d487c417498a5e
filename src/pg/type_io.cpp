// The type randflake: input, output, casts, and new values.

#include "core/cipher.h"
#include "core/cipher_run.h"
#include "pg/compat.h"
#include "pg/copy.h"
#include "pg/require.h"
#include "pg/reserve.h"
#include "pg/shmem.h"
#include "pg/sql_function.h"
#include "pg/text.h"
#include "pg/type.h"
#include "pg/type_key.h"
#include "pg/vector_path.h"

// The identifier of a value. Values that are shown in the order of storage are often consecutive
// numbers. From the second consecutive one on, a run is encrypted at once in vector registers.
static uint64 id_of_datum(Datum value) {
    static uint64 previous;
    static uint64 first;  // ids are those of first, first + 1, ...
    static uint64 ids[randflake::kRunLength];
    static bool filled;

    const uint64 raw = raw_of_datum(value);
    const bool follows = raw == previous + 1;
    previous = raw;
    if (filled && raw - first < randflake::kRunLength)
        return ids[raw - first];
    if (!follows)
        return randflake::Encrypt(shared->key_schedule, raw);
    encrypt_run(shared->key_schedule, raw, ids);
    first = raw;
    filled = true;
    return ids[0];
}

static Datum datum_of_id(uint64 id) {
    return datum_of_raw(randflake::Decrypt(shared->key_schedule, id));
}

SQL_FUNCTION(randflake_in) {
    require_type_key(fcinfo);
    uint64 id;
    if (!id_of_type_text(PG_GETARG_CSTRING(0), fcinfo->context, &id))
        return Datum{0};
    return datum_of_id(id);
}

SQL_FUNCTION(randflake_out) {
    require_type_key(fcinfo);
    PG_RETURN_CSTRING(type_text_of_id(id_of_datum(PG_GETARG_DATUM(0))));
}

SQL_FUNCTION(randflake_recv) {
    require_type_key(fcinfo);
    auto* message = reinterpret_cast<StringInfo>(PG_GETARG_POINTER(0));
    const int bytes = message->len - message->cursor;
    // Mostly from a driver that sends strings in binary without knowing the type.
    if (bytes != static_cast<int>(sizeof(uint64)))
        ereport(ERROR, (errcode(ERRCODE_INVALID_BINARY_REPRESENTATION),
                        errmsg("invalid binary form of an identifier"),
                        errdetail("It has %d bytes instead of %d.", bytes,
                                  static_cast<int>(sizeof(uint64))),
                        errhint("Send the text form as text, with format code 0, or the identifier "
                                "as a binary bigint.")));
    return datum_of_id(static_cast<uint64>(pq_getmsgint64(message)));
}

SQL_FUNCTION(randflake_send) {
    require_type_key(fcinfo);
    StringInfoData message;
    pq_begintypsend(&message);
    pq_sendint64(&message, id_of_datum(PG_GETARG_DATUM(0)));
    PG_RETURN_BYTEA_P(pq_endtypsend(&message));
}

SQL_FUNCTION(randflake_from_bigint) {
    require_type_key(fcinfo);
    return datum_of_id(static_cast<uint64>(PG_GETARG_INT64(0)));
}

// Planner support of casts to the type: the cast of a constant is a constant of the type, as its
// text form is since the statement was parsed. So partitions are pruned when the statement is
// planned, and postgres_fdw and others that look for constants find one. The casts are STABLE, not
// IMMUTABLE, because they depend on the secret: their results belong into plans, and not into what
// is stored. Expressions that are not part of a statement's plan, as those of indexes, stay as they
// are.
SQL_FUNCTION(randflake_cast_support) {
    Node* request = reinterpret_cast<Node*>(PG_GETARG_POINTER(0));
    if (!IsA(request, SupportRequestSimplify))
        return Datum{0};
    const auto* simplify = reinterpret_cast<SupportRequestSimplify*>(request);
    const FuncExpr* call = simplify->fcall;
    const auto* argument = static_cast<Const*>(linitial(call->args));
    if (simplify->root == nullptr || !IsA(argument, Const) || argument->constisnull ||
        !may_execute(call->funcid))
        return Datum{0};
    PG_RETURN_POINTER(makeConst(call->funcresulttype, -1, InvalidOid, sizeof(Datum),
                                OidFunctionCall1(call->funcid, argument->constvalue), false, true));
}

SQL_FUNCTION(randflake_from_integer) {
    require_type_key(fcinfo);
    return datum_of_id(static_cast<uint64>(int64{PG_GETARG_INT32(0)}));
}

// A cast binds tighter than a sign, so -42::randflake gets here.
SQL_FUNCTION(randflake_negate) {
    ereport(ERROR,
            (errcode(ERRCODE_FEATURE_NOT_SUPPORTED), errmsg("cannot negate an identifier"),
             errhint("To cast a negative number, put it in parentheses, as in (-42)::randflake, or "
                     "in quotes, as in '-42'::bigint::randflake.")));
}

SQL_FUNCTION(randflake_to_bigint) {
    require_type_key(fcinfo);
    PG_RETURN_INT64(static_cast<int64>(id_of_datum(PG_GETARG_DATUM(0))));
}

// All backends take single numbers from the same slot. Together they count upwards, so the key's
// index has one insertion point, at its end. With a slot for each backend, inserts would split
// pages in the middle of the index and leave them half empty.
SQL_FUNCTION(randflake_next) {
    require_type_key(fcinfo);
    require_generator();
    return datum_of_raw(reserve_numbers(SlotChoice::kLowest, 1).first);
}

SQL_FUNCTION_IN_COPY(randflake_next)
