// Models data directories and machines for the simulation. Both outlive a server.

#pragma once

#include "core/window/window_codec.h"
#include "test.h"

namespace randflake::simulation {

// Snapshots, base backups and rollbacks are plain copies of this struct.
struct DataDirectory {
    uint64_t system_identifier = 1;
    uint32_t timeline = 1;
    bool recovers = false;                   // standby.signal or recovery.signal exists
    std::optional<FileIdentity> identity{};  // of the file randflake/identity
    std::optional<std::array<uint8_t, kWindowStateBytes>> window{};  // the file randflake/window
    // The run that wrote `window` tolerated clocks that differ by at most this much.
    uint32_t largest_skew_ms = 0;

    StateError Read(WindowState* state) const {
        return window ? DecodeWindowState(window->data(), window->size(), state)
                      : StateError::kMissing;
    }
    void Write(const WindowState& state) { EncodeWindowState(state, window.emplace().data()); }
};

// A run marker, which outlives its name as long as a server has it open.
struct Marker {
    uint64_t number = 0;
    int64_t locked_by = -1;  // the server that holds the lock
};
using OpenMarker = std::shared_ptr<Marker>;

// Models a computer with its clocks and run markers (run_marker.cpp). A boot clears the markers.
class Machine {
public:
    // With tells_boots = false, boot() always returns 0, as on a system without boot ids.
    explicit Machine(bool tells_boots) : tells_boots_(tells_boots) {}

    void Boot(uint64_t boot, int64_t true_ms) {
        boot_ = tells_boots_ ? boot : 0;
        booted_at_ms_ = true_ms;
        markers_.clear();
    }

    void StepClock(int64_t offset_ms) { offset_ms_ = offset_ms; }
    int64_t offset_ms() const { return offset_ms_; }
    Moment At(int64_t true_ms) const {
        return {.uptime_ms = {true_ms - booted_at_ms_}, .wall_ms = {true_ms + offset_ms_}};
    }
    uint64_t boot() const { return boot_; }

    uint64_t ReadMarker(const Origin& origin) const {
        const auto found = markers_.find(KeyOf(origin));
        return found == markers_.end() ? 0 : found->second->number;
    }
    void SetMarker(const Origin& origin, uint64_t number) { Open(origin)->number = number; }
    void Forget(const Origin& origin) { markers_.erase(KeyOf(origin)); }
    void ForgetAll() { markers_.clear(); }

    // Locks the marker for a server. A directory shares it with hard-linked copies and snapshots.
    // Returns none if another server holds the lock.
    OpenMarker Lock(const Origin& origin, int64_t server) {
        OpenMarker marker = Open(origin);
        if (marker->locked_by < 0) marker->locked_by = server;
        return marker->locked_by == server ? marker : nullptr;
    }
    void Unlock(int64_t server) {
        for (const auto& [key, marker] : markers_)
            if (marker->locked_by == server) marker->locked_by = -1;
    }
    bool HasName(const OpenMarker& marker) const {
        for (const auto& [key, other] : markers_)
            if (other == marker) return true;
        return false;
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
    OpenMarker& Open(const Origin& origin) {
        OpenMarker& marker = markers_[KeyOf(origin)];
        if (marker == nullptr) marker = std::make_shared<Marker>();
        return marker;
    }
    std::map<Key, OpenMarker> markers_;
};

}  // namespace randflake::simulation
