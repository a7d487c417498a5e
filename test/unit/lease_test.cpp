#include "core/lease/lease_holder.h"
#include "core/lease/pool_look.h"
#include "printers.h"

namespace randflake {
namespace {

constexpr int64_t kEpoch = kWindowEpoch.count;
constexpr int64_t kBeyond = int64_t{1} << 30;  // the first second after those of identifiers

TEST(Lease, SecondsOutsideWhatIdentifiersHoldAreClamped) {
    // Each case has a Unix second minus the epoch, and what SecondOfUnix and EndOfUnix return.
    constexpr int64_t kMost = INT64_MAX - kEpoch, n = kBeyond;
    const std::array<int64_t, 3> cases[] = {
        {INT64_MIN, 0, 0}, {-1, 0, 0}, {0, 0, 1},     {1, 1, 2},     {n - 2, n - 2, n - 1},
        {n - 1, n - 1, n}, {n, n, n},  {n + 1, n, n}, {kMost, n, n},
    };
    for (const auto& [since_epoch, second, end] : cases) {
        const int64_t named = since_epoch == INT64_MIN ? INT64_MIN : kEpoch + since_epoch;
        EXPECT_EQ(SecondOfUnix(kRandflake, {named}), second) << named;
        EXPECT_EQ(EndOfUnix(kRandflake, {named}), end) << named;
    }
}

TEST(Lease, GrantsThatMakeNoSense) {
    constexpr int64_t k1 = kEpoch + 1, k60 = kEpoch + 60, kEnd = kEpoch + kBeyond;
    const auto usable = [](const LeaseGrant& grant, uint32_t slots) {
        return GrantUsable(kRandflake, grant, slots);
    };
    const LeaseGrant good[] = {
        {1, 0, 2, k1, k1}, {1, 131070, 2, k1, k60}, {1, 0, 2, kEnd - 1, kEnd}};
    for (const LeaseGrant& grant : good) EXPECT_TRUE(usable(grant, 2)) << grant.first_node_id;
    EXPECT_TRUE(usable({INT64_MAX, 0, 131072, k1, INT64_MAX}, 131072));
    EXPECT_FALSE(usable({1, 0, 131073, k1, k60}, 131073));
    // Each grant has one error: an impossible lease id, node id or number of node ids, an end
    // before the start, a start at second 0 or earlier, or a start after the last second.
    constexpr int64_t kMin = INT64_MIN, kMax = INT64_MAX;
    const LeaseGrant senseless[] = {
        {0, 0, 2, k1, k60},         {-1, 0, 2, k1, k60},    {1, 0, 3, k1, k60},
        {1, 0, 1, k1, k60},         {1, -1, 2, k1, k60},    {1, kMin, 2, k1, k60},
        {1, 131071, 2, k1, k60},    {1, kMax, 2, k1, k60},  {1, kMax - 1, 2, k1, k60},
        {1, 0, 2, k1 + 1, k1},      {1, 0, 2, kEpoch, k60}, {1, 0, 2, kMin, k60},
        {1, 0, 2, kEnd, kEnd + 60}, {1, 0, 2, kMax, kMax},
    };
    for (const LeaseGrant& grant : senseless)
        EXPECT_FALSE(usable(grant, 2)) << testing::PrintToString(grant);
}

TEST(Lease, AWindowOpensWithTheLeaseAndAfterWhatWasUsed) {
    Lease lease{};
    lease.start = {10};
    lease.end = {20};
    // Each case has the earliest second, the present, and the window's first second (0: no window).
    const std::array<uint32_t, 3> cases[] = {
        {0, 9, 0},    {0, 10, 10},  {0, 1000, 10}, {15, 14, 0},
        {15, 15, 15}, {12, 13, 12}, {20, 20, 0},   {30, 30, 0},
    };
    for (const auto& [earliest, now, opens] : cases) {
        const Window window = WindowOfLease({earliest}, lease, {now});
        EXPECT_EQ(window.closed(), opens == 0) << earliest << ' ' << now;
        EXPECT_TRUE(opens == 0 || window == (Window{opens, 20})) << earliest << ' ' << now;
    }
}

constexpr Incarnation kFirst{{1, 2}}, kSecond{{3, 4}};

constexpr Second kAnyEnd{INT32_MAX};

// Most tests request leases with these terms, which permit every lease of the tests.
constexpr LeaseTerms kAsked{1000, 0};

class Holder : public testing::Test {
protected:
    // Grants two node ids for [start, end), in seconds since the windows' epoch.
    LeaseOutcome Grant(int64_t id, int64_t start, int64_t end, int64_t now,
                       const LeaseTerms& asked = kAsked) {
        return holder.Granted(kRandflake, 2, {id, 10 * id, 2, kEpoch + start, kEpoch + end - 1},
                              asked, {now});
    }
    LeaseOutcome AskAndGrant(int64_t id, int64_t start, int64_t end, int64_t now,
                             const LeaseTerms& asked = kAsked) {
        (void)holder.Acquire(kFirst, {0});
        return Grant(id, start, end, now, asked);
    }
    LeaseOutcome Acquire(int64_t id, int64_t start, int64_t end, int64_t now_ms = 0) {
        (void)holder.Acquire(kFirst, {now_ms});
        return Grant(id, start, end, start);
    }
    LeaseOutcome Renew(int64_t end, int64_t now_ms = 0, int64_t now = 0,
                       const LeaseTerms& asked = kAsked) {
        (void)holder.Renew({now_ms});
        return holder.Renewed(kRandflake, {kEpoch + end - 1}, asked, {now});
    }
    void RefuseRenewal() {
        (void)holder.Renew({0});
        EXPECT_EQ(holder.Refused(), LeaseOutcome::kReplace);
        EXPECT_EQ(holder.awaits(), LeaseRequest::Kind::kNone);
    }
    void Open(int64_t id, int64_t start, int64_t end) {
        Acquire(id, start, end);
        ASSERT_EQ(holder.OpenNext({0}, {start}, kAnyEnd),
                  (Window{static_cast<uint32_t>(start), static_cast<uint32_t>(end)}));
    }
    void OpenWithNext() {
        Open(1, 10, 20);
        RefuseRenewal();
        Acquire(2, 12, 30);
    }

