// Lets COPY FROM insert many rows at once, even if a column default makes identifiers. The initial
// copy of a table in logical replication then inserts many rows at once too.
//
// COPY inserts one row at a time if a default is volatile, because a volatile function might read
// the table that COPY fills. The functions that make identifiers read no table, so each has a twin:
// a SQL function, marked STABLE, with the same code. In column defaults that COPY evaluates, a
// planner support function replaces each call of such a function by a call of its twin.
//
// Other statements must not use a twin: ALTER TABLE ADD COLUMN would store the same identifier in
// all rows. So the support function checks two conditions. First, either the innermost utility
// statement is COPY FROM, or this process is a worker of logical replication and no utility
// statement runs. Second, the planner has no state (`root`). It has none when it plans COPY's
// defaults, but has one when it plans queries in triggers. The conditions also hold for COPY's
// WHERE clause, trigger conditions, CHECK constraints, and the defaults of replicated rows. A twin
// does no harm in these expressions, because PostgreSQL evaluates them for each row.
//
// The twin of f() is f_in_copy(internal) in the same schema. Users cannot call it, because SQL has
// no values of type internal. The argument is the Oid of f. The role needs EXECUTE on f.

#include "pg/identifier/copy.h"

#include "pg/base/compat.h"
#include "pg/identifier/load.h"

static ProcessUtility_hook_type previous_process_utility;

namespace {
enum class Utility { kNone, kCopyFrom, kOther };
}
static Utility innermost = Utility::kNone;

static Utility kind_of(const PlannedStmt* statement) {
    const Node* utility = statement->utilityStmt;
    return IsA(utility, CopyStmt) && reinterpret_cast<const CopyStmt*>(utility)->is_from
               ? Utility::kCopyFrom
               : Utility::kOther;
}

static bool may_be_copying() {
    return innermost == Utility::kCopyFrom || (innermost == Utility::kNone && IsLogicalWorker());
}

static void on_process_utility(PlannedStmt* statement, const char* query, bool read_only_tree,
                               ProcessUtilityContext context, ParamListInfo parameters,
                               QueryEnvironment* environment, DestReceiver* destination,
                               QueryCompletion* completion) {
    Assert(context != PROCESS_UTILITY_TOPLEVEL || (innermost == Utility::kNone && load.depth == 0));
    const Utility outer = innermost;
    innermost = kind_of(statement);
    const bool entered = load_enter();
    PG_TRY();
    {
        const ProcessUtility_hook_type next = previous_process_utility != nullptr
                                                  ? previous_process_utility
                                                  : standard_ProcessUtility;
        next(statement, query, read_only_tree, context, parameters, environment, destination,
             completion);
    }
    PG_FINALLY();
    {
        innermost = outer;
        load_leave(entered);
    }
    PG_END_TRY();
}

void copy_init() {
    load_init();
    previous_process_utility = ProcessUtility_hook;
    ProcessUtility_hook = on_process_utility;
}

// Returns InvalidOid if there is no twin. The role needs no privilege on the schema.
static Oid find_twin(Oid original) {
    const char* name = get_func_name(original);
    if (name == nullptr) return InvalidOid;
    const Oid argument = INTERNALOID;
    return GetSysCacheOid3(PROCNAMEARGSNSP, Anum_pg_proc_oid,
                           CStringGetDatum(psprintf("%s_in_copy", name)),
                           PointerGetDatum(buildoidvector(&argument, 1)),
                           ObjectIdGetDatum(get_func_namespace(original)));
}

SQL_FUNCTION(randflake_copy_support) {
    Node* request = reinterpret_cast<Node*>(PG_GETARG_POINTER(0));
    if (!may_be_copying() || !IsA(request, SupportRequestSimplify)) return Datum{0};
    const auto* simplify = reinterpret_cast<SupportRequestSimplify*>(request);
    if (simplify->root != nullptr) return Datum{0};

    const FuncExpr* call = simplify->fcall;
    const Oid twin = find_twin(call->funcid);
    // If the role may not execute the twin, COPY calls the original.
    if (!OidIsValid(twin) || !may_execute(twin)) return Datum{0};
    Assert(get_func_rettype(twin) == call->funcresulttype);
    Const* original = makeConst(INTERNALOID, -1, InvalidOid, sizeof(Datum),
                                ObjectIdGetDatum(call->funcid), false, true);
    PG_RETURN_POINTER(makeFuncExpr(twin, call->funcresulttype, lappend(NIL, original),
                                   call->funccollid, call->inputcollid, call->funcformat));
}

void require_original(FunctionCallInfo fcinfo) {
    Assert(PG_NARGS() == 1);
    FmgrInfo* call_site = fcinfo->flinfo;
    if (likely(call_site->fn_extra != nullptr)) return;
    const Oid original = DatumGetObjectId(PG_GETARG_DATUM(0));
    Assert(OidIsValid(original));  // a superuser may execute any Oid
    if (!may_execute(original))
        aclcheck_error(ACLCHECK_NO_PRIV, OBJECT_FUNCTION, get_func_name(original));
    // Checks the privilege once per call site. A non-null fn_extra marks the check as done.
    call_site->fn_extra = call_site;
}
