// Random schedules of three sessions, at seconds of eight numbers, with pauses and cancels at any
// point, crashes, restarts, WAL that was not flushed or did not reach the standby that is promoted,
// and clocks that show anything. No number may be used twice.

#include "sequence_server.h"

#include <gtest/gtest.h>

#include <random>

namespace randflake::sequence_server {
namespace {

constexpr int kSessions = 3, kSeconds = 8;

// With the flush of a ticket proven, clocks show anything. Without, they do not go back, nor with
// standbys that are promoted.
struct Rules {
    Limits limits{8, 5, 1, 2, kSeconds, kSeconds, kSeconds};
    bool proof = true;
    std::optional<Limits> promoted;
    bool late_tickets = false;     // a ticket that came out later than wanted is used
    bool ticket_twice = false;     // read and then written, instead of nextval
    bool numbers_survive = false;  // a crash leaves `numbers` as it was logged, for this life
    bool same_life = false;        // a restart is not seen, and leaves what was logged
    bool open_by_clock = false;    // sets `numbers` to the clock's second, whatever the ticket
};

struct Session {
    int at = 0;  // the step that comes next
    int64_t began = -1, now = 0, tickets = 0, wanted = 0, got = 0;
    Numbers seen;

    void LookAgain() {
        const int64_t call = began;
        *this = {};
        began = call;
    }
};

// One server with its sessions, whose schedule a seed decides.
class Schedule {
public:
    Schedule(const Rules& rules, uint64_t seed) : rules_(rules), random_(seed) {}

    bool repeated = false;
    uint64_t used = 0;
    int restarts = 0;

    void Run(int steps) {
        while (steps-- > 0 && !repeated) {
            const int kind = Random(200);
            if (kind < 4)
                sessions_[Random(kSessions)] = {};  // cancelled
            else if (kind < 10)
                clock_ = std::min<int64_t>(clock_ + 1, kSeconds - 1);
            else if (kind < 14)
                durable_ = logged_;
            else if (kind < 16)
                received_ = durable_;
            else if (kind < 18)
                Restart();
            else if (kind < 20)
                paused_ = Random(kSessions + 1);
            else if (const int session = Random(kSessions); session != paused_)
                Advance(sessions_[session]);
        }
    }

private:
    int Random(int below) { return static_cast<int>(random_() % static_cast<uint64_t>(below)); }

    void Restart() {
        const bool crash = Random(2) == 0, logged = Random(2) == 0;
        const bool promotion = rules_.promoted && Random(4) == 0;
        const Numbers left{life_ + 1,
                           numbers_.value / rules_.limits.numbers * rules_.limits.numbers};
        for (Session& session : sessions_)
            session = {};
        life_++;
        restarts++;
        if (promotion) {
            tickets_ = durable_ = logged_ = received_;
            numbers_ = {};
            limits_ = *rules_.promoted;
        } else if (crash) {
            tickets_ = durable_ = logged_ = logged ? logged_ : durable_;
            numbers_ = rules_.numbers_survive ? left : Numbers{};
        } else if (rules_.same_life) {
            numbers_ = left;
        }
    }

    int64_t Clock() { return rules_.proof && !rules_.promoted ? Random(kSeconds) : clock_; }

