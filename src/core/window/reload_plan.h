// Decides whether a running server may add secrets.

#pragma once

#include "core/window/window_state.h"

namespace randflake {

// Describes a request to replace the ring `before` of a running server by the ring `after`.
struct Reload {
    SecretRecords before;  // none if the server lost its secrets in a crash
    SecretRecords after;
    bool issues;        // whether the server makes identifiers, or would on request
    bool leased;        // under leased node ids
    Second leases_end;  // under leased node ids: the last end of the server's leases

    WallMs wall_ms;  // the latest time that this server's clock has shown
    Ms skew;         // the tolerated difference of clocks

    constexpr bool NeedsState() const {
        return issues && before.count > 0 && after.count > before.count;
    }
};

enum class ReloadError : uint8_t {
    kNone,
    kNotGrown,  // `after` does not begin with all secrets of `before`
    kTooEarly,  // an added secret begins before seconds that may have identifiers
    kRefused,   // the server made identifiers under other secrets; see CompareSecrets
};

struct ReloadPlan {
    ReloadError error;
    uint32_t secret;  // with kNotGrown and kTooEarly: the secret's index in `after`
    Second earliest;  // with kTooEarly: the first possible second
};

// `state` is null while the server has not read the state. The caller must not open or extend a
// window until it has added the secrets.
//
// A new secret must not affect existing identifiers. So it begins at or after the latest written
// end of this server, and after all seconds that other servers may have used. With static node ids,
// the secret begins later than the present plus the tolerated difference. With leased node ids, it
// begins at or after the end of this server's last lease, because the coordinator grants no seconds
// from the secret's time on to a holder without this secret. So if a lease ended because the server
// lacked a secret, the server can add this secret.
inline ReloadPlan PlanReload(const Reload& reload, const WindowState* state) noexcept {
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
            if (after.records[i].from < earliest) return {ReloadError::kTooEarly, i, earliest};
    }
    // The coordinator granted the resumed leases under the state's secrets.
    if (state != nullptr &&
        CompareSecrets(state->secrets, after, std::max(end, reload.leases_end)) ==
            SecretsChange::kRefused)
        return {ReloadError::kRefused, 0, {}};
    return {ReloadError::kNone, 0, {}};
}

}  // namespace randflake
