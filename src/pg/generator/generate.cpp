// Defines the SQL functions that make identifiers of 64 and 53 bits.

#include "pg/base/sql_function.h"
#include "pg/generator/prefetch.h"
#include "pg/generator/reserve.h"
#include "pg/identifier/copy.h"
#include "pg/identifier/text.h"
#include "pg/secret/secret.h"
#include "pg/server/require.h"

using randflake::Reservation;

namespace {
struct Randflake {
    static void Require() { require_generator(); }
    static Reservation Reserve(uint32 wanted) { return reserve_numbers(SlotChoice::kOwn, wanted); }
    static Reservation ReserveLongRun(uint32* visited, uint32 wanted) {
        return reserve_long_run(visited, wanted);
    }
    static randflake::SecretRing ReadRing() { return secret_ring(); }
};

struct Randflake53 {
    static void Require() { require_generator53(); }
    static Reservation Reserve(uint32 wanted) { return reserve_53(wanted); }
    static Reservation ReserveLongRun(uint32* visited, uint32 wanted) {
        return reserve_long_run_53(visited, wanted);
    }
    static randflake::SecretRing53 ReadRing() { return secret_ring53(); }
};
}  // namespace

SQL_FUNCTION(randflake_generate) {
    PG_RETURN_INT64(static_cast<int64>(Prefetch<Randflake>::Next()));
}

SQL_FUNCTION(randflake_generate_text) { PG_RETURN_TEXT_P(text_of_id(Prefetch<Randflake>::Next())); }

SQL_FUNCTION(randflake53_generate) {
    PG_RETURN_INT64(static_cast<int64>(Prefetch<Randflake53>::Next()));
}

SQL_FUNCTION_IN_COPY(randflake_generate)
SQL_FUNCTION_IN_COPY(randflake_generate_text)
SQL_FUNCTION_IN_COPY(randflake53_generate)

SQL_FUNCTION(randflake_generate_many) { return generate_many<Randflake>(fcinfo); }

SQL_FUNCTION(randflake53_generate_many) { return generate_many<Randflake53>(fcinfo); }

// Tells the planner the number of rows, which is the function's first argument.
SQL_FUNCTION(randflake_rows_support) {
    Node* request = reinterpret_cast<Node*>(PG_GETARG_POINTER(0));
    if (!IsA(request, SupportRequestRows)) return Datum{0};

    auto* rows = reinterpret_cast<SupportRequestRows*>(request);
    if (!is_funcclause(rows->node)) return Datum{0};
    const List* arguments = reinterpret_cast<FuncExpr*>(rows->node)->args;
    Node* count = estimate_expression_value(rows->root, static_cast<Node*>(linitial(arguments)));
    if (!IsA(count, Const)) return Datum{0};
    const auto* constant = reinterpret_cast<Const*>(count);
    rows->rows = constant->constisnull ? 0 : Max(DatumGetInt32(constant->constvalue), 0);
    PG_RETURN_POINTER(rows);
}
