// The row that a SQL function returns, checked against what the library fills in.
//
// Library and SQL objects are updated by different hands: one by installing a package, the other by
// ALTER EXTENSION in each database. A row of another width would be filled with wild values.

#ifndef RANDFLAKE_PG_BASE_RESULT_ROW_H
#define RANDFLAKE_PG_BASE_RESULT_ROW_H

#include "pg/base/pg.h"

// The blessed descriptor of the row that the function returns, in this memory context; ERROR unless
// it has that many columns.
TupleDesc result_row(FunctionCallInfo fcinfo, int columns, MemoryContext context);

// The same for a function that has called InitMaterializedSRF.
void require_columns(TupleDesc row, int columns);

#endif
