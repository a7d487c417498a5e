// SQL functions that make identifiers.
//
// A backend reserves a run of numbers at once, encrypts it in vector registers and hands the
// identifiers out one by one. A run is dropped when the clock shows another second than the one in
// which it was reserved, so the second inside an identifier is the clock's second at the call. The
// first run of a second is a single number, and each further run is longer: a lone insert uses up
// one number, and a bulk load pays for one compare-and-swap in 64 identifiers.
//
// The run belongs to this process. The postmaster never fills one, so no child inherits one, and
// parallel workers have their own. Its numbers are reserved in shared memory, so no other process
// gets them even if the process dies.
//
// Under several secrets some of the numbers are skipped (core/secret/secret_ring.h). They are
// reserved and then never used.

#include "core/secret/secret_ring.h"
#include "pg/base/clock.h"
#include "pg/generation/copy.h"
#include "pg/server/require.h"
#include "pg/generation/reserve.h"
#include "pg/server/shmem.h"
#include "pg/base/sql_function.h"
#include "pg/generation/text.h"
#include "pg/generation/vector_path.h"

using randflake::kRunLength;
using randflake::Reservation;
using randflake::SecretRing;

namespace {
struct Prefetched {
    randflake::Second second;  // of the clock, when the run was reserved
    uint32 reserved;           // numbers, skipped ones included
    uint32 next;               // ids[next .. count - 1] are left
    uint32 count;
    uint64 ids[kRunLength];
};
}  // namespace

// Each run of a second is this much longer than the one before, up to kRunLength.
static constexpr uint32 kRunGrowth = 8;

static Prefetched prefetched;

// What require_generator checks is fixed while the server runs, so a backend checks it once.
static bool ready;

static pg_noinline uint64 next_run() {
    if (unlikely(!ready)) {
        Assert(IsUnderPostmaster || !IsPostmasterEnvironment);
        require_generator();
        ready = true;
    }

    const bool same_second = prefetched.second == wall_clock_second();
    const uint32 wanted =
        same_second ? Min(prefetched.reserved * kRunGrowth, static_cast<uint32>(kRunLength)) : 1;
    prefetched.next = prefetched.count = 0;
    do {
        randflake::UseReserved(
            [&] { return reserve_numbers(SlotChoice::kOwn, wanted); }, secret_ring,
            [](const Reservation& run, const SecretRing& ring) {
                const auto count = static_cast<int>(run.count);
                const uint64 skipped =
                    randflake::EncryptNumbers(ring, vector_path, run.first, count, prefetched.ids);
                prefetched.second = {run.now};  // ticks are seconds
                prefetched.reserved = run.count;
                prefetched.count =
                    static_cast<uint32>(randflake::DropSkipped(skipped, count, prefetched.ids));
            });
    } while (unlikely(prefetched.count == 0));
    return prefetched.ids[prefetched.next++];
}

static inline uint64 next_id() {
    if (likely(prefetched.next < prefetched.count && prefetched.second == wall_clock_second()))
        return prefetched.ids[prefetched.next++];
    return next_run();
}

SQL_FUNCTION(randflake_generate);
Datum randflake_generate([[maybe_unused]] PG_FUNCTION_ARGS) {
    PG_RETURN_INT64(static_cast<int64>(next_id()));
}

SQL_FUNCTION(randflake_generate_text);
Datum randflake_generate_text([[maybe_unused]] PG_FUNCTION_ARGS) {
    PG_RETURN_TEXT_P(text_of_id(next_id()));
}

SQL_FUNCTION_IN_COPY(randflake_generate)
SQL_FUNCTION_IN_COPY(randflake_generate_text)

// Returns the whole set in a tuple store, which keeps to work_mem and spills to disk. The store
// copies each row, so one row is formed once and its only column is overwritten.
static void generate_materialized(FunctionCallInfo fcinfo, int32 count) {
    InitMaterializedSRF(fcinfo, MAT_SRF_USE_EXPECTED_DESC);
    const auto* result = reinterpret_cast<ReturnSetInfo*>(fcinfo->resultinfo);
    Assert(result->setDesc->natts == 1);
    Datum value = Int64GetDatum(0);
    bool null = false;
    HeapTuple row = heap_form_tuple(result->setDesc, &value, &null);
    auto* column =
        reinterpret_cast<uint64*>(reinterpret_cast<char*>(row->t_data) + row->t_data->t_hoff);
    for (int32 i = 0; i < count; i++) {
        if (i % kRunLength == 0)
            CHECK_FOR_INTERRUPTS();
        *column = next_id();
        tuplestore_puttuple(result->setResult, row);
    }
}

// In FROM the executor keeps the rows in a tuple store anyway, and filling it here saves a call per
// row. In a select list it keeps none, so there each call returns one row.
SQL_FUNCTION(randflake_generate_many);
Datum randflake_generate_many(PG_FUNCTION_ARGS) {
    const auto* result = reinterpret_cast<ReturnSetInfo*>(fcinfo->resultinfo);
    const bool first_call = fcinfo->flinfo->fn_extra == nullptr;
    const int32 count = PG_GETARG_INT32(0);

    if (first_call && count < 0)
        ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
                        errmsg("number of identifiers must not be negative")));
    if (first_call && result != nullptr && IsA(result, ReturnSetInfo) &&
        (result->allowedModes & SFRM_Materialize_Preferred) != 0) {
        generate_materialized(fcinfo, count);
        return Datum{0};
    }

    if (SRF_IS_FIRSTCALL())
        SRF_FIRSTCALL_INIT()->max_calls = static_cast<uint64>(count);
    FuncCallContext* context = SRF_PERCALL_SETUP();
    if (context->call_cntr >= context->max_calls)
        SRF_RETURN_DONE(context);
    SRF_RETURN_NEXT(context, Int64GetDatum(static_cast<int64>(next_id())));
}

// Planner support of set-returning functions whose first argument is the number of rows. A null
// pointer means that there is no better estimate.
SQL_FUNCTION(randflake_rows_support);
Datum randflake_rows_support(PG_FUNCTION_ARGS) {
    Node* request = reinterpret_cast<Node*>(PG_GETARG_POINTER(0));
    if (!IsA(request, SupportRequestRows))
        return Datum{0};

    auto* rows = reinterpret_cast<SupportRequestRows*>(request);
    if (!is_funcclause(rows->node))
        return Datum{0};
    const List* arguments = reinterpret_cast<FuncExpr*>(rows->node)->args;
    Node* count = estimate_expression_value(rows->root, static_cast<Node*>(linitial(arguments)));
    if (!IsA(count, Const))
        return Datum{0};
    const auto* constant = reinterpret_cast<Const*>(count);
    rows->rows = constant->constisnull ? 0 : Max(DatumGetInt32(constant->constvalue), 0);
    PG_RETURN_POINTER(rows);
}
