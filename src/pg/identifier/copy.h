// Column defaults of COPY FROM.

#ifndef RANDFLAKE_PG_IDENTIFIER_COPY_H
#define RANDFLAKE_PG_IDENTIFIER_COPY_H

#include "pg/base/pg.h"

#include "pg/base/sql_function.h"

// To be called when the server preloads the library.
void copy_init();

// Raises an ERROR unless the current role may execute the function that a twin stands for.
void require_original(FunctionCallInfo fcinfo);

// Defines the twin of a SQL function without arguments; see copy.cpp.
#define SQL_FUNCTION_IN_COPY(name)           \
    SQL_FUNCTION(name##_in_copy);            \
    Datum name##_in_copy(PG_FUNCTION_ARGS) { \
        require_original(fcinfo);            \
        return name(fcinfo);                 \
    }

#endif
