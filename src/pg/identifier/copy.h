// Speeds up COPY FROM if column defaults make identifiers; see copy.cpp.

#pragma once

#include "pg/base/pg.h"

#include "pg/base/sql_function.h"

// Installs the hooks that track utility statements and loads. _PG_init calls this.
void copy_init();

// Raises an ERROR unless the current role may execute the function whose twin was called.
void require_original(FunctionCallInfo fcinfo);

// Defines the twin (see copy.cpp) of a SQL function without arguments.
#define SQL_FUNCTION_IN_COPY(name) \
    SQL_FUNCTION(name##_in_copy) { \
        require_original(fcinfo);  \
        return name(fcinfo);       \
    }
