// The model of managed/randflake.sql: how sessions give out numbers that four sequences keep. The
// SQL's head comment says why it holds. Each access to a sequence or to the clock is a step of its
// own, and sessions interleave in every order: sequence_server_test.cpp. sequence_trace.cpp prints
// what a session alone must do, for test/t/432_managed_numbers.pl.

#ifndef RANDFLAKE_UNIT_SEQUENCE_SERVER_H
#define RANDFLAKE_UNIT_SEQUENCE_SERVER_H

#include <algorithm>
#include <cstdint>
#include <optional>

namespace randflake::sequence_server {

struct Limits {
    int64_t numbers;   // of a second, 0 to numbers - 1
    int64_t limit;     // no number is taken from the limit on
    int64_t unproven;  // a second this far ahead of the clock needs no proof
    int64_t first;     // the first second after a start is this far ahead, at least
    int64_t ahead;     // how far ahead of the clock a second may be opened and used, at most
    int64_t parts;     // of a second, and nextvals of a leap, more than a crash skips
    int64_t leaps[2];  // seconds by which `hops` and `leaps` move the position
};

inline constexpr Limits kManaged{131072, 122880, 2, 4, 60, 64, {512, 262144}};
// A server that goes on for another, whose last positions it may lack.
inline constexpr Limits kTakesOver{131072, 122880, 2, 64, 60, 64, {512, 262144}};

// The sequence `numbers`. A life of 0 is no server's.
struct Numbers {
    int64_t life = 0;
    int64_t value = 0;  // second * limits.numbers + n

    friend auto operator<=>(const Numbers&, const Numbers&) = default;
};

// The sequences whose sum is a position, in parts of a second.
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

enum class Step { kTake, kWait, kOpen };

struct Decision {
    Step step;
    int64_t wanted = 0;  // with kOpen: the second to hold, beyond the position
    int64_t goal = 0;    // and the one to hold first, to leap from there
};

// Whether a number of that second may be used by this clock.
constexpr bool Usable(const Limits& limits, int64_t life, int64_t now, const Numbers& numbers) {
    const int64_t second = numbers.value / limits.numbers;
    return numbers.life == life && second >= now && second <= now + limits.ahead;
}

// What a session does that sees this, in a call that began earlier. With patience it waits for the
// holder of a second.
constexpr Decision Decide(const Limits& limits, int64_t life, int64_t began, int64_t now,
                          const Numbers& numbers, int64_t position, bool patient) {
    const int64_t second = numbers.value / limits.numbers, n = numbers.value % limits.numbers;
    if (Usable(limits, life, now, numbers) && n < limits.limit)
        return {Step::kTake};
    const bool started = numbers.life == life && second != 0;
    const int64_t held = position / limits.parts;
    int64_t wanted = std::max(started ? second + 1 : began + limits.first, now);
    if (held >= wanted && !patient)
        wanted = held + 1;
    const bool far = wanted - held > limits.leaps[0];
    if (held >= wanted || wanted > now + limits.ahead ||
        (far && position % limits.parts != 0 && patient))
        return {Step::kWait};
    return {Step::kOpen, wanted, far ? held + 1 : wanted};
}

// Which of `hops` and `leaps` the holder of a second that has passed moves next: 1, 0 or neither,
// -1.
constexpr int Leap(const Limits& limits, const Position& position, int64_t wanted) {
    for (const int which : {1, 0})
        if (position.At(limits) + limits.leaps[which] * limits.parts <= wanted * limits.parts)
            return which;
    return -1;
}

}  // namespace randflake::sequence_server

#endif
