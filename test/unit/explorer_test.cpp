// Explores the shipped Reserve and ChangeWindow exhaustively at small widths (see explorer.h).

#include "explorer.h"

namespace randflake::explorer {
namespace {

// Explores a scenario. The search must reach every number of every window, reservations of all
// lengths, all outcomes, lost compare-and-swaps, and reservations while the window changes.
Findings Explore(const Scenario& scenario) {
    const Findings findings = Explorer(scenario).Explore();
    std::cout << "  " << findings.states << " states, " << findings.steps << " steps\n";
    if (!findings.violation.empty()) {
        ADD_FAILURE() << findings.violation;
        return findings;
    }

    // A slot's first word lies before the slot's window, so tick 0 and second 0 stay unused.
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
    EXPECT_EQ(findings.largest_reservation, scenario.most_wanted);
    EXPECT_EQ(findings.outcomes, (2u << static_cast<int>(Outcome::kWindowEnded)) - 1);
    EXPECT_TRUE(findings.lost_swap);
    EXPECT_TRUE(findings.reserved_during_change);
    EXPECT_TRUE(findings.sealed);
    return findings;
}

struct Case {
    const char* name;
    Scenario scenario;
    bool refused_change = false;  // the search must also see this
};

class ExplorerCase : public testing::TestWithParam<Case> {};

TEST_P(ExplorerCase, NoNumberTwice) {
    const Case& c = GetParam();
    const Findings findings = Explore(c.scenario);
    EXPECT_TRUE(findings.refused_change || !c.refused_change);
}

// Returns a layout that, like Randflake's, never uses sequence 0 of node id 0. With one sequence
// bit, one number per tick remains.
constexpr Layout LowestLeftOut(int sequence_bits) {
    return {.epoch = kWindowEpochMs,
            .timestamp_bits = 2,
            .node_bits = 1,
            .sequence_bits = sequence_bits,
            .lowest_stands_for_second = true};
}

constexpr Layout kSeconds{kWindowEpochMs, 2, 1, 1}, kOneNode{kWindowEpochMs, 2, 0, 1};

// With four seconds, LowestNumberIsLeftOutOfMore has 21 million states. Only the weekly run, which
// sets RANDFLAKE_SCHEDULES, explores them.
const int kSecondsOfLowest = std::getenv("RANDFLAKE_SCHEDULES") ? 4 : 3;

const Case kCases[] = {
    // In this case, slots change their node ids. ChangeWindow refuses windows that start too early.
    {"TwoBackendsShareASlot", {{kSeconds}, 1, 2, 2, 1}, true},
    {"TwoBackendsAndTwoSlots", {{kSeconds}, 2, 2, 3, 1}, true},
    {"NodeIdsMoveBetweenSlots", {{{kWindowEpochMs, 2, 2, 1}}, 2, 1, 3, 2}},
    {"LowestNumberIsLeftOut", {{LowestLeftOut(1)}, 1, 2, 2, 1}},
    {"LowestNumberIsLeftOutOfMore", {{LowestLeftOut(2)}, 1, 2, 2, 2, kSecondsOfLowest}},
    {"ReservationsOfUpToThree", {{{kWindowEpochMs, 2, 0, 2}}, 1, 2, 1, 3}},
    {"ThreeBackendsShareASlot", {{kOneNode}, 1, 3, 1, 1}},
    {"LongerTime", {{{kWindowEpochMs, 3, 0, 1}}, 1, 1, 1, 2, 8}},
    // A second has two ticks. The layout's first tick lies before the windows' epoch.
    {"TicksOfHalfASecond", {{{kWindowEpochMs - 500, 3, 1, 1, 500}}, 1, 2, 2, 1, 3}},
    // A second has four ticks. Each tick has two numbers, one for each of two reservations.
    {"TicksOfAQuarterSecond", {{{kWindowEpochMs - 250, 4, 0, 1, 250}}, 1, 1, 1, 2, 3}},
    {"TwoLayouts", {{kSeconds, {kWindowEpochMs, 3, 1, 1, 500}}, 1, 1, 2, 1}},
    // The second layout begins later, ends earlier and has only one node id.
    {"OneLayoutCannotHoldAll", {{kSeconds, {kWindowEpochMs + 500, 2, 0, 1, 500}}, 1, 1, 2, 1}},
    {"NothingMerged", {{kSeconds}, 1, 1, 2, 2, 4, false}},
    // The server returns to a former range while another range's window covers the same seconds.
    {"RangesOfNodeIds", {{kSeconds}, 1, 2, 2, 1, 4, true, true}},
};

INSTANTIATE_TEST_SUITE_P(Explorer, ExplorerCase, testing::ValuesIn(kCases),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace randflake::explorer
