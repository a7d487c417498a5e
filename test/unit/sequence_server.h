// Models managed/randflake.sql, where sessions give out numbers from four sequences. The head
// comment of that script contains the proof. Each access to a sequence or the clock is one step,
// and sequence_server_test.cpp runs the sessions' steps in random order.

#pragma once

#include "standard.h"

namespace randflake::sequence_server {

struct Limits {
    int64_t numbers;      // numbers in a second: 0 to numbers - 1
    int64_t limit;        // sessions take no number from this one on
    int64_t unproven;     // a second at most this far ahead of the clock needs no proof
    int64_t first;        // after a start, the first second is at least this far ahead
    int64_t ahead;        // a second is opened and used at most this far ahead
    int64_t parts;        // parts of a second, and nextvals in a leap: more than a crash skips
    int64_t leaps[2];     // seconds by which `hops` and `leaps` move the position
    bool notices = true;  // refuses if the position is behind `numbers`
};

inline constexpr Limits kManaged{131072, 122880, 2, 4, 60, 64, {512, 262144}};
// A server that takes over has these limits, because it may lack the former server's positions.
inline constexpr Limits kTakesOver{131072, 122880, 2, 64, 60, 64, {512, 262144}};

// Models the sequence `numbers`. Each run of a server has a new life number. The first is 1.
struct Numbers {
    int64_t life = 0;
    int64_t value = 0;  // second * limits.numbers + n

    friend auto operator<=>(const Numbers&, const Numbers&) = default;
};

// Models the sequences `tickets`, `hops` and `leaps`. Their sum is a time in 64ths of a second.
struct Position {
    int64_t tickets = 0;
    int64_t leaps[2] = {0, 0};  // `hops` and `leaps`

    constexpr int64_t Leapt(const Limits& limits) const {
        return (leaps[0] / limits.parts * limits.leaps[0] +
                leaps[1] / limits.parts * limits.leaps[1]) *
               limits.parts;
    }
    constexpr int64_t At(const Limits& limits) const { return tickets + Leapt(limits); }
};

enum class Step { kTake, kWait, kOpen, kRefuse };

struct Decision {
    Step step;
    int64_t wanted = 0;  // with kOpen: the second to hold, beyond the position
    int64_t goal = 0;    // with kOpen: the second to hold before a leap
};

constexpr bool Usable(const Limits& limits, int64_t life, int64_t now, const Numbers& numbers) {
    const int64_t second = numbers.value / limits.numbers;
    return numbers.life == life && second >= now && second <= now + limits.ahead;
}

// Returns the next action of a session whose call began at second `began`. A patient session waits
// for another session that holds the wanted second.
constexpr Decision Decide(const Limits& limits, int64_t life, int64_t began, int64_t now,
                          const Numbers& numbers, int64_t position, bool patient) {
    const int64_t second = numbers.value / limits.numbers, n = numbers.value % limits.numbers;
    if (Usable(limits, life, now, numbers) && n < limits.limit) return {Step::kTake};
    const bool started = numbers.life == life && second != 0;
    const int64_t held = position / limits.parts;
    if (limits.notices && second > held)  // of any life: a tool set the position back
        return {Step::kRefuse};
    int64_t wanted = std::max(started ? second + 1 : began + limits.first, now);
    if (held >= wanted && !patient) wanted = held + 1;
    const bool far = wanted - held > limits.leaps[0];
    if (held >= wanted || wanted > now + limits.ahead ||
        (far && position % limits.parts != 0 && patient))
        return {Step::kWait};
    return {Step::kOpen, wanted, far ? held + 1 : wanted};
}

// Returns which sequence moves the position furthest without passing `wanted`: 0 for `hops`, 1 for
// `leaps`, or -1 if neither does.
constexpr int Leap(const Limits& limits, const Position& position, int64_t wanted) {
    for (const int which : {1, 0})
        if (position.At(limits) + limits.leaps[which] * limits.parts <= wanted * limits.parts)
            return which;
    return -1;
}

}  // namespace randflake::sequence_server