    // The next step of a session.
    void Advance(Session& self) {
        const Limits& limits = limits_;
        switch (self.at) {
            case 0:
                self.LookAgain();
                self.at = 1;
                self.now = Clock();
                if (self.began < 0)
                    self.began = self.now;
                return;
            case 1:
                self.seen = numbers_;
                self.at = Decide(limits, life_, self.began, self.now, self.seen, 0, true).step ==
                                  Step::kTake
                              ? 2
                              : 3;
                return;
            case 2:  // nextval
                numbers_.value++;
                if (Usable(limits, life_, self.now, numbers_) && numbers_.value < 64) {
                    const uint64_t bit = uint64_t{1} << numbers_.value;
                    repeated |= (used & bit) != 0;
                    used |= bit;
                }
                self = {};
                return;
            case 3: {
                self.tickets = tickets_;
                const Decision decision = Decide(limits, life_, self.began, self.now, self.seen,
                                                 self.tickets, Random(4) != 0);
                self.wanted = decision.wanted;
                self.at = 4;
                if (decision.step != Step::kOpen || decision.wanted >= kSeconds)
                    self.LookAgain();
                return;
            }
            case 4:  // look before each ticket, as often as are wanted
                if (self.tickets++ == self.wanted)
                    self.at = self.got >= self.wanted ? 6 : 0;
                else if (tickets_ < self.wanted)
                    self.at = 5;
                if (rules_.ticket_twice)
                    self.got = tickets_ + 1;
                return;
            case 5:  // nextval, which logs one value more than it gives
                tickets_ = self.got = rules_.ticket_twice ? self.got : tickets_ + 1;
                if (tickets_ > logged_)
                    logged_ = tickets_ + 1;
                self.at = 4;
                return;
            case 6:  // the proof; or else the clock has come close
                if (!rules_.late_tickets && self.got > self.now + limits.start) {
                    self.LookAgain();
                    return;
                }
                if (rules_.open_by_clock)
                    self.got = std::max<int64_t>(self.now, 1);
                if (rules_.proof)
                    durable_ = logged_;
                else if (self.got > clock_ + limits.unproven && durable_ != logged_)
                    return;
                self.at = 7;
                return;
            case 7:  // `numbers` is not set back knowingly
                if (numbers_.life == life_ && numbers_.value >= self.got * limits.numbers)
                    self.LookAgain();
                else
                    self.at = 8;
                return;
            default:
                numbers_ = {life_, self.got * limits.numbers};
                self.LookAgain();
        }
    }

    Rules rules_;
    Limits limits_ = rules_.limits;
    std::mt19937_64 random_;
    Session sessions_[kSessions];
    int paused_ = kSessions;
    Numbers numbers_;
    int64_t tickets_ = 0, logged_ = 0, durable_ = 0, received_ = 0;
    int64_t clock_ = 0, life_ = 1;
};

constexpr int kSchedules = 20000, kSteps = 600;

// How many schedules use a number twice; with the rules kept, they also reach what they must.
int Repetitions(const Rules& rules, bool kept = false) {
    int found = 0, restarts = 0;
    uint64_t used = 0;
    for (int seed = 0; seed < kSchedules && (kept || found == 0); seed++) {
        Schedule schedule(rules, static_cast<uint64_t>(seed));
        schedule.Run(kSteps);
        found += schedule.repeated;
        restarts += schedule.restarts;
        used |= schedule.used;
    }
    if (kept) {
        EXPECT_GT(restarts, 2 * kSchedules);
        // All of the margin, in every second but the first two.
        EXPECT_EQ(used | 0x0101'0101'0181'ffffU, ~uint64_t{0});
    }
    return found;
}

// A promoted server starts beyond all that its primary may have opened.
void Promotes(Rules& rules) {
    rules.limits.start = rules.limits.burst = 2;
    rules.promoted = rules.limits;
    rules.promoted->first = 3;
}

TEST(SequenceServer, UsesNoNumberTwice) {
    for (const bool proof : {true, false})
        for (const bool promotes : {false, true}) {
            Rules rules;
            rules.proof = proof;
            if (promotes)
                Promotes(rules);
            EXPECT_EQ(Repetitions(rules, true), 0);
        }
}

TEST(SequenceServerBroken, EachIsFound) {
    const auto finds = [](auto&& breaks, bool proof, bool promotes = false) {
        Rules rules;
        rules.proof = proof;
        if (promotes)
            Promotes(rules);
        breaks(rules);
        return Repetitions(rules) > 0;
    };
    EXPECT_TRUE(finds([](Rules& r) { r.ticket_twice = true; }, true));
    EXPECT_TRUE(finds([](Rules& r) { r.open_by_clock = true; }, true));
    // One number less than three sessions need.
    EXPECT_TRUE(finds([](Rules& r) { r.limits.limit++; }, true));
    // The hold-off, and what it is compared with.
    EXPECT_TRUE(finds([](Rules& r) { r.limits.first = r.limits.unproven; }, false));
    EXPECT_TRUE(finds([](Rules& r) { r.limits.unproven = r.limits.first; }, false));
    EXPECT_TRUE(finds([](Rules& r) { r.numbers_survive = true; }, true));
    EXPECT_TRUE(finds([](Rules& r) { r.same_life = true; }, true));
    // Each limit of what a standby may lack.
    EXPECT_TRUE(finds([](Rules& r) { r.promoted->first = r.limits.start; }, true, true));
    EXPECT_TRUE(finds([](Rules& r) { r.limits.start = kSeconds; }, true, true));
    EXPECT_TRUE(finds([](Rules& r) { r.late_tickets = true; }, true, true));
}

}  // namespace
}  // namespace randflake::sequence_server
