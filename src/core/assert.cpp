#include "core/assert.h"

#include <stdio.h>
#include <stdlib.h>

namespace randflake {

static void Abort(const char* condition, const char* file, int line) {
    (void)fprintf(stderr, "randflake: assertion failed: %s, %s:%d\n", condition, file, line);
    abort();
}

AssertHandler assert_handler = Abort;

}  // namespace randflake
