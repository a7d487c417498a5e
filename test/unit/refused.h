// Lists the reasons why a server can give no number for the present second. The simulation's judge,
// which knows all states, clocks and grants, names the cause after a session has tried everything.
// kOther means that there is no cause, which is a violation. For the causes from kUsedUp to kTaken,
// no server could give a number. For all causes after kTaken, a number was possible, but only for a
// server that knew everything. If the cause is kLostInAFailure or a later one, the server has lost
// a lease or a renewal.

#pragma once

#include <cstddef>
#include <cstdint>

namespace randflake::simulation {

// clang-format off
#define RANDFLAKE_REFUSED(CAUSE)                                                                   \
    CAUSE(kOther, "other") CAUSE(kUsedUp, "used up") CAUSE(kNoTime, "out of time")                  \
    CAUSE(kNoLease, "no lease") CAUSE(kTaken, "taken by another") CAUSE(kClock, "clock set back")   \
    CAUSE(kAhead, "written ahead") CAUSE(kHoldOff, "held off") CAUSE(kLook, "not looked")           \
    CAUSE(kSecrets, "other secrets") CAUSE(kDisk, "failed disk") CAUSE(kWorker, "worker not ready") \
    CAUSE(kLostInAFailure, "lost in a failure") CAUSE(kLostDirectory, "lost directory")             \
    CAUSE(kLostBoot, "lost boot") CAUSE(kLostMarker, "lost marker") CAUSE(kLostLock, "lost lock")   \
    CAUSE(kLostWrite, "lost to another write") CAUSE(kLostNodes, "other node count")                \
    CAUSE(kLostRing, "other ring") CAUSE(kLostStruck, "struck") CAUSE(kLostRefused, "refused")
// clang-format on

#define RANDFLAKE_NAME(name, text) name,
#define RANDFLAKE_TEXT(name, text) text,
enum class Refused : uint8_t { RANDFLAKE_REFUSED(RANDFLAKE_NAME) };
inline constexpr const char* kRefused[] = {RANDFLAKE_REFUSED(RANDFLAKE_TEXT)};
inline constexpr size_t kCauses = sizeof kRefused / sizeof *kRefused;

}  // namespace randflake::simulation
