// The decisions of a lease holder, at their edges.

#include "core/lease.h"

#include <gtest/gtest.h>

namespace randflake {
namespace {

constexpr int64_t kEpoch = kWindowEpochSeconds;
constexpr int64_t kBeyond = int64_t{1} << 30;  // the first second that no identifier holds

TEST(Lease, SecondsOutsideWhatIdentifiersHoldAreClamped) {
    EXPECT_EQ(SecondOfUnix(kRandflake, kEpoch - 1), 0);
    EXPECT_EQ(SecondOfUnix(kRandflake, kEpoch), 0);
    EXPECT_EQ(SecondOfUnix(kRandflake, kEpoch + 1), 1);
    EXPECT_EQ(SecondOfUnix(kRandflake, kEpoch + kBeyond - 1), kBeyond - 1);
    EXPECT_EQ(SecondOfUnix(kRandflake, kEpoch + kBeyond), kBeyond);
    EXPECT_EQ(SecondOfUnix(kRandflake, kEpoch + kBeyond + 1), kBeyond);
}

bool Usable(const LeaseGrant& grant, uint32_t slots = 2) {
    return GrantUsable(kRandflake, grant, slots);
}

TEST(Lease, GrantsThatMakeNoSense) {
    EXPECT_TRUE(Usable({1, 0, 2, kEpoch + 1, kEpoch + 1}));
    EXPECT_TRUE(Usable({1, 131070, 2, kEpoch + 1, kEpoch + 60}));
    EXPECT_FALSE(Usable({0, 0, 2, kEpoch + 1, kEpoch + 60}));
    EXPECT_FALSE(Usable({1, 0, 3, kEpoch + 1, kEpoch + 60}));
    EXPECT_FALSE(Usable({1, 0, 1, kEpoch + 1, kEpoch + 60}));
    EXPECT_FALSE(Usable({1, -1, 2, kEpoch + 1, kEpoch + 60}));
    EXPECT_FALSE(Usable({1, 131071, 2, kEpoch + 1, kEpoch + 60}));
    EXPECT_FALSE(Usable({1, 0, 2, kEpoch + 2, kEpoch + 1}));
    // the word before its window would be no word
    EXPECT_FALSE(Usable({1, 0, 2, kEpoch, kEpoch + 60}));
}

TEST(Lease, AWindowOpensWithTheLeaseAndAfterTheLastWindow) {
    const Window none{0, 0};
    EXPECT_TRUE(WindowOfLease(none, 10, 20, 9).closed());
    EXPECT_EQ(WindowOfLease(none, 10, 20, 10), (Window{10, 20}));
    EXPECT_EQ(WindowOfLease(none, 10, 20, 1000), (Window{10, 20}));
    // while another lease is open, and of one that was sealed
    EXPECT_TRUE(WindowOfLease({1, 15}, 10, 20, 14).closed());
    EXPECT_EQ(WindowOfLease({1, 15}, 10, 20, 15), (Window{15, 20}));
    EXPECT_EQ(WindowOfLease({12, 12}, 10, 20, 13), (Window{12, 20}));
    // nothing is left of it
    EXPECT_TRUE(WindowOfLease({1, 20}, 10, 20, 20).closed());
    EXPECT_TRUE(WindowOfLease({1, 30}, 10, 20, 30).closed());
}

TEST(Lease, ARenewalTakesNothingAway) {
    EXPECT_EQ(RenewedEnd(kRandflake, 20, kEpoch + 29), 30);
    EXPECT_EQ(RenewedEnd(kRandflake, 20, kEpoch + 19), 20);
    EXPECT_EQ(RenewedEnd(kRandflake, 20, kEpoch + 9), 20);
    EXPECT_EQ(RenewedEnd(kRandflake, 20, kEpoch + kBeyond + 9), kBeyond);
}

TEST(Lease, WhatWasUsedIsKept) {
    EXPECT_EQ(LastUsedUnix(10, 12), kEpoch + 12);
    EXPECT_EQ(LastUsedUnix(10, -1), kEpoch + 9);
}

}  // namespace
}  // namespace randflake
