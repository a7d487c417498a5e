// Describes an error as data: a call raises the error, or a view shows it in advance.

#pragma once

#include "pg/base/pg.h"

// Constants or palloc'd; null without a detail or hint.
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
