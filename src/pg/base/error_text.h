// Describes an error as data, so that a call can raise it and a view can show it in advance.

#pragma once

#include "pg/base/pg.h"

// The texts are constants or palloc'd. `detail` and `hint` may be null.
struct ErrorText {
    int sqlstate;  // 0: only for views
    const char* message;
    const char* detail;
    const char* hint;
};

[[noreturn]] static inline void raise_error(const ErrorText& error) {
    Assert(error.sqlstate != 0);
    ereport(ERROR, (errcode(error.sqlstate), errmsg("%s", error.message),
                    error.detail != nullptr ? errdetail("%s", error.detail) : 0,
                    error.hint != nullptr ? errhint("%s", error.hint) : 0));
    pg_unreachable();
}
