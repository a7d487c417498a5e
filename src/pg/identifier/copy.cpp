// Lets COPY FROM insert many rows at once although a column default makes identifiers, and so the
// initial copy of a table in logical replication.
//
// COPY inserts one row at a time when a default is volatile, with one exemption, nextval(): a
// volatile function might read the table that is being filled. Ours read no table. So they have
// twins, which run the same code and are marked STABLE, and a planner support function replaces a
// call by its twin's in the defaults of COPY.
//
// Elsewhere a twin would be wrong. ALTER TABLE ADD COLUMN, for one, evaluates a default that is not
// volatile once for all rows. So a call is replaced only while
//
//   - the innermost utility statement is COPY FROM, or there is none in a worker of logical
//     replication, which makes the initial copy of a table without a statement. Statements of
//     triggers pass ProcessUtility_hook themselves, which puts the outer state back also after an
//     error; and
//   - there is no planner state: COPY plans a bare expression, and queries of triggers have one.
//
// What else is planned so is evaluated for each row: COPY's WHERE clause, conditions of triggers,
// CHECK constraints of tables and domains, defaults in rows that logical replication applies.
//
// Users cannot call a twin: it takes an argument of type internal, and SQL has no value of that
// type. The argument is the Oid of the original, whose EXECUTE privilege counts. The twin of f() is
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

// InvalidOid when there is none. Unlike a look-up by name in a statement, this needs no privilege
// on the schema: neither does a default.
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
    // Privileges of a call are checked once, as by the executor. Only null is told from the rest.
    call_site->fn_extra = call_site;
}
