// Plans reloads of secrets.

#include "core/window/reload_plan.h"

#include <algorithm>

#include "core/base/assert.h"

namespace randflake {

ReloadPlan PlanReload(const Reload& reload, const WindowState* state) noexcept {
    RANDFLAKE_ASSERT(InOrder(reload.after));
    const SecretRecords& before = reload.before;
    const SecretRecords& after = reload.after;
    for (uint32_t i = 0; i < before.count; i++)
        if (i >= after.count || after.records[i] != before.records[i])
            return {ReloadError::kNotGrown, i, {}};
    const Second end = state != nullptr ? state->LastEnd() : Second{0};
    if (reload.NeedsState()) {
        const Second others =
            reload.leased ? reload.leases_end : SecondAfter(reload.wall_ms + reload.skew);
        const Second earliest = std::max(std::max(end, others), Second{1});
        for (uint32_t i = before.count; i < after.count; i++)
            if (after.records[i].from < earliest)
                return {ReloadError::kTooEarly, i, earliest};
    }
    // The coordinator granted the resumed leases under the state's secrets.
    if (state != nullptr &&
        CompareSecrets(state->secrets, after, std::max(end, reload.leases_end)) ==
            SecretsChange::kRefused)
        return {ReloadError::kRefused, 0, {}};
    return {ReloadError::kNone, 0, {}};
}

}  // namespace randflake
