// Prints steps of the model of managed/randflake.sql for test/t/432_managed_numbers.pl. Each line
// begins with a state: the two parts of `numbers` (second and n), and the position. Each line ends
// with "wait", "back" for a position that was set back, or with the next state and the counts of
// values drawn from `tickets`, `hops` and `leaps`. Seconds and positions are relative to the
// present. With an argument, the modeled server takes over the node id from another server.

#include "sequence_server.h"

using namespace randflake::sequence_server;

// Moves the position as a session that runs alone would. Returns false if the session must wait.
static bool Open(const Limits& limits, int64_t life, int64_t now, Numbers& numbers,
                 Position& position) {
    for (bool patient = true;;) {
        const Decision decision =
            Decide(limits, life, now, now, numbers, position.At(limits), patient);
        if (decision.step == Step::kTake) return true;
        if (decision.step != Step::kOpen) {
            if (!patient || decision.step == Step::kRefuse) return false;
            patient = false;
            continue;
        }
        patient = true;
        position.tickets += decision.goal * limits.parts - position.At(limits);
        if (decision.goal == decision.wanted) {
            numbers.value = std::max(numbers.value, decision.goal * limits.numbers);
            continue;
        }
        position.tickets++;
        for (int which; (which = Leap(limits, position, decision.wanted)) >= 0;)
            position.leaps[which]++;
    }
}

int main(int argc, char**) {
    const Limits& limits = argc > 1 ? kTakesOver : kManaged;
    constexpr int64_t kNow = 100'000'000, kLife = 1, kYear = 366 * 86400 * 64;
    for (const int64_t second : {-kNow, int64_t{-90}, int64_t{-1}, int64_t{0}, int64_t{30},
                                 int64_t{59}, int64_t{60}, int64_t{61}})
        for (const int64_t n : {0, 7, 122878, 122879, 122880, 131071})
            for (const int64_t ahead :
                 {-kYear, int64_t{-5'000'003}, int64_t{-64000}, int64_t{-64}, int64_t{-1},
                  int64_t{0}, int64_t{200}, int64_t{33 * 64}, int64_t{61 * 64}, int64_t{79 * 64}}) {
                if (n != 7 && n != 122880 && (argc > 1 || ahead < -64)) continue;
                Numbers numbers{kLife, (kNow + second) * limits.numbers + n};
                Position position{kNow * limits.parts + ahead, {}};
                std::cout << second << ' ' << n << ' ' << ahead << ' ';
                const bool opened = Open(limits, kLife, kNow, numbers, position);
                if (Decide(limits, kLife, kNow, kNow, numbers, position.At(limits), true).step ==
                    Step::kRefuse) {
                    std::cout << "back\n";
                    continue;
                }
                numbers.value++;
                if (!opened || !Usable(limits, kLife, kNow, numbers))
                    std::cout << "wait\n";
                else
                    std::cout << numbers.value / limits.numbers - kNow << ' '
                              << numbers.value % limits.numbers << ' '
                              << position.At(limits) - kNow * limits.parts << ' '
                              << position.tickets - kNow * limits.parts - ahead << ' '
                              << position.leaps[0] << ' ' << position.leaps[1] << '\n';
            }
}
