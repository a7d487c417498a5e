// Runs random schedules of three sessions. A second has eight numbers. No number may be used twice,
// and no second may be opened twice. Sessions pause and end at any point. Servers crash, and
// standbys that lack WAL are promoted. Node ids move to servers whose sequences were lost or
// restored from an older state.

#include "sequence_server.h"
#include "test.h"

namespace randflake::sequence_server {
namespace {

constexpr int kSessions = 3, kSeconds = 8;

// With `proof`, a session flushes the position before it opens a second, and the clock may show any
// time. Without `proof`, or when servers take over, the clock never goes back.
struct Rules {
    Limits limits{8, 5, 1, 2, kSeconds, 2, {1, 2}};
    bool proof = true;
    std::optional<Limits> takes_over;
    int64_t configured = 0;        // with takes_over: how far ahead configure begins
    bool ticket_twice = false;     // tickets are read and then written, without nextval
    bool any_part = false;         // any ticket opens its second
    bool unconfirmed = false;      // leaps are not read again
    bool numbers_survive = false;  // a crash restores `numbers` as logged, in the new life
    bool same_life = false;        // a clean restart restores `numbers` as logged, in the new life
    bool set_back = false;         // a tool sets the position back, and no crash follows
    bool open_by_clock = false;    // sets `numbers` to the clock's second, not the ticket's
};

struct Session {
    int at = 0;  // the next step
    int64_t began = -1, now = 0, wanted = 0, goal = 0, got = 0, leapt = 0;
    Position seen_position;
    Numbers seen;

    void LookAgain() {
        const int64_t call = began;
        *this = {};
        began = call;
    }
};

// Simulates one server with its sessions. The seed decides the order of all steps.
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
            else if (kind < 17)
                Restart();
            else if (kind < 18)
                TakeOver();
            else if (kind < 20)
                paused_ = Random(kSessions + 1);
            else if (kind < 21)
                Leap(Random(2));
            else if (kind < 22)
                SetBack();
            else if (const int session = Random(kSessions); session != paused_)
                Advance(sessions_[session]);
        }
    }

private:
    int Random(int below) { return static_cast<int>(random_() % static_cast<uint64_t>(below)); }

    void Restart() {
        const bool crash = Random(2) == 0 && !was_set_back_, logged = Random(2) == 0;
        const bool promotion = rules_.takes_over && Random(4) == 0 && !was_set_back_;
        const Numbers left{life_ + 1,
                           numbers_.value / rules_.limits.numbers * rules_.limits.numbers};
        for (Session& session : sessions_) session = {};
        life_++;
        restarts++;
        if (promotion) {
            position_ = durable_ = logged_ = received_;
            numbers_ = {};
            opened_ = 0;
            limits_ = *rules_.takes_over;
        } else if (crash) {
            position_ = durable_ = logged_ = logged ? logged_ : durable_;
            numbers_ = rules_.numbers_survive ? left : Numbers{};
        } else if (rules_.same_life) {
            numbers_ = left;
        }
    }

    // No session opens a second meanwhile. `numbers` is not logged, so the tool leaves it alone. If
    // a crash has just set `numbers` to 0, nothing shows that the position was set back.
    void SetBack() {
        if (!rules_.set_back || numbers_.value == 0) return;
        if (Random(2) == 0) {
            backup_ = position_;
            return;
        }
        position_ = logged_ = durable_ = received_ = backup_;
        for (Session& session : sessions_) session = {};
        was_set_back_ = true;
    }

    void TakeOver() {
        if (!rules_.takes_over) return;
        const int kind = Random(4);
        if (kind == 0) {
            backup_ = position_;
            return;
        }
        position_ = kind == 1 ? position_ : kind == 2 ? backup_ : Position{};
        position_.tickets += std::max<int64_t>(
            (clock_ + rules_.configured) * limits_.parts - 1 - position_.At(limits_), 0);
        durable_ = logged_ = received_ = position_;
        numbers_ = {};
        for (Session& session : sessions_) session = {};
        life_ += Random(2);
        opened_ = 0;
        limits_ = rules_.limits;
    }

    // Like PostgreSQL's nextval, logs a value beyond the returned value.
    static int64_t Nextval(int64_t& value, int64_t& logged) {
        if (++value > logged) logged = value + 1;
        return value;
    }

    void Leap(int which) { Nextval(position_.leaps[which], logged_.leaps[which]); }

    int64_t Clock() { return rules_.proof && !rules_.takes_over ? Random(kSeconds) : clock_; }

    void Advance(Session& self) {
        const Limits& limits = limits_;
        switch (self.at) {
            case 0:
                self.LookAgain();
                self.at = 1;
                self.now = Clock();
                if (self.began < 0) self.began = self.now;
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
                const Decision decision = Decide(limits, life_, self.began, self.now, self.seen,
                                                 position_.At(limits), Random(4) != 0);
                self.wanted = decision.wanted;
                self.goal = decision.goal * limits.parts;
                self.at = 10;
                if (decision.step != Step::kOpen || decision.wanted >= kSeconds) self.LookAgain();
                return;
            }
            case 10:
            case 11:  // `hops`, then `leaps`
                self.seen_position.leaps[self.at - 10] = position_.leaps[self.at - 10];
                self.at++;
                return;
            case 12:  // look before each ticket
                self.leapt = self.seen_position.Leapt(limits);
                if (position_.At(limits) < self.goal)
                    self.at = 13;
                else
                    self.at = self.got != 0 ? 14 : 0;
                if (rules_.ticket_twice) self.seen_position.tickets = position_.tickets + 1;
                return;
            case 13:
                if (rules_.ticket_twice)
                    logged_.tickets = position_.tickets = self.seen_position.tickets;
                else
                    self.seen_position.tickets = Nextval(position_.tickets, logged_.tickets);
                self.got = self.seen_position.tickets + self.leapt;
                self.at = 12;
                return;
            case 14:
            case 15:
                if (!rules_.unconfirmed)
                    self.seen_position.leaps[self.at - 14] = position_.leaps[self.at - 14];
                self.at++;
                return;
            case 16:
                if (self.seen_position.Leapt(limits) != self.leapt ||
                    (self.got % limits.parts != 0 && !rules_.any_part)) {
                    self.LookAgain();
                    return;
                }
                self.got /= limits.parts;
                self.at = self.got < self.wanted ? 17 : 6;
                return;
            case 17: {  // look before each leap
                const int which = sequence_server::Leap(limits, position_, self.wanted);
                self.at = 18 + which;
                if (which < 0) self.LookAgain();
                return;
            }
            case 18:
            case 19:
                Leap(self.at - 18);
                self.at = 17;
                return;
            case 6:  // the proof, or a clock that is close enough
                if (rules_.open_by_clock) self.got = std::max<int64_t>(self.now, 1);
                if (rules_.proof)
                    durable_ = logged_;
                else if (self.got > clock_ + limits.unproven)
                    return;
                self.at = 7;
                return;
            case 7:  // never sets `numbers` back knowingly
                if (numbers_.life == life_ && numbers_.value >= self.got * limits.numbers)
                    self.LookAgain();
                else
                    self.at = 8;
                return;
            default:
                numbers_ = {life_, self.got * limits.numbers};
                repeated |= (opened_ >> self.got & 1) != 0;
                opened_ |= uint64_t{1} << self.got;
                self.LookAgain();
        }
    }

    Rules rules_;
    Limits limits_ = rules_.limits;
    std::mt19937_64 random_;
    Session sessions_[kSessions];
    int paused_ = kSessions;
    Numbers numbers_;
    Position position_, logged_, durable_, received_, backup_;
    uint64_t opened_ = 0;  // a bit per second opened since the sequences were lost
    int64_t clock_ = 0, life_ = 1;
    bool was_set_back_ = false;
};

