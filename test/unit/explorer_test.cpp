// The shipped Reserve and ChangeWindow, explored exhaustively at small widths (see explorer.h).

#include <gtest/gtest.h>

#include <iostream>

#include "explorer.h"

namespace randflake::explorer {
namespace {

// Explores, and makes sure that the search went where it should: every number that a window can
// hold was reserved in some history, in runs as long as calls ask for, with every outcome but those
// in `unseen`, with compare-and-swaps lost and with calls that reserve while the window changes.
Findings Explore(const Scenario& scenario) {
    const Findings findings = Explorer(scenario).Explore();
    std::cout << "  " << findings.states << " states, " << findings.steps << " steps\n";
    if (!findings.violation.empty()) {
        ADD_FAILURE() << findings.violation;
        return findings;
    }

    // Windows start at second 1, for a slot's word counts the tick before as used. A layout that
    // begins later begins with its first tick in a window that starts after its epoch.
    for (size_t set = 0; set < scenario.layouts.size(); set++) {
        const Layout& layout = scenario.layouts[set];
        for (uint64_t raw = 0; raw < uint64_t{1} << layout.bits(); raw++) {
            const Fields fields = layout.Unpack(raw);
            const int64_t second = layout.SecondOf(fields.timestamp).count;
            const bool possible = fields.timestamp >= 1 && second >= 1 &&
                                  second < scenario.seconds &&
                                  fields.node_id < static_cast<uint64_t>(scenario.node_ids) &&
                                  fields.sequence >= layout.FirstSequence(fields.node_id);
            EXPECT_EQ(findings.reserved[set] >> raw & 1, possible ? 1u : 0u) << raw;
        }
    }
    EXPECT_EQ(findings.longest_run, scenario.most_wanted);
    EXPECT_EQ(findings.outcomes, (2u << static_cast<int>(Outcome::kWindowEnded)) - 1);
    EXPECT_TRUE(findings.lost_swap);
    EXPECT_TRUE(findings.reserved_during_change);
    EXPECT_TRUE(findings.sealed);
    return findings;
}

// Node ids come and go, some of them for an earlier window than the last allows, which is refused.
TEST(Explorer, TwoBackendsShareASlot) {
    EXPECT_TRUE(Explore({.layouts = {{kWindowEpochMs, 2, 1, 1}},
                         .slots = 1,
                         .backends = 2,
                         .node_ids = 2,
                         .most_wanted = 1})
                    .refused_change);
}

// With a node id more than the layout holds: what does not fit is refused too.
TEST(Explorer, TwoBackendsAndTwoSlots) {
    EXPECT_TRUE(Explore({.layouts = {{kWindowEpochMs, 2, 1, 1}},
                         .slots = 2,
                         .backends = 2,
                         .node_ids = 3,
                         .most_wanted = 1})
                    .refused_change);
}

TEST(Explorer, NodeIdsMoveBetweenSlots) {
    Explore({.layouts = {{kWindowEpochMs, 2, 2, 1}},
             .slots = 2,
             .backends = 1,
             .node_ids = 3,
             .most_wanted = 2});
}

// Randflake's way: number 0 of node id 0 is left out. A tick of that node id then has one number.
TEST(Explorer, LowestNumberIsLeftOut) {
    for (const int sequence_bits : {1, 2})
        Explore({.layouts = {{.epoch = kWindowEpochMs,
                              .timestamp_bits = 2,
                              .node_bits = 1,
                              .sequence_bits = sequence_bits,
                              .lowest_stands_for_second = true}},
                 .slots = 1,
                 .backends = 2,
                 .node_ids = 2,
                 .most_wanted = sequence_bits == 1 ? 1u : 2u});
}

TEST(Explorer, RunsOfUpToThree) {
    Explore({.layouts = {{kWindowEpochMs, 2, 0, 2}},
             .slots = 1,
             .backends = 2,
             .node_ids = 1,
             .most_wanted = 3});
}

TEST(Explorer, ThreeBackendsShareASlot) {
    Explore({.layouts = {{kWindowEpochMs, 2, 0, 1}},
             .slots = 1,
             .backends = 3,
             .node_ids = 1,
             .most_wanted = 1});
}

TEST(Explorer, LongerTime) {
    Explore({.layouts = {{kWindowEpochMs, 3, 0, 1}},
             .seconds = 8,
             .slots = 1,
             .backends = 1,
             .node_ids = 1,
             .most_wanted = 2});
}

// Two ticks a second, the first of them before the windows' epoch.
TEST(Explorer, TicksOfHalfASecond) {
    Explore({.layouts = {{kWindowEpochMs - 500, 3, 1, 1, 500}},
             .seconds = 3,
             .slots = 1,
             .backends = 2,
             .node_ids = 2,
             .most_wanted = 1});
}

// Four ticks a second, and runs that go on within one.
TEST(Explorer, TicksOfAQuarterSecond) {
    Explore({.layouts = {{kWindowEpochMs - 250, 4, 0, 1, 250}},
             .seconds = 3,
             .slots = 1,
             .backends = 1,
             .node_ids = 1,
             .most_wanted = 2});
}

// Randflake's way and another, side by side: one window for both.
TEST(Explorer, TwoLayouts) {
    Explore({.layouts = {{kWindowEpochMs, 2, 1, 1}, {kWindowEpochMs, 3, 1, 1, 500}},
             .slots = 1,
             .backends = 1,
             .node_ids = 2,
             .most_wanted = 1});
}

// The second layout begins later, holds one node id and ends earlier.
TEST(Explorer, WindowsThatOneLayoutCannotHold) {
    Explore({.layouts = {{kWindowEpochMs, 2, 1, 1}, {kWindowEpochMs + 500, 2, 0, 1, 500}},
             .slots = 1,
             .backends = 1,
             .node_ids = 2,
             .most_wanted = 1});
}

TEST(Explorer, NothingMerged) {
    Explore({.layouts = {{kWindowEpochMs, 2, 1, 1}},
             .slots = 1,
             .backends = 1,
             .node_ids = 2,
             .most_wanted = 2,
             .merge = false});
}

}  // namespace
}  // namespace randflake::explorer
