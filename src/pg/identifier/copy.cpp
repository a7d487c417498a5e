// Lets COPY FROM, and the initial copy of a table in logical replication, insert many rows at once
// although a column default makes identifiers.
//
// COPY inserts one row at a time if a default is volatile, because a volatile function might read
// the table that COPY fills. PostgreSQL exempts only nextval(). Our functions read no table. So
// each has a twin, which runs the same code and is marked STABLE. In the defaults of COPY, a
// planner support function replaces each call by the twin's.
//
// Other statements must not use a twin: ALTER TABLE ADD COLUMN evaluates a default that is not
// volatile once for all rows. So the support function replaces a call only if
//
//   - the innermost utility statement is COPY FROM, or a worker of logical replication runs without
//     a statement, as in the initial copy of a table. Statements of triggers pass
//     ProcessUtility_hook too, which restores the outer state even after an error; and
//   - there is no planner state: COPY plans a bare expression; queries of triggers have a state.
//
// PostgreSQL evaluates other bare expressions for each row anyway: COPY's WHERE, conditions of
// triggers, CHECK constraints, defaults in rows that logical replication applies.
//
// Users cannot call a twin: its argument has type internal, of which SQL has no value. The argument
// is the Oid of the original, whose EXECUTE privilege counts. The twin of f() is
// f_in_copy(internal) in the same schema.

#include "pg/identifier/copy.h"

#include "pg/base/compat.h"

static ProcessUtility_hook_type previous_process_utility;

// The innermost utility statement of this backend.
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
    const Utility outer = innermost;
    innermost = kind_of(statement);
    PG_TRY();
    {
        const ProcessUtility_hook_type next = previous_process_utility != nullptr
                                                  ? previous_process_utility
                                                  : standard_ProcessUtility;
        next(statement, query, read_only_tree, context, parameters, environment, destination,
             completion);
    }
    PG_FINALLY();
    { innermost = outer; }
    PG_END_TRY();
}

void copy_init() {
    previous_process_utility = ProcessUtility_hook;
    ProcessUtility_hook = on_process_utility;
}

// InvalidOid without a twin. This needs no privilege on the schema, because a default needs none.
static Oid find_twin(Oid original) {
    const char* name = get_func_name(original);
    if (name == nullptr)
        return InvalidOid;
    const Oid argument = INTERNALOID;
    return GetSysCacheOid3(PROCNAMEARGSNSP, Anum_pg_proc_oid,
                           CStringGetDatum(psprintf("%s_in_copy", name)),
                           PointerGetDatum(buildoidvector(&argument, 1)),
                           ObjectIdGetDatum(get_func_namespace(original)));
}

SQL_FUNCTION(randflake_copy_support);
Datum randflake_copy_support(PG_FUNCTION_ARGS) {
    Node* request = reinterpret_cast<Node*>(PG_GETARG_POINTER(0));
    if (!may_be_copying() || !IsA(request, SupportRequestSimplify))
        return Datum{0};
    const auto* simplify = reinterpret_cast<SupportRequestSimplify*>(request);
    if (simplify->root != nullptr)
        return Datum{0};

    const FuncExpr* call = simplify->fcall;
    const Oid twin = find_twin(call->funcid);
    // After REVOKE ... ON ALL FUNCTIONS IN SCHEMA, a GRANT on the original is enough.
    if (!OidIsValid(twin) || !may_execute(twin))
        return Datum{0};
    Const* original = makeConst(INTERNALOID, -1, InvalidOid, sizeof(Datum),
                                ObjectIdGetDatum(call->funcid), false, true);
    PG_RETURN_POINTER(makeFuncExpr(twin, call->funcresulttype, lappend(NIL, original),
                                   call->funccollid, call->inputcollid, call->funcformat));
}

void require_original(FunctionCallInfo fcinfo) {
    FmgrInfo* call_site = fcinfo->flinfo;
    if (likely(call_site->fn_extra != nullptr))
        return;
    const Oid original = DatumGetObjectId(PG_GETARG_DATUM(0));
    if (!may_execute(original))
        aclcheck_error(ACLCHECK_NO_PRIV, OBJECT_FUNCTION, get_func_name(original));
    // Checks the privileges of a call once, like the executor. Any value but null marks the check.
    call_site->fn_extra = call_site;
}
