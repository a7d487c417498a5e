// Decides whether a starting server goes on with the leases that it finds on disk.

#pragma once

#include "core/window/start_plan.h"

namespace randflake {

// Returns whether a server that starts outside recovery resumes this lease, which is in the state
// on disk. docs/design.md, "Resuming a lease", gives the reasons.
inline bool Resumes(const WindowState& found, const Start& start, const Lease& lease) noexcept {
    RANDFLAKE_ASSERT(start.now_ms >= start.uptime_ms);
    const WriteRecord& write = found.write;
    const bool same_postmaster = write.postmaster != 0 && write.postmaster == start.postmaster;
    const bool agrees = start.marker != 0 && write.number != 0 &&
                        (start.marker == write.number || start.marker == write.follows);
    const bool last_write = agrees || (start.marker == 0 && same_postmaster);
    const bool own_run = same_postmaster || (SameBoot(write.boot, start.machine_boot) &&
                                             write.uptime_ms <= start.now_ms);
    return lease.id != 0 && lease.nodes.count == start.leased_nodes && last_write && own_run &&
           found.origin == start.origin &&
           CompareSecrets(found.secrets, start.secrets, lease.end) == SecretsChange::kNone;
}

}  // namespace randflake
