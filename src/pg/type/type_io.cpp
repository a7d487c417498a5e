// Defines input, output, casts and new values of the type randflake.

#include "core/identifier/id_text.h"
#include "pg/base/compat.h"
#include "pg/base/timestamp.h"
#include "pg/generator/reserve.h"
#include "pg/identifier/copy.h"
#include "pg/identifier/text.h"
#include "pg/identifier/vector_path.h"
#include "pg/type/type.h"
#include "pg/type/type_key.h"

using namespace randflake;

// No assignment makes an identifier of a number that is nearer to 0.
static constexpr int64 kLeastAssigned = int64{1} << 32;

static const char* time_of(uint64 raw) { return second_text(second_of_raw(raw)); }

// A role stored an identifier invented for a future second, and then this second got a new secret.
[[noreturn]] static void raise_skipped(uint64 raw) {
    ereport(ERROR,
            (errcode(ERRCODE_DATA_EXCEPTION), errmsg("a value of type randflake has no identifier"),
             errdetail("Its time is %s. No server has made it.", time_of(raw)),
             errhint("Find such values by their time with randflake_timestamp(), and delete "
                     "them.")));
}

// Returns false if the ring skips this number; otherwise sets *id. New values, and values in
// storage order, are often consecutive, so this function encrypts consecutive numbers in batches.
static bool encrypt(const SecretRing& ring, uint64 raw, uint64* id) {
    static uint64 previous;
    static int secrets;   // how many secrets the ring had when it encrypted `ids`; 0: none yet
    static uint64 first;  // ids[i] is the identifier of first + i
    static uint64 ids[kBatchLength];
    static uint64 skipped;

    const bool follows = raw == previous + 1;
    previous = raw;
    if (secrets != ring.count() || raw - first >= kBatchLength) {
        if (!follows || !ring.HasOneOwner(kRandflake, raw, kBatchLength))
            return ring.Encrypt(kRandflake, raw, id);
        skipped = EncryptNumbers(ring, vector_path, raw, kBatchLength, ids);
        first = raw;
        secrets = ring.count();
    }
    *id = ids[raw - first];
    return (skipped >> (raw - first) & 1) == 0;
}

static uint64 id_of_datum(FunctionCallInfo fcinfo, Datum value) {
    const uint64 raw = raw_of_datum(value);
    const SecretRing ring = type_secrets();
    (void)check_type_value(fcinfo, ring, TypeUse::kOutput, raw);
    uint64 id;
    if (!encrypt(ring, raw, &id)) raise_skipped(raw);
    return id;
}

// Encrypts `raw` only if the ring has several secrets. A ring of one secret skips nothing.
static bool is_skipped(const SecretRing& ring, uint64 raw) {
    uint64 id;
    return unlikely(ring.count() > 1) && !encrypt(ring, raw, &id);
}

// Raises an ERROR if no secret decrypts the identifier, or if no server has reached the
// identifier's second. Returns false instead if the caller collects errors in `context`.
static bool datum_of_id(FunctionCallInfo fcinfo, uint64 id, Node* context, Datum* value) {
    require_type_usage(fcinfo);
    const SecretRing ring = type_secrets();
    uint64 raw = 0;
    const bool made = ring.Decrypt(kRandflake, id, &raw);
    if (made ? !check_type_value(fcinfo, ring, TypeUse::kInput, raw)
             : !check_type(fcinfo->flinfo->fn_oid, ring, TypeUse::kNoValue, raw)) {
        soft_ereport(context,
                     (errcode(ERRCODE_INVALID_TEXT_REPRESENTATION),
                      errmsg("invalid identifier for type randflake: \"%s\"", type_text_of_id(id)),
                      made ? errdetail("No server has made it yet. Its time is %s.", time_of(raw))
                           : errdetail("It was made under none of this server's secrets.")));
        return false;
    }
    *value = datum_of_raw(raw);
    return true;
}

static Datum datum_of_id(FunctionCallInfo fcinfo, uint64 id) {
    Datum value{};
    (void)datum_of_id(fcinfo, id, nullptr, &value);
    return value;
}

SQL_FUNCTION(randflake_in) {
    uint64 id;
    Datum value{};
    if (id_of_type_text(PG_GETARG_CSTRING(0), fcinfo->context, &id))
        (void)datum_of_id(fcinfo, id, fcinfo->context, &value);
    return value;
}

SQL_FUNCTION(randflake_out) {
    PG_RETURN_CSTRING(type_text_of_id(id_of_datum(fcinfo, PG_GETARG_DATUM(0))));
}

