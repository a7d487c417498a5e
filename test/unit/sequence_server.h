// The model of managed/randflake.sql: how sessions give out numbers that two sequences keep. The
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
    int64_t numbers;    // of a second, 0 to numbers - 1
    int64_t limit;      // no number is taken from the limit on
    int64_t unproven;   // a second this far ahead of the clock needs no proof
    int64_t first;      // the first second after a start is this far ahead, at least
    int64_t start;      // and at most
    int64_t burst;      // how far ahead a second is opened because that before is used up
    int64_t tolerated;  // how far ahead a number may be used
};

inline constexpr Limits kManaged{131072, 122880, 2, 4, 3600, 60, 3600};
// A server that goes on for another, whose last tickets it may lack.
inline constexpr Limits kPromoted{131072, 122880, 2, 64, 60, 60, 3600};

// The sequence `numbers`. A life of 0 is no server's.
struct Numbers {
    int64_t life = 0;
    int64_t value = 0;  // second * limits.numbers + n

    friend auto operator<=>(const Numbers&, const Numbers&) = default;
};

enum class Step { kTake, kWait, kOpen };

struct Decision {
    Step step;
    int64_t wanted = 0;  // with kOpen: the ticket to take, which is greater than `tickets`
};

// Whether a number of that second may be used by this clock.
constexpr bool Usable(const Limits& limits, int64_t life, int64_t now, const Numbers& numbers) {
    const int64_t second = numbers.value / limits.numbers;
    return numbers.life == life && second >= now && second <= now + limits.tolerated;
}

// What a session does that sees this, in a call that began earlier. With patience it waits for the
// holder of a ticket.
constexpr Decision Decide(const Limits& limits, int64_t life, int64_t began, int64_t now,
                          const Numbers& numbers, int64_t tickets, bool patient) {
    const int64_t second = numbers.value / limits.numbers, n = numbers.value % limits.numbers;
    if (Usable(limits, life, now, numbers) && n < limits.limit)
        return {Step::kTake};
    const bool started = numbers.life == life && second != 0;
    int64_t wanted = std::max(started ? second + 1 : began + limits.first, now);
    if (tickets >= wanted && !patient)
        wanted = tickets + 1;
    if (tickets >= wanted || wanted > now + (started ? limits.burst : limits.start))
        return {Step::kWait};
    return {Step::kOpen, wanted};
}

}  // namespace randflake::sequence_server

#endif
