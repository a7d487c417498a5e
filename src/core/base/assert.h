// Defines assertions. Only unit tests and servers built with USE_ASSERT_CHECKING evaluate them.

#pragma once

namespace randflake {

// A failed assertion traps, unless a test has set this handler. The handler may return.
using AssertHandler = void (*)(const char* condition);
inline AssertHandler assert_handler = nullptr;

inline void AssertFailed(const char* condition) noexcept {
    if (assert_handler == nullptr) __builtin_trap();
    assert_handler(condition);
}

}  // namespace randflake

#ifdef USE_ASSERT_CHECKING
#define RANDFLAKE_ASSERT(condition) ((condition) ? void() : ::randflake::AssertFailed(#condition))
#else
#define RANDFLAKE_ASSERT(condition) (static_cast<void>(sizeof(!(condition))))
#endif
