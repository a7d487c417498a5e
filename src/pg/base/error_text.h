// Describes an error as data, so that a call can raise it and a view can show it in advance.

#pragma once

#include "pg/base/pg.h"

// The texts are constants or palloc'd. `detail` and `hint` may be null.
struct ErrorText {
    int sqlstate;
    const char* message;
    const char* detail;
    const char* hint;
};

[[noreturn]] static inline void raise_error(const ErrorText& error) {
    ereport(ERROR, (errcode(error.sqlstate), errmsg("%s", error.message),
                    error.detail != nullptr ? errdetail("%s", error.detail) : 0,
                    error.hint != nullptr ? errhint("%s", error.hint) : 0));
    pg_unreachable();
}
