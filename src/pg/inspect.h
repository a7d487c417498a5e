// Times as arguments.

#ifndef RANDFLAKE_PG_INSPECT_H
#define RANDFLAKE_PG_INSPECT_H

#include "pg/pg.h"

// The second of an identifier that a time lies in; an ERROR with this SQLSTATE when there is none.
uint64 second_of_timestamp(TimestampTz time, int sqlstate);

#endif
