// Reads all rows of a table without SQL.

#pragma once

#include "pg/base/pg.h"

// Calls `use(row, columns)` for each row. Uses a catalog snapshot.
template <typename Use> static void for_each_row(Oid table, Use&& use) {
    Assert(IsTransactionState());
    Relation relation = table_open(table, AccessShareLock);
    SysScanDesc scan = systable_beginscan(relation, InvalidOid, false, nullptr, 0, nullptr);
    HeapTuple row;
    while (HeapTupleIsValid(row = systable_getnext(scan))) use(row, RelationGetDescr(relation));
    systable_endscan(scan);
    table_close(relation, AccessShareLock);
}