constexpr int kSchedules = 20000, kSteps = 600;

// Counts the schedules that use a number or second twice. With `kept`, also checks the coverage.
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
        // Sessions use every number that is not in this mask, even in the margin after the limit.
        EXPECT_EQ(used | 0x0101'0101'0181'ffffU, ~uint64_t{0});
    }
    return found;
}

// Makes each successor begin at a second that its predecessor cannot have opened.
void TakesOver(Rules& rules) {
    rules.limits.ahead = 2;
    rules.takes_over = rules.limits;
    rules.takes_over->first = rules.configured = 3;
}

TEST(SequenceServer, UsesNoNumberTwice) {
    for (const bool proof : {true, false})
        for (const bool takes_over : {false, true}) {
            Rules rules;
            rules.proof = proof;
            if (takes_over) TakesOver(rules);
            EXPECT_EQ(Repetitions(rules, true), 0);
        }
}

TEST(SequenceServer, NoticesAPositionThatWasSetBack) {
    Rules rules;
    rules.set_back = true;
    EXPECT_EQ(Repetitions(rules), 0);
}

TEST(SequenceServerBroken, EachIsFound) {
    const auto finds = [](auto&& breaks, bool proof, bool takes_over = false) {
        Rules rules;
        rules.proof = proof;
        if (takes_over) TakesOver(rules);
        breaks(rules);
        return Repetitions(rules) > 0;
    };
    EXPECT_TRUE(finds([](Rules& r) { r.ticket_twice = true; }, true));
    EXPECT_TRUE(finds([](Rules& r) { r.any_part = true; }, true));
    EXPECT_TRUE(finds([](Rules& r) { r.limits.parts = 1, r.unconfirmed = true; }, true));
    EXPECT_TRUE(finds([](Rules& r) { r.open_by_clock = true; }, true));
    // Three sessions need one number more than the margin has.
    EXPECT_TRUE(finds([](Rules& r) { r.limits.limit++; }, true));
    // After a start, the first second must be later than every second that needs no proof.
    EXPECT_TRUE(finds([](Rules& r) { r.limits.first = r.limits.unproven; }, false));
    EXPECT_TRUE(finds([](Rules& r) { r.limits.unproven = r.limits.first; }, false));
    EXPECT_TRUE(finds([](Rules& r) { r.numbers_survive = true; }, true));
    EXPECT_TRUE(finds([](Rules& r) { r.same_life = true; }, true));
    EXPECT_TRUE(finds([](Rules& r) { r.set_back = true, r.limits.notices = false; }, true));
    EXPECT_TRUE(finds([](Rules& r) { r.takes_over->first = r.limits.ahead; }, true, true));
    EXPECT_TRUE(finds([](Rules& r) { r.configured = r.limits.ahead; }, true, true));
    EXPECT_TRUE(finds([](Rules& r) { r.limits.ahead++; }, true, true));
}

}  // namespace
}  // namespace randflake::sequence_server