    LeaseHolder holder;
};

TEST_F(Holder, AsksForARenewalWithWhatItKnows) {
    Open(7, 100, 160);
    const LeaseRequest request = holder.Renew({9});
    EXPECT_EQ(request.kind, LeaseRequest::Kind::kRenew);
    EXPECT_EQ(request.lease_id, 7);
    EXPECT_EQ(request.incarnation, kFirst);
    EXPECT_EQ(request.expected_end, kEpoch + 159);
}

TEST_F(Holder, AnswersThatNobodyAwaitsChangeNothing) {
    EXPECT_EQ(Grant(1, 100, 160, 100), LeaseOutcome::kNotAwaited);
    EXPECT_EQ(holder.Renewed(kRandflake, {kEpoch + 200}, kAsked, {100}), LeaseOutcome::kNotAwaited);
    EXPECT_EQ(holder.Refused(), LeaseOutcome::kNotAwaited);
    EXPECT_EQ(holder.newest().id, 0);
    Open(1, 100, 160);
    EXPECT_EQ(holder.Refused(), LeaseOutcome::kNotAwaited);
    (void)holder.Renew({0});
    EXPECT_EQ(Grant(2, 100, 160, 100), LeaseOutcome::kNotAwaited);
    EXPECT_EQ(holder.next().id, 0);
    (void)holder.Unanswered();
    EXPECT_EQ(holder.Renewed(kRandflake, {kEpoch + 200}, kAsked, {100}), LeaseOutcome::kNotAwaited);
    EXPECT_EQ(holder.open().end, 160);
    EXPECT_FALSE(holder.open().refused);
    (void)holder.Acquire(kSecond, {0});
    EXPECT_EQ(holder.Renewed(kRandflake, {kEpoch + 200}, kAsked, {100}), LeaseOutcome::kNotAwaited);
    EXPECT_EQ(holder.open().end, 160);
}

TEST_F(Holder, SaysWhenTheClocksDisagree) {
    EXPECT_EQ(AskAndGrant(1, 100, 160, 99), LeaseOutcome::kNotBegun);
    EXPECT_EQ(AskAndGrant(1, 100, 160, 100), LeaseOutcome::kGood);
    EXPECT_EQ(AskAndGrant(1, 100, 160, 159), LeaseOutcome::kGood);
    EXPECT_EQ(AskAndGrant(1, 100, 160, 160), LeaseOutcome::kOver);
    EXPECT_EQ(Renew(170, 0, 169), LeaseOutcome::kGood);
    EXPECT_EQ(Renew(170, 0, 170), LeaseOutcome::kOver);
    EXPECT_EQ(Renew(170, 0, -5), LeaseOutcome::kNotBegun);
}

TEST_F(Holder, AGrantThatMakesNoSenseIsNone) {
    (void)holder.Acquire(kFirst, {0});
    EXPECT_EQ(
        holder.Granted(kRandflake, 2, {1, INT64_MAX, 2, kEpoch + 1, kEpoch + 60}, kAsked, {1}),
        LeaseOutcome::kUnusable);
    EXPECT_EQ(holder.newest().id, 0);
    EXPECT_EQ(holder.awaits(), LeaseRequest::Kind::kNone);
    EXPECT_EQ(holder.NextRequestAt(60, 0, {1000}), 1250);
}

TEST(Lease, TheLatestEndThatIsTaken) {
    EXPECT_EQ(LatestEnd({100}, {60, 2000}), 163);
    EXPECT_EQ(LatestEnd({100}, {60, 2001}), 164);
    EXPECT_EQ(LatestEnd({100}, {60, 0}), 161);
    EXPECT_EQ(LatestEnd({-5}, {1, 1}), -2);
}

constexpr LeaseTerms kMinute{60, 2000};

TEST_F(Holder, AGrantThatIsRefusedForItsEndIsGivenBackUnused) {
    (void)holder.Acquire(kFirst, {7});
    const LeaseGrant grant{5, 10, 2, kEpoch + 100, INT64_MAX};
    EXPECT_EQ(holder.Granted(kRandflake, 2, grant, kMinute, {100}), LeaseOutcome::kTooLong);
    const LeaseRelease declined = holder.Declined(kRandflake, grant);
    EXPECT_EQ(declined.lease.id, 5);
    EXPECT_EQ(declined.lease.incarnation, kFirst);
    EXPECT_EQ(declined.lease.start, 100);
    EXPECT_EQ(declined.lease.end, kBeyond);
    EXPECT_EQ(declined.last_used, kEpoch + 99);
}

TEST_F(Holder, AGrantOfTheLengthAskedForThatEndsTooLateMeansAClockThatIsBehind) {
    EXPECT_EQ(AskAndGrant(1, 3700, 3761, 100, kMinute), LeaseOutcome::kTooLong);
    EXPECT_EQ(holder.newest().id, 0);
    EXPECT_EQ(AskAndGrant(1, 103, 163, 100, kMinute), LeaseOutcome::kNotBegun)
        << "by the tolerated difference";
    EXPECT_EQ(AskAndGrant(2, 3700, 3760, 100, kMinute), LeaseOutcome::kBehind);
    EXPECT_EQ(holder.newest().id, 2) << "it is kept";
    EXPECT_EQ(Renew(3790, 30000, 130, kMinute), LeaseOutcome::kBehind) << "and renewed";
    EXPECT_TRUE(holder.renews());
    EXPECT_TRUE(holder.OpenNext({0}, {3699}, LatestEnd({3699}, kMinute)).closed());
    EXPECT_EQ(holder.OpenNext({0}, {3720}, LatestEnd({3720}, kMinute)), (Window{3700, 3783}));
    EXPECT_EQ(holder.Extended(Window{3700, 3783}, LatestEnd({3725}, kMinute)),
              (Window{3700, 3788}));
    EXPECT_EQ(holder.Extended(Window{3700, 3788}, LatestEnd({3790}, kMinute)),
              (Window{3700, 3790}));
    EXPECT_EQ(holder.Extended(Window{3700, 3790}, LatestEnd({100}, kMinute)), (Window{3700, 3790}))
        << "what was recorded stays";
}

TEST_F(Holder, ARenewalAsLongAsAskedForIsTaken) {
    Open(1, 100, 160);
    EXPECT_EQ(Renew(193, 30000, 130, kMinute), LeaseOutcome::kGood);
    EXPECT_EQ(holder.open().end, 193);
    EXPECT_TRUE(holder.renews());
    EXPECT_EQ(Renew(193, 40000, 10, {1, 0}), LeaseOutcome::kNotBegun);
    EXPECT_EQ(holder.open().end, 193);
    EXPECT_TRUE(holder.renews());
}

TEST_F(Holder, ARenewalThatEndsTooLateByAClockThatWasSetBack) {
    Open(1, 100, 160);
    EXPECT_EQ(Renew(190, 30000, 30, kMinute), LeaseOutcome::kBehind)
        << "it is as long as asked for";
    EXPECT_EQ(holder.open().end, 190);
    EXPECT_TRUE(holder.renews());
    EXPECT_EQ(holder.Extended(Window{100, 160}, LatestEnd({30}, kMinute)), (Window{100, 160}));
    EXPECT_EQ(Renew(224, 60000, 60, kMinute), LeaseOutcome::kTooLong);
    EXPECT_EQ(holder.open().end, 190);
    EXPECT_FALSE(holder.renews());
}

TEST(CoordinatorClock, ByHowMuchThisServersClockIsAhead) {
    constexpr CoordinatorClock kClock{{5000}, {1000000}, 3};
    EXPECT_EQ(kClock.Ahead({5000}, {1000000}), 0);
    EXPECT_EQ(kClock.Ahead({7500}, {1002500}), 0);
    EXPECT_EQ(kClock.Ahead({7500}, {1002499}), -1);
    EXPECT_EQ(kClock.Ahead({7500}, {4602500}), 3600000);
}

TEST_F(Holder, ARenewalTakesNothingAway) {
    Open(1, 10, 20);
    Renew(30, 4000);
    EXPECT_EQ(holder.open().end, 30);
    EXPECT_EQ(holder.open().asked_at_ms, 4000);
    EXPECT_EQ(holder.open().lasts_until_ms, 20000);
    Renew(20, 5000);
    EXPECT_EQ(holder.open().end, 30);
    EXPECT_EQ(holder.open().asked_at_ms, 5000);
    EXPECT_EQ(holder.open().lasts_until_ms, 20000);
    (void)holder.Renew({0});
    (void)holder.Renewed(kRandflake, {INT64_MIN}, kAsked, {10});
    EXPECT_EQ(holder.open().end, 30);
    EXPECT_EQ(holder.Extended(Window{15, 20}, kAnyEnd), (Window{15, 30}));
}

TEST_F(Holder, ANextLeaseThatTheServerUsedItself) {
    EXPECT_FALSE(holder.NextUsed(Window{0, 0}, {99})) << "there is none";
    OpenWithNext();
    EXPECT_FALSE(holder.NextUsed(Window{10, 20}, {29}));
    EXPECT_TRUE(holder.NextUsed(Window{10, 20}, {30}));
    EXPECT_TRUE(holder.NextUsed(Window{10, 20}, {31}));
    EXPECT_FALSE(holder.NextUsed(Window{10, 30}, {30})) << "the open lease did";
}

TEST_F(Holder, ARefusedNextLeaseIsForgotten) {
    OpenWithNext();
    RefuseRenewal();
    EXPECT_EQ(holder.next().id, 0);
    EXPECT_EQ(holder.open().id, 1);
    EXPECT_FALSE(holder.renews());
    EXPECT_TRUE(holder.OpenNext({20}, {20}, kAnyEnd).closed());
}

TEST_F(Holder, ARefusedAcquisitionChangesNothing) {
    (void)holder.Acquire(kFirst, {0});
    EXPECT_EQ(holder.Refused(), LeaseOutcome::kNothing);
    EXPECT_EQ(holder.newest().id, 0);
    EXPECT_EQ(holder.NextRequestAt(60, 0, {1000}), 1250);
}

TEST_F(Holder, DoesNotHurryForShortLeases) {
    Acquire(1, 100, 101, 1000);
    EXPECT_EQ(holder.NextRequestAt(60, 0, {1000}), 1500);
    EXPECT_EQ(holder.NextRequestAt(60, 50, {1000}), 1450);
    EXPECT_EQ(holder.NextRequestAt(60, 51, {1000}), 1500);
}

TEST_F(Holder, BacksOffUntilItSucceeds) {
    Acquire(1, 100, 160, 1000);
    for (const int64_t interval : {250, 500, 1000, 2000, 4000, 4000}) {
        (void)holder.Renew({0});
        (void)holder.Unanswered();
        EXPECT_EQ(holder.NextRequestAt(60, 0, {7000}), 7000 + interval);
        // With jitter, a request comes earlier, by up to a quarter of the interval.
        EXPECT_EQ(holder.NextRequestAt(60, static_cast<uint64_t>(interval / 4), {7000}),
                  7000 + interval - interval / 4);
        EXPECT_EQ(holder.NextRequestAt(60, static_cast<uint64_t>(interval / 4) + 1, {7000}),
                  7000 + interval);
    }
    Renew(160, 1000, 100);
    EXPECT_EQ(holder.NextRequestAt(60, 0, {1000}), 25000);
    (void)holder.Unanswered();
    EXPECT_EQ(holder.NextRequestAt(60, 0, {7000}), 7250);
}

TEST_F(Holder, LooksOftenWhetherTheNextLeaseMayBeOpened) {
    Open(1, 10, 20);
    EXPECT_EQ(holder.WakeAt({5000}, {1000}), 5000);
    RefuseRenewal();
    Acquire(2, 20, 30);
    EXPECT_EQ(holder.WakeAt({5000}, {1000}), 1100);
    EXPECT_EQ(holder.WakeAt({1050}, {1000}), 1050);
}

TEST_F(Holder, GivesBackWhatItDidNotUse) {
    OpenWithNext();
    const LeaseReleases releases = holder.Sealed({12});
    EXPECT_EQ(releases.open.lease.id, 1);
    EXPECT_EQ(releases.open.lease.incarnation, kFirst);
    EXPECT_EQ(releases.open.last_used, kEpoch + 12);
    EXPECT_EQ(releases.next.lease.id, 2);
    EXPECT_EQ(releases.next.last_used, kEpoch + 11);
    EXPECT_EQ(holder.newest().id, 0);
}

TEST_F(Holder, GivesAllBackWhenItUsedNothing) {
    Open(1, 10, 20);
    (void)holder.Renew({0});
    const LeaseReleases releases = holder.Sealed({-1});
    EXPECT_EQ(releases.open.last_used, kEpoch + 9);
    EXPECT_EQ(releases.next.lease.id, 0);
    EXPECT_EQ(holder.Renewed(kRandflake, {kEpoch + 99}, kAsked, {10}), LeaseOutcome::kNotAwaited);
}

TEST_F(Holder, GivesBackAsUsedWhatTheDirectoryUsedBefore) {
    const struct {
        int64_t last, used_until, last_used;
    } cases[] = {{-1, 0, 9},   {-1, 10, 9},  {-1, 11, 10}, {-1, 15, 14},        {-1, 20, 19},
                 {-1, 99, 19}, {12, 0, 12},  {12, 13, 12}, {12, 14, 13},        {19, 20, 19},
                 {12, 21, 19}, {-1, -99, 9}, {12, 12, 12}, {-1, UINT32_MAX, 19}};
    for (const auto& c : cases) {
        Open(1, 10, 20);
        LeaseRelease release = LeaseHolder(holder).Sealed({c.last}).open;
        release.UsedUntil({c.used_until});
        EXPECT_EQ(release.last_used, kEpoch + c.last_used) << c.last << ' ' << c.used_until;
        holder = {};
    }
}

TEST(PoolLook, RangesAreFreeWhenTheLeasesThatOverlapThemHaveEnded) {
    PoolLook look{{{4, 2}, 3}, {}};  // 4 and 5, 6 and 7, 8 and 9
    look.AddLease({0, 5}, ToUnix(Second{30}));
    look.AddLease({5, 1}, ToUnix(Second{20}));
    look.AddLease({9, 100}, ToUnix(Second{40}));
    EXPECT_EQ(look.free_at[0], Second{30});
    EXPECT_EQ(look.free_at[1], Second{0}) << "its neighbours are leased";
    EXPECT_EQ(look.free_at[2], Second{40});
    EXPECT_EQ(look.free_at[3], Second{0}) << "no range of the server";
    look.AddLease({6, 1}, UnixSecond{INT64_MAX / 2});
    EXPECT_EQ(look.free_at[1], kNoSecond);
}

TEST(PoolLook, APoolThatHoldsOffMayHaveLeasedAllOfIt) {
    constexpr UnixSecond kNow{1800000000};
    constexpr int64_t kHoldOff = 60 + 2 * 2 + 1;
    const PoolSeen own{true,       true,     true, false, false, kNow - 500,
                       kNow - 999, kNow - 7, 60,   2,     {4, 1}};
    EXPECT_EQ(MarkOf(own, kNow), kNow - 999) << "it knows all of its leases";
    PoolSeen seen = own;
    seen.high_water = kNow + 1000;
    EXPECT_EQ(MarkOf(seen, kNow), kNow + 1000);
    seen.same = false;
    EXPECT_EQ(MarkOf(seen, kNow), kNow + 1000) << "the mark never falls";

    PoolSeen copy = own;
    copy.noted_here = false;
    EXPECT_EQ(MarkOf(copy, kNow), kNow + kHoldOff) << "another one was asked last";
    copy.last_grant = kNow + 9;
    EXPECT_EQ(MarkOf(copy, kNow), kNow + 9 + kHoldOff) << "whose clock was ahead";
    copy = own;
    copy.same = false;
    EXPECT_EQ(MarkOf(copy, kNow), kNow + kHoldOff) << "the pool is of another one";
    copy.called = true;
    EXPECT_EQ(MarkOf(copy, kNow), kNow - 500 + kHoldOff) << "which is known since then";
    copy.called = copy.configured = false;
    EXPECT_EQ(MarkOf(copy, kNow), kNow - 500 + kHoldOff) << "made then, and never asked";

    PoolSeen made = own;
    made.high_water = kNow + 65;
    made.made_since = true;
    EXPECT_EQ(MarkOf(made, kNow), UnixSecond{0}) << "it never leased what its server uses";
    made.called = true;
    EXPECT_EQ(MarkOf(made, kNow), kNow + 65) << "but took over from one that may have";
    made.called = made.same = false;
    EXPECT_EQ(MarkOf(made, kNow), kNow + 65) << "or holds what another one left";
    made.configured = false;
    EXPECT_EQ(MarkOf(made, kNow), UnixSecond{0});

    PoolLook look{{{3, 1}, 3}, {}};
    look.AddPool(copy, kNow);
    EXPECT_EQ(look.free_at[0], Second{0});
    EXPECT_EQ(look.free_at[1], FromUnix(kNow - 500 + kHoldOff));
    EXPECT_EQ(look.free_at[2], Second{0});
}

TEST_F(Holder, FromTheStateHasNoWindow) {
    OpenWithNext();
    LeaseHolder again{};
    again.Resume({holder.open(), holder.next()});
    EXPECT_EQ(again.open(), holder.open());
    EXPECT_EQ(again.next(), holder.next());
    const Window closed = Window::ClosedUntil({0});
    EXPECT_EQ(again.Extended(closed, kAnyEnd), closed);
    EXPECT_EQ(again.Reopened({15}, {16}, {18}), (Window{15, 18}));
    EXPECT_EQ(again.Reopened({15}, {16}, kAnyEnd), (Window{15, 20}));
    EXPECT_TRUE(again.Reopened({15}, {14}, kAnyEnd).closed());
    EXPECT_TRUE(again.Reopened({20}, {25}, kAnyEnd).closed());
}

}  // namespace
}  // namespace randflake
