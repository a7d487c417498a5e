// What must hold, checked at run time where USE_ASSERT_CHECKING is defined: in the unit tests, and
// in a server that is built with it. Elsewhere nothing is computed.

#ifndef RANDFLAKE_CORE_BASE_ASSERT_H
#define RANDFLAKE_CORE_BASE_ASSERT_H

namespace randflake {

// A failure traps, unless a test has put a function here, which may return.
using AssertHandler = void (*)(const char* condition);
inline AssertHandler assert_handler = nullptr;

inline void AssertFailed(const char* condition) noexcept {
    if (assert_handler == nullptr)
        __builtin_trap();
    assert_handler(condition);
}

}  // namespace randflake

#ifdef USE_ASSERT_CHECKING
#define RANDFLAKE_ASSERT(condition) ((condition) ? void() : ::randflake::AssertFailed(#condition))
#else
#define RANDFLAKE_ASSERT(condition) (static_cast<void>(sizeof(!(condition))))
#endif

#endif
