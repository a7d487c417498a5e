// Assertions of the core: what a function takes and what it leaves. Active in unit tests and in a
// library that is built with PostgreSQL's assertions; a condition is not evaluated elsewhere.

#ifndef RANDFLAKE_CORE_ASSERT_H
#define RANDFLAKE_CORE_ASSERT_H

namespace randflake {

// Does not return. Tests may put another function in place of the one that aborts.
using AssertHandler = void (*)(const char* condition, const char* file, int line);
extern AssertHandler assert_handler;

}  // namespace randflake

#if defined(USE_ASSERT_CHECKING) || defined(RANDFLAKE_UNIT_TESTS)
#define RANDFLAKE_ASSERT(condition)                    \
    (__builtin_expect(static_cast<bool>(condition), 1) \
         ? static_cast<void>(0)                        \
         : ::randflake::assert_handler(#condition, __FILE__, __LINE__))
#else
#define RANDFLAKE_ASSERT(condition) static_cast<void>(sizeof(static_cast<bool>(condition)))
#endif

#endif
