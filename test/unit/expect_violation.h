// Simulations of leases that have one rule left out, and must be found out.

#pragma once

#include <gtest/gtest.h>

#include <iostream>

#include "lease_simulation.h"

namespace randflake::simulation {

inline void ExpectViolationOf(const Scenario& scenario, uint64_t first_seed) {
    constexpr uint64_t kSchedules = 100000;  // many times what it takes
    for (uint64_t seed = first_seed; seed <= kSchedules; seed++) {
        const Findings found = Simulate(scenario, seed);
        if (found.violation.empty())
            continue;
        std::cout << "  schedule " << seed << ": " << found.violation << '\n';
        return;
    }
    FAIL() << "no violation in " << kSchedules << " schedules";
}

}  // namespace randflake::simulation
