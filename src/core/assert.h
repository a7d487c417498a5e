// What must hold, checked at run time where USE_ASSERT_CHECKING is defined: in the unit tests, and
// in a server that is built with it. Elsewhere nothing is computed. A failure traps.

#ifndef RANDFLAKE_CORE_ASSERT_H
#define RANDFLAKE_CORE_ASSERT_H

#ifdef USE_ASSERT_CHECKING
#define RANDFLAKE_ASSERT(condition) ((condition) ? void() : __builtin_trap())
#else
#define RANDFLAKE_ASSERT(condition) (static_cast<void>(sizeof(!(condition))))
#endif

#endif
