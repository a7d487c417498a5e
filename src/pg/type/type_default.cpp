// Refuses a sequence as the default of a randflake column, because each number would be the
// identifier of an arbitrary second. A cast cannot see the column, so a hook checks defaults.

#include "pg/base/pg.h"

#include "pg/type/type.h"

static object_access_hook_type previous_object_access;

// The type may be in any schema, so this code identifies the type by its input function.
static bool is_randflake(Oid type) {
    const Oid base = getBaseType(type);
    const Oid element = get_element_type(base);
    Oid input;
    Oid ioparam;
    FmgrInfo function;
    getTypeInputInfo(OidIsValid(element) ? getBaseType(element) : base, &input, &ioparam);
    fmgr_info(input, &function);
    return function.fn_addr == randflake_in;
}

void refuse_sequence(const char* expression, Oid type) {
    if (strstr(expression, psprintf(":funcid %u ", F_NEXTVAL)) != nullptr && is_randflake(type))
        ereport(ERROR,
                (errcode(ERRCODE_INVALID_TABLE_DEFINITION),
                 errmsg("a number of a sequence cannot become an identifier"),
                 errdetail("It would be the identifier of an arbitrary second, in no order."),
                 errhint("Drop the column's default first, and set it to randflake_next() "
                         "when the column has the type.")));
}

static void check_default(Oid table, int column) {
    Assert(IsTransactionState() && column > 0);
    const Relation defaults = table_open(AttrDefaultRelationId, AccessShareLock);
    ScanKeyData keys[2];
    ScanKeyInit(&keys[0], Anum_pg_attrdef_adrelid, BTEqualStrategyNumber, F_OIDEQ,
                ObjectIdGetDatum(table));
    ScanKeyInit(&keys[1], Anum_pg_attrdef_adnum, BTEqualStrategyNumber, F_INT2EQ,
                Int16GetDatum(static_cast<int16>(column)));
    // Only SnapshotSelf sees a row that the current command made.
    const SysScanDesc scan =
        systable_beginscan(defaults, AttrDefaultIndexId, true, SnapshotSelf, 2, keys);
    const HeapTuple row = systable_getnext(scan);
    bool is_null = true;
    Datum stored{};
    if (HeapTupleIsValid(row))
        stored = heap_getattr(row, Anum_pg_attrdef_adbin, RelationGetDescr(defaults), &is_null);
    if (!is_null) {
        const char* expression = TextDatumGetCString(stored);
        refuse_sequence(expression, exprType(static_cast<Node*>(stringToNode(expression))));
    }
    systable_endscan(scan);
    table_close(defaults, AccessShareLock);
}

static void on_object_access(ObjectAccessType access, Oid catalog, Oid object, int column,
                             void* argument) {
    if (previous_object_access != nullptr)
        previous_object_access(access, catalog, object, column, argument);
    if (access == OAT_POST_CREATE && catalog == AttrDefaultRelationId)
        check_default(object, column);
}

void type_default_init() {
    previous_object_access = object_access_hook;
    object_access_hook = on_object_access;
}
