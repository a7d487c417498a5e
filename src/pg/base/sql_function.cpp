// Checks the row type of a SQL function.

#include "pg/base/sql_function.h"

void require_columns(TupleDesc row, int columns) {
    if (row->natts != columns)
        ereport(ERROR,
                (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
                 errmsg("the extension's SQL objects do not fit its library"),
                 errdetail("The function returns %d columns; the library, version %s, fills %d.",
                           row->natts, RANDFLAKE_VERSION, columns),
                 errhint("Restart the server if its library was replaced, and run ALTER EXTENSION "
                         "randflake UPDATE.")));
}

TupleDesc result_row(FunctionCallInfo fcinfo, int columns, MemoryContext context) {
    const MemoryContext old = MemoryContextSwitchTo(context);
    TupleDesc row;
    if (get_call_result_type(fcinfo, nullptr, &row) != TYPEFUNC_COMPOSITE)
        elog(ERROR, "return type must be a row type");
    require_columns(row, columns);
    row = BlessTupleDesc(row);
    MemoryContextSwitchTo(old);
    return row;
}
