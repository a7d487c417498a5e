// Models data directories and machines for the simulation. Both outlive a server.

#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>

#include "core/window/window_state.h"

namespace randflake::simulation {

using StateBytes = std::array<uint8_t, kWindowStateBytes>;

// Snapshots, base backups and rollbacks are plain copies of this struct.
struct DataDirectory {
    uint64_t system_identifier = 1;
    uint32_t timeline = 1;
    bool recovers = false;                   // standby.signal or recovery.signal exists
    std::optional<FileIdentity> identity{};  // of the file randflake/identity
    std::optional<StateBytes> window{};      // the file randflake/window
    // The run that wrote `window` tolerated clocks that differ by at most this much.
    uint32_t largest_skew_ms = 0;
};

// Models a computer with its clocks and run markers (run_marker.cpp). A boot clears the markers.
class Machine {
public:
    // With tells_boots = false, boot() always returns 0, as on a system without boot ids.
    explicit Machine(bool tells_boots) : tells_boots_(tells_boots) {}

    void Boot(uint64_t boot, int64_t true_ms) {
        boot_ = tells_boots_ ? boot : 0;
        booted_at_ms_ = true_ms;
        marked_.clear();
        locked_.clear();
    }

    void StepClock(int64_t offset_ms) { offset_ms_ = offset_ms; }
    int64_t offset_ms() const { return offset_ms_; }
    Moment At(int64_t true_ms) const {
        return {.uptime_ms = {true_ms - booted_at_ms_}, .wall_ms = {true_ms + offset_ms_}};
    }
    uint64_t boot() const { return boot_; }

    uint64_t Marked(const Origin& origin) const {
        const auto found = marked_.find(KeyOf(origin));
        return found == marked_.end() ? 0 : found->second;
    }
    void Mark(const Origin& origin, uint64_t mark) { marked_[KeyOf(origin)] = mark; }
    void Forget(const Origin& origin) { marked_.erase(KeyOf(origin)); }
    void ForgetAll() { marked_.clear(); }

    // Takes the lock of a file for a server. All hard links of a file share one lock.
    bool Lock(const FileIdentity& identity, int64_t server) {
        const auto key = KeyOf({0, 0, identity});
        return locked_.emplace(key, server).first->second == server;
    }
    void Unlock(int64_t server) {
        std::erase_if(locked_, [&](const auto& lock) { return lock.second == server; });
    }

private:
    using Key = std::array<uint64_t, 3>;
    static Key KeyOf(const Origin& origin) {
        return {origin.system_identifier, origin.identity.inode,
                static_cast<uint64_t>(origin.identity.birth_nanoseconds)};
    }

    bool tells_boots_;
    uint64_t boot_ = 0;
    int64_t booted_at_ms_ = 0;
    int64_t offset_ms_ = 0;
    std::map<Key, uint64_t> marked_;
    std::map<Key, int64_t> locked_;  // by files: the server that locks each
};

}  // namespace randflake::simulation