SQL_FUNCTION(randflake_recv) {
    auto* message = reinterpret_cast<StringInfo>(PG_GETARG_POINTER(0));
    const int bytes = message->len - message->cursor;
    const char* data = pq_getmsgbytes(message, bytes);
    uint64 id;
    // A driver that does not know the type may send the text form as if it were binary.
    if (!ParseBinary(reinterpret_cast<const uint8*>(data), static_cast<size_t>(bytes), &id))
        ereport(ERROR,
                (errcode(ERRCODE_INVALID_BINARY_REPRESENTATION),
                 errmsg("invalid binary form of an identifier"),
                 errdetail("It has %d bytes instead of %d.", bytes, static_cast<int>(kBinaryBytes)),
                 errhint("Send the text form as text, with format code 0, or the identifier "
                         "as a binary bigint.")));
    return datum_of_id(fcinfo, id);
}

SQL_FUNCTION(randflake_send) {
    StringInfoData message;
    pq_begintypsend(&message);
    pq_sendint64(&message, id_of_datum(fcinfo, PG_GETARG_DATUM(0)));
    PG_RETURN_BYTEA_P(pq_endtypsend(&message));
}

// Programs assign identifiers as bigint, and by mistake also old keys and loop variables. An
// identifier is that small once in 2^31.
SQL_FUNCTION(randflake_from_bigint) {
    const int64 id = PG_GETARG_INT64(0);
    const bool is_explicit = PG_GETARG_BOOL(2);
    if (!is_explicit && id > -kLeastAssigned && id < kLeastAssigned)
        ereport(ERROR,
                (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
                 errmsg("cannot assign the number " INT64_FORMAT " to an identifier", id),
                 errdetail("A number this small is probably a key of another kind."),
                 errhint("If it is an identifier, cast it: (" INT64_FORMAT ")::randflake.", id)));
    return datum_of_id(fcinfo, static_cast<uint64>(id));
}

// Lets the planner evaluate the cast of a constant, for partition pruning and postgres_fdw. The
// result depends on the secret. So a plan may contain the result, but a stored expression may not.
// For a stored expression, there is no planner state (`root`).
SQL_FUNCTION(randflake_cast_support) {
    Node* request = reinterpret_cast<Node*>(PG_GETARG_POINTER(0));
    if (!IsA(request, SupportRequestSimplify)) return Datum{0};
    const auto* simplify = reinterpret_cast<SupportRequestSimplify*>(request);
    const FuncExpr* call = simplify->fcall;
    const auto* argument = static_cast<Const*>(linitial(call->args));
    if (!IsA(argument, Const)) refuse_sequence(nodeToString(argument), call->funcresulttype);
    Datum values[] = {Datum{0}, Int32GetDatum(-1), BoolGetDatum(true)};
    Assert(list_length(call->args) <= static_cast<int>(lengthof(values)));
    for (int i = 0; i < list_length(call->args); i++) {
        const auto* constant = static_cast<Const*>(list_nth(call->args, i));
        if (!IsA(constant, Const) || constant->constisnull) return Datum{0};
        values[i] = constant->constvalue;
    }
    if (simplify->root == nullptr || !may_execute(call->funcid)) return Datum{0};
    PG_RETURN_POINTER(makeConst(call->funcresulttype, -1, InvalidOid, sizeof(Datum),
                                OidFunctionCall3(call->funcid, values[0], values[1], values[2]),
                                false, true));
}

SQL_FUNCTION(randflake_from_integer) {
    return datum_of_id(fcinfo, static_cast<uint64>(int64{PG_GETARG_INT32(0)}));
}

SQL_FUNCTION(randflake_negate) {
    ereport(ERROR,
            (errcode(ERRCODE_FEATURE_NOT_SUPPORTED), errmsg("cannot negate an identifier"),
             errhint("To cast a negative number, put it in parentheses, as in (-42)::randflake, or "
                     "in quotes, as in '-42'::bigint::randflake.")));
}

SQL_FUNCTION(randflake_to_bigint) {
    PG_RETURN_INT64(static_cast<int64>(id_of_datum(fcinfo, PG_GETARG_DATUM(0))));
}

SQL_FUNCTION(randflake_type_to_text) {
    PG_RETURN_TEXT_P(text_of_id(id_of_datum(fcinfo, PG_GETARG_DATUM(0))));
}

SQL_FUNCTION(randflake_type_to_prefixed_text) {
    PG_RETURN_TEXT_P(
        prefixed_text_of_id(id_of_datum(fcinfo, PG_GETARG_DATUM(0)), PG_GETARG_TEXT_PP(1)));
}

// All backends take numbers from one slot, so the numbers rise and inserts go to the end of an
// index. With a slot per backend, inserts would split index pages and leave them half empty.
SQL_FUNCTION(randflake_next) {
    require_generator();
    uint64 raw;
    bool skipped;
    do
        skipped =
            UseReserved([] { return reserve_numbers(SlotChoice::kLowest, 1); }, secret_ring,
                        [&raw, fcinfo](const Reservation& reservation, const SecretRing& ring) {
                            raw = reservation.first;
                            if (is_skipped(ring, raw)) return true;
                            (void)check_type_value(fcinfo, ring, TypeUse::kMake, raw);
                            return false;
                        });
    while (unlikely(skipped));
    return datum_of_raw(raw);
}

SQL_FUNCTION_IN_COPY(randflake_next)
