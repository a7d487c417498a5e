// The simulation of leases where secrets change, with one rule left out at a time. Each must be
// found out, as in lease_simulation_broken_test.cpp.

#include "expect_violation.h"

namespace randflake::simulation {
namespace {

template <typename Holder = ShippedHolder, typename State = ShippedState>
void ExpectViolationIn(Fleet fleet, const CoordinatorRules& rules = {},
                       const Operation& operation = {}, uint64_t first_seed = 1) {
    const Scenario scenario{.layout = {.epoch = kWindowEpochMs,
                                       .timestamp_bits = 8,
                                       .node_bits = 3,
                                       .sequence_bits = 2,
                                       .reserve_lowest = true},
                            .fleet = fleet,
                            .rules = rules,
                            .rotates = true,
                            .operation = operation};
    ExpectViolationOf<Holder, State>(scenario, first_seed);
}

// --- what becomes of numbers

struct SkipsNothing : ShippedHolder {
    static bool Encrypt(const Ring<ToyCipher>& ring, const Layout& layout, uint64_t raw, int64_t,
                        uint64_t* id) {
        *id = ring[ring.OwnerOf(layout, raw)].Encrypt(raw);
        return true;
    }
};

TEST(LeaseSimulationFinds, NumbersThatAreNotSkipped) {
    ExpectViolationIn<SkipsNothing>(Fleet::kEverything);
}

struct SkipsByTheNumbersInterval : ShippedHolder {
    static bool Encrypt(const Ring<ToyCipher>& ring, const Layout& layout, uint64_t raw, int64_t,
                        uint64_t* id) {
        const int owner = ring.OwnerOf(layout, raw);
        *id = ring[owner].Encrypt(raw);
        for (int earlier = 0; earlier < owner; earlier++)
            if (ring.OwnerOf(layout, ring[earlier].Decrypt(*id)) == owner)
                return false;
        return true;
    }
};

TEST(LeaseSimulationFinds, NumbersSkippedByTheWrongInterval) {
    ExpectViolationIn<SkipsByTheNumbersInterval>(Fleet::kEverything);
}

struct EncryptsByTheClock : ShippedHolder {
    static bool Encrypt(const Ring<ToyCipher>& ring, const Layout& layout, uint64_t raw,
                        int64_t second, uint64_t* id) {
        const int owner = ring.GenerationAt(static_cast<uint64_t>(second));
        *id = ring[owner].Encrypt(raw);
        return !ring.ClaimedBefore(layout, owner, *id);
    }
};

TEST(LeaseSimulationFinds, ARunThatIsEncryptedUnderTheSecretOfTheClock) {
    ExpectViolationIn<EncryptsByTheClock>(Fleet::kTwoNodeIds);
}

struct KeepsTheSessionsSecrets : ShippedHolder {
    static int Secrets(int at_first, int, int) { return at_first; }
};

TEST(LeaseSimulationFinds, ASessionThatKeepsTheSecretsItBeganWith) {
    ExpectViolationIn<KeepsTheSessionsSecrets>(Fleet::kLeases);
}

struct LooksBeforeItReserves : ShippedHolder {
    static int Secrets(int, int before, int) { return before; }
};

TEST(LeaseSimulationFinds, SecretsThatAreReadBeforeTheNumberIsReserved) {
    ExpectViolationIn<LooksBeforeItReserves>(Fleet::kLeases);
}

// --- when secrets are taken

struct TakesSecretsOfThePast : ShippedState {
    static ReloadPlan PlanReload(const Reload& reload, const WindowState* state) {
        const ReloadPlan plan = randflake::PlanReload(reload, state);
        return plan.error == ReloadError::kTooEarly ? ReloadPlan{} : plan;
    }
};

TEST(LeaseSimulationFinds, SecretsOfThePastThatAreTaken) {
    ExpectViolationIn<ShippedHolder, TakesSecretsOfThePast>(Fleet::kTwoNodeIds);
}

struct TakesSecretsOfThePresent : ShippedState {
    static ReloadPlan PlanReload(Reload reload, const WindowState* state) {
        reload.skew_ms = -reload.clock_ms;
        return randflake::PlanReload(reload, state);
    }
};

TEST(LeaseSimulationFinds, SecretsOfSecondsThatOthersMayHaveReached) {
    ExpectViolationIn<ShippedHolder, TakesSecretsOfThePresent>(Fleet::kTwoNodeIds);
}

struct ForgetsLeases : ShippedState {
    static ReloadPlan PlanReload(Reload reload, const WindowState* state) {
        reload.leases_end = 0;
        return randflake::PlanReload(reload, state);
    }
};

TEST(LeaseSimulationFinds, SecretsOfSecondsThatWereLeasedBefore) {
    ExpectViolationIn<ShippedHolder, ForgetsLeases>(Fleet::kLeases);
}

struct HearsOldAnswers : ShippedHolder {
    static constexpr bool kAnswersKnowSecrets = false;
};

TEST(LeaseSimulationFinds, AnAnswerFromBeforeASecretWasAdded) {
    ExpectViolationIn<HearsOldAnswers>(Fleet::kLeases);
}

struct ReloadsAnything : ShippedState {
    static ReloadPlan PlanReload(const Reload& reload, const WindowState* state) {
        const ReloadPlan plan = randflake::PlanReload(reload, state);
        return plan.error == ReloadError::kNotGrown ? ReloadPlan{} : plan;
    }
};

TEST(LeaseSimulationFinds, SecretsThatAreReplacedWhileAServerRuns) {
    ExpectViolationIn<ShippedHolder, ReloadsAnything>(Fleet::kLeases);
}

struct ReloadsWithoutTheLock : ShippedState {
    static constexpr bool kLocksReload = false;
};

TEST(LeaseSimulationFinds, AWindowThatIsExtendedWhileSecretsAreAdded) {
    ExpectViolationIn<ShippedHolder, ReloadsWithoutTheLock>(Fleet::kLeases);
}

struct StartsUnderAnySecrets : ShippedState {
    static constexpr bool kRefusesSecrets = false;
};

TEST(LeaseSimulationFinds, AStartUnderFewerOrOtherSecrets) {
    ExpectViolationIn<ShippedHolder, StartsUnderAnySecrets>(Fleet::kTwoNodeIds);
}

struct ForgetsAddedSecrets : ShippedState {
    static constexpr bool kWritesSecrets = false;
};

TEST(LeaseSimulationFinds, AStateWithoutTheSecretsThatWereAdded) {
    // Takes a start with a file that lacks just that secret, and no other one since it began: one
    // schedule in some 10,000.
    ExpectViolationIn<ShippedHolder, ForgetsAddedSecrets>(Fleet::kTwoNodeIds, {}, {}, 18000);
}

// --- secrets and the coordinator

TEST(LeaseSimulationFinds, LeasesBeyondASecretThatOneSideLacks) {
    ExpectViolationIn(Fleet::kLeases, {.stops_grants = false});
}

TEST(LeaseSimulationFinds, RenewalsBeyondASecretThatOneSideLacks) {
    ExpectViolationIn(Fleet::kLeases, {.stops_renewals = false});
}

TEST(LeaseSimulationFinds, LeasesBeyondASecretThatTheHolderLacks) {
    ExpectViolationIn(Fleet::kLeases, {.stops_at_missing = false});
}

TEST(LeaseSimulationFinds, LeasesBeyondASecretThatTheCoordinatorLacks) {
    ExpectViolationIn(Fleet::kLeases, {.stops_at_unknown = false});
}

TEST(LeaseSimulationFinds, SecretsAddedThatLeasesReach) {
    ExpectViolationIn(Fleet::kLeases, {.secrets_after_leases = false, .secrets_after_mark = false});
}

TEST(LeaseSimulationFinds, SecretsAddedThatUnknownLeasesReach) {
    ExpectViolationIn(Fleet::kLeases, {.secrets_after_mark = false});
}

TEST(LeaseSimulationFinds, AServerThatIsNotStoppedBeforeASecretThatItLacks) {
    ExpectViolationIn(Fleet::kTwoNodeIds, {}, {.stops_in_time = false});
}

TEST(LeaseSimulationFinds, ASecondCoordinatorThatIsNotToldOfASecret) {
    ExpectViolationIn(Fleet::kEverything, {}, {.adds_everywhere = false});
}

TEST(LeaseSimulationFinds, ACoordinatorThatIsNotToldOfSecretsAfterAFailover) {
    ExpectViolationIn(Fleet::kLeases, {}, {.sets_secrets_again = false});
}

}  // namespace
}  // namespace randflake::simulation
