// Simulations of leases that leave one rule out and must find a violation.

#pragma once

#include <gtest/gtest.h>

#include <iostream>

#include "fleet_simulation.h"

namespace randflake::simulation {

struct BrokenRule {
    const char* name;
    Scenario scenario;
    uint64_t first_seed = 1;  // below a schedule that finds it
};

class FleetSimulationFinds : public testing::TestWithParam<BrokenRule> {
protected:
    static void ExpectViolation(Scenario scenario) {
        constexpr uint64_t kSchedules = 100000;  // many times the number needed
        scenario.numbers = scenario.layout;
        for (uint64_t seed = GetParam().first_seed; seed <= kSchedules; seed++) {
            const Findings found = Simulate(scenario, seed);
            if (found.violation.empty())
                continue;
            std::cout << "  schedule " << seed << ": " << found.violation << '\n';
            return;
        }
        FAIL() << "no violation in " << kSchedules << " schedules";
    }
};

inline std::string NameOf(const testing::TestParamInfo<BrokenRule>& rule) {
    return rule.param.name;
}

}  // namespace randflake::simulation
