// Prints what the model of managed/randflake.sql does in many states, a line each, for
// test/t/432_managed_numbers.pl: the second and n of `numbers` and the value of `tickets` before,
// seconds counted from the clock's; then what a session alone does: wait, or take a number and
// leave `tickets` so. With an argument, the server was promoted.

#include <cstdio>

#include "sequence_server.h"

using namespace randflake::sequence_server;

int main(int argc, char**) {
    const Limits& limits = argc > 1 ? kPromoted : kManaged;
    constexpr int64_t kNow = 100000, kLife = 1;
    for (const int64_t second : {-kNow, int64_t{-90}, int64_t{-1}, int64_t{0}, int64_t{30},
                                 int64_t{59}, int64_t{60}, int64_t{3500}})
        for (const int64_t n : {0, 7, 122878, 122879, 122880, 131071})
            for (const int64_t ahead : {-1000, -1, 0, 3, 33, 61, 3599}) {
                if (argc > 1 && n != 7 && n != 122880)
                    continue;
                Numbers numbers{kLife, (kNow + second) * limits.numbers + n};
                int64_t tickets = kNow + ahead;
                std::printf("%lld %lld %lld ", static_cast<long long>(second),
                            static_cast<long long>(n), static_cast<long long>(ahead));
                Decision decision = Decide(limits, kLife, kNow, kNow, numbers, tickets, true);
                if (decision.step == Step::kWait)
                    decision = Decide(limits, kLife, kNow, kNow, numbers, tickets, false);
                if (decision.step == Step::kOpen) {
                    tickets = decision.wanted;
                    numbers.value = std::max(numbers.value, tickets * limits.numbers);
                }
                numbers.value++;
                if (decision.step == Step::kWait || !Usable(limits, kLife, kNow, numbers))
                    std::puts("wait");
                else
                    std::printf("%lld %lld %lld\n",
                                static_cast<long long>(numbers.value / limits.numbers - kNow),
                                static_cast<long long>(numbers.value % limits.numbers),
                                static_cast<long long>(tickets - kNow));
            }
}
